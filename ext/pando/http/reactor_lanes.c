/* The lanes that are open: reading them in turn, waking their workers. */
#include "reactor_private.h"

#include <stdatomic.h>
#include <unistd.h>

#define FRAMES 64 /* of one lane before others have their turn */

static struct pando_lane *shared_lane(const struct pando_reactor *reactor, uint32_t number)
{
    return &reactor->channel.shared->lanes[number];
}

static void wake(const struct pando_reactor_lane *lane)
{
    uint64_t one = 1;
    ssize_t written = write(lane->wake, &one, sizeof(one));
    (void)written; /* EAGAIN: its count is full, so it is awake */
}

void pando_reactor_lane_open(struct pando_reactor *reactor, uint32_t number, int wake_fd, int socket)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    if (lane->open)
        pando_reactor_lane_lost(reactor, number, PANDO_REACTOR_DIED);
    *lane = (struct pando_reactor_lane){.open = 1, .again = 1, .wake = wake_fd, .socket = socket};
    lane->position = pando_lane_join(shared_lane(reactor, number));
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

/* 0: nothing is left to read, for now */
static int read_frame(struct pando_reactor *reactor, uint32_t number)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    struct pando_lane *shared = shared_lane(reactor, number);
    struct pando_frame frame;
    const char *payload;

    switch (pando_lane_peek(shared, &lane->position, &frame, &payload)) {
    case 0:
        return 0;
    case 1:
        if (pando_reactor_frame_handle(reactor, number, &frame, payload) == PANDO_FRAME_NOT_NOW)
            return 0;
        if (pando_lane_consume(shared, &lane->position, &frame))
            wake(lane);
        return 1;
    default:
        pando_reactor_lane_corrupt(reactor, number);
        return 0;
    }
}

/* Space came free that may be for any of those that wait. */
static void try_again(struct pando_reactor *reactor)
{
    reactor->roomier = 0;
    for (uint32_t i = 0; i < reactor->open_count && reactor->waiting > 0; i++)
        pando_reactor_lane_unblock(reactor, reactor->lanes[reactor->open[i]].blocker);
}

static uint64_t written(const struct pando_reactor *reactor, uint32_t number)
{
    return atomic_load(&shared_lane(reactor, number)->written);
}

static int pending(const struct pando_reactor *reactor, uint32_t number)
{
    const struct pando_reactor_lane *lane = &reactor->lanes[number];
    return !lane->corrupt && (lane->again || written(reactor, number) != lane->seen);
}

void pando_reactor_lanes_read(struct pando_reactor *reactor)
{
    if (reactor->roomier)
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
    if (reactor->roomier && reactor->waiting > 0)
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
    while (!lane->corrupt && read_frame(reactor, number))
        ;
    if (lane->corrupt)
        pando_lane_skip(shared_lane(reactor, number), &lane->position);
    lane->open = 0;
    uint32_t moved = reactor->open[--reactor->open_count];
    reactor->open[lane->place] = moved;
    reactor->lanes[moved].place = lane->place;
    close(lane->wake);
    close(lane->socket);
    pando_reactor_requests_lost(reactor, number, cause);
    if (pando_reactor_deserted(reactor))
        pando_reactor_requests_give_up(reactor);
    /* It may have been woken for a request that it did not take. */
    pando_reactor_lanes_wake(reactor, pando_channel_depth(&reactor->channel));
}

/* Most recently idle first: it is the warmest, and those that sleep long stay shared. */
static struct pando_reactor_lane *wake_one(struct pando_reactor *reactor)
{
    struct pando_reactor_lane *latest = NULL;
    struct pando_lane *latest_shared = NULL;
    uint64_t latest_since = 0;
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        struct pando_lane *shared = shared_lane(reactor, reactor->open[i]);
        if (!atomic_load_explicit(&shared->asleep, memory_order_relaxed))
            continue;
        uint64_t since = atomic_load_explicit(&shared->idle_since, memory_order_relaxed);
        if (!latest || since > latest_since) {
            latest = &reactor->lanes[reactor->open[i]];
            latest_shared = shared;
            latest_since = since;
        }
    }
    if (latest && pando_lane_rouse(latest_shared))
        wake(latest);
    return latest;
}

void pando_reactor_lanes_wake(struct pando_reactor *reactor, uint32_t count)
{
    /* What was published must be visible before we look who sleeps: a worker does the same, the other way round. */
    atomic_thread_fence(memory_order_seq_cst);
    /* The first may have taken all of it and sleep again before we come to wake the next. */
    while (count > 0 && pando_channel_offers(&reactor->channel) && wake_one(reactor))
        count--;
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
        close(lane->wake);
        close(lane->socket);
    }
}
