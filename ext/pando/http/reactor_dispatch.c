/* Which worker gets which request.
 *
 * A request waits in the queue, in memory of our own, until a worker is idle:
 * then it is offered on that worker's lane, and the worker is woken. While all
 * are busy, each lane gets one request ahead, so that a worker which ends one
 * finds the next without waiting for us. There is one queue all the same: as
 * soon as another worker is idle, it is given what waits for a busy one. */
#include "reactor_private.h"

#include <stdatomic.h>
#include <string.h>

#define STALE 5u  /* milliseconds ahead of a busy worker, after which another's next request is this one */
#define LATE 100u /* milliseconds in which an idle worker claims what it was woken for */

static struct pando_reactor_lane *open_lane(struct pando_reactor *reactor, uint32_t place)
{
    return &reactor->lanes[reactor->open[place]];
}

/* --- one offer --- */

static uint32_t flags_of(const struct pando_connection *connection)
{
    uint32_t flags = 0;
    if (connection->head_bytes > PANDO_SLOT_BYTES)
        flags |= PANDO_SLOT_ALL_IN_FILE;
    if (connection->spool != -1)
        flags |= PANDO_SLOT_BODY_IN_FILE;
    if (connection->parser.body == PANDO_HTTP_CHUNKED_BODY)
        flags |= PANDO_SLOT_CHUNKED;
    if (!connection->persistent)
        flags |= PANDO_SLOT_LAST;
    if (connection->read_ended)
        flags |= PANDO_SLOT_HALF_CLOSED;
    if (connection->streamed)
        flags |= PANDO_SLOT_STREAMED;
    if (connection->request.retried)
        flags |= PANDO_SLOT_RETRY;
    return flags;
}

/* What the worker reads. We never read it again. */
static void fill(const struct pando_reactor *reactor, struct pando_slot *slot, const struct pando_connection *connection)
{
    slot->epoch = reactor->epoch;
    slot->turn = connection->request.turn;
    slot->head_bytes = connection->head_bytes;
    slot->body_bytes = connection->body_bytes;
    slot->file_bytes = connection->spooled;
    slot->arrived = connection->request.arrived;
    slot->listener = connection->listener;
    slot->flags = flags_of(connection);
    memcpy(slot->remote, connection->remote, sizeof(slot->remote));
    if (connection->head_bytes <= PANDO_SLOT_BYTES)
        memcpy(slot->data, connection->in.data, connection->head_bytes + connection->body_bytes);
}

static uint32_t next_turn(struct pando_reactor *reactor)
{
    if (++reactor->turn == 0)
        reactor->turn = 1;
    return reactor->turn;
}

/* It is nowhere now. */
static struct pando_connection *take_back(struct pando_reactor *reactor, struct pando_reactor_lane *lane)
{
    struct pando_connection *connection = lane->offered;
    if (lane->claimed || !pando_lane_withdraw(lane->shared, connection->request.turn))
        return NULL;
    lane->offered = NULL;
    reactor->offered_count--;
    connection->request.place = PANDO_NOWHERE;
    connection->request.lane = PANDO_NONE;
    return connection;
}

/* A worker that wants no request has not claimed this one: it is the first of those that wait. */
static void take_back_from_closed(struct pando_reactor *reactor, struct pando_reactor_lane *lane)
{
    if (!lane->offered || lane->claimed || !atomic_load(&lane->shared->closed))
        return;
    struct pando_connection *connection = take_back(reactor, lane);
    if (connection)
        pando_reactor_request_wait_again(reactor, connection);
}

static void offer(struct pando_reactor *reactor, uint32_t number, struct pando_connection *connection)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    struct pando_request *request = &connection->request;
    request->turn = next_turn(reactor);
    request->lane = number;
    request->place = PANDO_OFFERED;
    fill(reactor, &lane->shared->slot, connection);
    lane->offered = connection;
    lane->offered_at = reactor->now;
    lane->claimed = lane->ended = 0;
    reactor->offered_count++;
    pando_lane_offer(lane->shared, request->turn);
    /* What is offered must be visible before we look whether it sleeps: its worker does the same, the other way round. */
    lane->staged = !pando_lane_rouse(lane->shared);
    if (!lane->staged)
        pando_reactor_lane_wake(lane);
    take_back_from_closed(reactor, lane);
}

int pando_reactor_dispatch_withdraw(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_request *request = &connection->request;
    if (request->place == PANDO_QUEUED) {
        pando_queue_remove(&reactor->queue, connection);
        request->place = PANDO_NOWHERE;
        return 1;
    }
    return request->place == PANDO_OFFERED && take_back(reactor, &reactor->lanes[request->lane]) != NULL;
}

static uint64_t believable(uint64_t taken, uint64_t arrived)
{
    uint64_t now = pando_reactor_nanoseconds();
    return taken >= arrived && taken <= now ? taken : now;
}

void pando_reactor_dispatch_look(struct pando_reactor *reactor, uint32_t number)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    if (!lane->offered || lane->corrupt)
        return;
    struct pando_request *request = &lane->offered->request;
    if (!lane->claimed) {
        enum pando_offer state = pando_lane_offered(lane->shared, request->turn);
        if (state == PANDO_OFFER_MADE)
            return;
        if (state != PANDO_OFFER_CLAIMED && state != PANDO_OFFER_COPIED) {
            pando_reactor_lane_corrupt(reactor, number);
            return;
        }
        request->taken = believable(atomic_load_explicit(&lane->shared->taken, memory_order_relaxed), request->arrived);
        lane->claimed = 1;
        reactor->offered_count--;
    }
    if (lane->taken)
        return; /* its end is in the ring, or it never comes */
    lane->taken = lane->offered;
    lane->taken->request.place = PANDO_TAKEN;
    lane->offered = NULL;
    lane->claimed = lane->suspected = 0;
}

