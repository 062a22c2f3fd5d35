/* The open lanes: reads their frames in turn and wakes their workers. Runs in the reactor. */
#include "reactor_private.h"

#include "sys/fds.h"

#include <stdatomic.h>
#include <unistd.h>

#define FRAMES 64 /* frames read from one lane before others have their turn */

void pando_reactor_lane_wake(const struct pando_reactor_lane *lane)
{
    pando_eventfd_signal(lane->wake);
}

/* The lane cannot be used: the monitor is told to replace its worker. */
static void refuse(struct pando_reactor *reactor, uint32_t number, int wake_fd, int socket)
{
    close(wake_fd);
    close(socket);
    pando_stat_add(&reactor->stats->corrupt_lanes, 1);
    pando_reactor_control_tell(reactor, PANDO_REACTOR_LANE_CORRUPT, number);
}

void pando_reactor_lane_open(struct pando_reactor *reactor, const struct pando_reactor_record *order, int wake_fd,
                             int socket, int memory)
{
    uint32_t number = order->lane, first = order->cause;
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    if (lane->open)
        pando_reactor_lane_lost(reactor, number, PANDO_REACTOR_DIED);
    struct pando_lane *shared = pando_lane_map(memory);
    close(memory);
    if (!shared) {
        refuse(reactor, number, wake_fd, socket);
        return;
    }
    *lane = (struct pando_reactor_lane){
        .shared = shared, .open = 1, .again = 1, .wake = wake_fd, .socket = socket, .first = first,
        .pool = order->pool, .slot = order->slot, .generation = order->generation};
    atomic_store(&shared->pool, order->pool);
    reactor->threads += first != number;
    lane->position = pando_lane_join(shared);
    lane->handed = (uint32_t)(atomic_load(&shared->connections) >> 32); /* by another reactor */
    lane->place = reactor->open_count;
    reactor->open[reactor->open_count++] = number;
}

void pando_reactor_lane_corrupt(struct pando_reactor *reactor, uint32_t number)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    lane->corrupt = 1;
    pando_reactor_lane_unblock(reactor, lane->blocker);
    pando_stat_add(&reactor->stats->corrupt_lanes, 1);
    lane->unreported = pando_reactor_control_tell(reactor, PANDO_REACTOR_LANE_CORRUPT, number) == -1;
    pando_reactor_requests_lost(reactor, number, PANDO_REACTOR_SUSPECT);
}

/* 0: nothing left to read for now. */
static int read_frame(struct pando_reactor *reactor, uint32_t number)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    struct pando_lane *shared = lane->shared;
    struct pando_frame frame;
    const char *payload;

    if (lane->corrupt)
        return 0;
    switch (pando_lane_peek(shared, &lane->position, &frame, &payload)) {
    case 0:
        return 0;
    case 1:
        if (pando_reactor_frame_handle(reactor, number, &frame, payload) == PANDO_FRAME_NOT_NOW)
            return 0;
        if (pando_lane_consume(shared, &lane->position, &frame))
            pando_reactor_lane_wake(lane);
        return 1;
    default:
        pando_reactor_lane_corrupt(reactor, number);
        return 0;
    }
}

/* Space was freed that any of the blocked lanes may use. */
static void try_again(struct pando_reactor *reactor)
{
    reactor->roomier = reactor->crowded = 0;
    for (uint32_t i = 0; i < reactor->open_count && reactor->waiting > 0; i++)
        pando_reactor_lane_unblock(reactor, reactor->lanes[reactor->open[i]].blocker);
}

/* Heads and bodies share memory with responses: the room itself is checked, whatever freed it. */
static int has_more_room(const struct pando_reactor *reactor)
{
    return reactor->roomier || (reactor->crowded && pando_reactor_room_of_all(reactor, PANDO_FRAME_PAYLOAD));
}

static uint64_t written(const struct pando_reactor *reactor, uint32_t number)
{
    return atomic_load(&reactor->lanes[number].shared->written);
}

static int pending(const struct pando_reactor *reactor, uint32_t number)
{
    const struct pando_reactor_lane *lane = &reactor->lanes[number];
    return !lane->corrupt && (lane->again || written(reactor, number) != lane->seen);
}