/* --- who gets what --- */

static int takes_requests(const struct pando_reactor_lane *lane)
{
    return !lane->corrupt && !lane->offered && !atomic_load_explicit(&lane->shared->closed, memory_order_relaxed) &&
           pando_lane_has_room(lane->shared);
}

static int sleeps(const struct pando_reactor_lane *lane)
{
    return atomic_load_explicit(&lane->shared->asleep, memory_order_relaxed) != 0;
}

/* Most recently idle first: it is the warmest, and those that sleep long stay shared. */
static uint32_t idle_lane(const struct pando_reactor *reactor)
{
    uint32_t latest = PANDO_NONE;
    uint64_t latest_since = 0;
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        const struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[i]];
        if (!sleeps(lane) || !takes_requests(lane))
            continue;
        uint64_t since = atomic_load_explicit(&lane->shared->idle_since, memory_order_relaxed);
        if (latest == PANDO_NONE || since > latest_since) {
            latest = reactor->open[i];
            latest_since = since;
        }
    }
    return latest;
}

/* A busy one, to be given a request ahead: one that has just ended its last, else the one that began last. */
static uint32_t busy_lane(const struct pando_reactor *reactor)
{
    uint32_t best = PANDO_NONE;
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        const struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[i]];
        if ((!lane->taken && !lane->ended) || !takes_requests(lane))
            continue;
        if (lane->ended)
            return reactor->open[i];
        if (best == PANDO_NONE || lane->offered_at > reactor->lanes[best].offered_at)
            best = reactor->open[i];
    }
    return best;
}

/* What has waited for a busy worker longest, at least so many milliseconds. */
static struct pando_reactor_lane *oldest_ahead(struct pando_reactor *reactor, uint32_t age)
{
    struct pando_reactor_lane *oldest = NULL;
    for (uint32_t i = 0; reactor->offered_count > 0 && i < reactor->open_count; i++) {
        struct pando_reactor_lane *lane = open_lane(reactor, i);
        if (!lane->offered || lane->claimed || !lane->staged || reactor->now - lane->offered_at < age)
            continue;
        if (!oldest || lane->offered->request.arrived < oldest->offered->request.arrived)
            oldest = lane;
    }
    return oldest;
}

/* What its worker claims at this moment stays there. */
static struct pando_connection *steal(struct pando_reactor *reactor, uint32_t age)
{
    struct pando_reactor_lane *lane;
    while ((lane = oldest_ahead(reactor, age))) {
        struct pando_connection *connection = take_back(reactor, lane);
        if (connection)
            return connection;
        lane->staged = 0;
    }
    return NULL;
}

static struct pando_connection *next_for(struct pando_reactor *reactor, uint32_t age)
{
    struct pando_connection *connection = steal(reactor, age);
    return connection ? connection : pando_queue_shift(&reactor->queue);
}

static void look_at_lanes(struct pando_reactor *reactor)
{
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        pando_reactor_dispatch_look(reactor, reactor->open[i]);
        take_back_from_closed(reactor, open_lane(reactor, i));
    }
}

void pando_reactor_dispatch(struct pando_reactor *reactor)
{
    struct pando_connection *connection;
    uint32_t lane;
    reactor->unannounced = 0;
    if (reactor->queue.count == 0 && reactor->offered_count == 0)
        return;
    look_at_lanes(reactor);
    while ((lane = idle_lane(reactor)) != PANDO_NONE && (connection = next_for(reactor, 0)))
        offer(reactor, lane, connection);
    while (reactor->queue.count > 0 && (lane = busy_lane(reactor)) != PANDO_NONE)
        offer(reactor, lane, next_for(reactor, STALE));
}

/* A worker that is idle can have something that waits. */
int pando_reactor_dispatch_due(const struct pando_reactor *reactor)
{
    return reactor->told_waiting > 0 && idle_lane(reactor) != PANDO_NONE;
}

void pando_reactor_dispatch_late(struct pando_reactor *reactor)
{
    for (uint32_t i = 0; reactor->offered_count > 0 && i < reactor->open_count; i++) {
        struct pando_reactor_lane *lane = open_lane(reactor, i);
        if (!lane->offered || lane->claimed)
            continue;
        if (lane->staged || reactor->now - lane->offered_at < LATE)
            continue;
        lane->staged = 1;
        pando_reactor_lane_wake(lane);
    }
}

/* --- how many wait --- */

uint32_t pando_reactor_dispatch_waiting(const struct pando_reactor *reactor)
{
    return reactor->queue.count + reactor->offered_count;
}

/* Those for which a worker was woken are as good as taken. */
static uint32_t without_worker(const struct pando_reactor *reactor)
{
    uint32_t count = reactor->queue.count;
    for (uint32_t i = 0; reactor->offered_count > 0 && i < reactor->open_count; i++) {
        const struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[i]];
        count += lane->offered && !lane->claimed && lane->staged;
    }
    return count;
}

void pando_reactor_dispatch_tell(struct pando_reactor *reactor)
{
    uint32_t waiting = without_worker(reactor);
    pando_stat_set(&reactor->stats->queued, pando_reactor_dispatch_waiting(reactor));
    if (waiting == reactor->told_waiting)
        return;
    reactor->told_waiting = waiting;
    atomic_store(&reactor->channel.shared->waiting, waiting);
}