void pando_reactor_lanes_read(struct pando_reactor *reactor)
{
    if (has_more_room(reactor))
        try_again(reactor);
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        uint32_t number = reactor->open[i];
        struct pando_reactor_lane *lane = &reactor->lanes[number];
        if (!pending(reactor, number))
            continue;
        pando_reactor_lane_unblock(reactor, lane->blocker);
        lane->seen = written(reactor, number);
        lane->again = 0;
        int frames = 0;
        while (read_frame(reactor, number))
            if (++frames == FRAMES) {
                lane->again = 1;
                break;
            }
    }
}

int pando_reactor_lanes_pending(const struct pando_reactor *reactor)
{
    if (reactor->waiting > 0 && has_more_room(reactor))
        return 1;
    for (uint32_t i = 0; i < reactor->open_count; i++)
        if (pending(reactor, reactor->open[i]))
            return 1;
    return 0;
}

void pando_reactor_lane_block(struct pando_reactor *reactor, uint32_t number, struct pando_connection *connection)
{
    reactor->lanes[number].blocker = connection;
    connection->blocks = number;
    reactor->waiting++;
    reactor->crowded |= !pando_reactor_room_of_all(reactor, PANDO_FRAME_PAYLOAD);
}

void pando_reactor_lane_unblock(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (!connection || connection->blocks == PANDO_NONE)
        return;
    struct pando_reactor_lane *lane = &reactor->lanes[connection->blocks];
    lane->blocker = NULL;
    lane->again = 1;
    reactor->waiting--;
    connection->blocks = PANDO_NONE;
}

void pando_reactor_lane_lost(struct pando_reactor *reactor, uint32_t number, uint32_t cause)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    if (!lane->open)
        return;
    pando_reactor_lane_unblock(reactor, lane->blocker);
    lane->dead = 1;
    pando_reactor_dispatch_look(reactor, number);
    while (read_frame(reactor, number))
        ;
    lane->open = 0;
    reactor->threads -= lane->first != number;
    uint32_t moved = reactor->open[--reactor->open_count];
    reactor->open[lane->place] = moved;
    reactor->lanes[moved].place = lane->place;
    close(lane->wake);
    close(lane->socket);
    pando_reactor_requests_lost(reactor, number, cause);
    pando_lane_unmap(lane->shared);
    lane->shared = NULL;
    if (pando_reactor_deserted(reactor))
        pando_reactor_requests_give_up(reactor);
}

/* Whether a sleeping worker holds a request it has not answered, or a slot it should have given back. */
static int is_amiss(const struct pando_reactor_lane *lane)
{
    if (!atomic_load(&lane->shared->asleep) || atomic_load(&lane->shared->written) != lane->position)
        return 0;
    for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++)
        if (!lane->offered[slot] && !pando_lane_has_room(lane->shared, slot))
            return 1;
    return lane->taken != NULL;
}

static void look_for_forgotten(struct pando_reactor *reactor, uint32_t number)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    if (!is_amiss(lane))
        lane->suspected = 0;
    else if (++lane->suspected < 2)
        return;
    else if (lane->taken)
        pando_reactor_request_fail(reactor, lane->taken, 502);
    else
        pando_reactor_lane_corrupt(reactor, number);
}

void pando_reactor_lanes_audit(struct pando_reactor *reactor)
{
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[i]];
        if (lane->corrupt)
            continue;
        pando_reactor_dispatch_look(reactor, reactor->open[i]);
        look_for_forgotten(reactor, reactor->open[i]);
    }
}

void pando_reactor_lanes_report(struct pando_reactor *reactor)
{
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[i]];
        if (lane->unreported)
            lane->unreported = pando_reactor_control_tell(reactor, PANDO_REACTOR_LANE_CORRUPT, reactor->open[i]) == -1;
    }
}

void pando_reactor_lanes_drop(struct pando_reactor *reactor)
{
    while (reactor->open_count > 0) {
        struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[--reactor->open_count]];
        lane->open = 0;
        pando_lane_unmap(lane->shared);
        close(lane->wake);
        close(lane->socket);
    }
}
