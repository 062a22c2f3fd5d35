/* Decides which worker gets which request. Runs in the reactor.
 *
 * A request waits in the queue, in the reactor's private memory, until a worker is idle. Then the reactor offers it
 * on that worker's lane and wakes the worker. While all workers are busy, each lane gets some requests ahead, so that
 * a worker that finishes one request finds the next without waiting for the reactor: as many as it serves in a
 * moment, and at least one. A fast worker gets requests ahead before the reactor wakes others. It is still one queue:
 * as soon as another worker is idle, it gets the requests that wait for a busy worker at once, and those that wait
 * for a fast one soon after. */
#include "reactor_private.h"

#include <stdatomic.h>

#define STALE 5u       /* milliseconds ahead of a busy worker, after which another worker gets the request next */
#define LATE 100u      /* milliseconds in which an idle worker should claim what it was woken for */
#define SLOWEST 60000000u

static struct pando_reactor_lane *open_lane(struct pando_reactor *reactor, uint32_t place)
{
    return &reactor->lanes[reactor->open[place]];
}

/* --- one offer --- */

static uint32_t next_turn(struct pando_reactor *reactor)
{
    if (++reactor->turn == 0)
        reactor->turn = 1;
    return reactor->turn;
}

/* Clears the reactor's own record of the offer; the caller settles the word on the lane. */
static void clear(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_request *request = &connection->request;
    struct pando_reactor_lane *lane = &reactor->lanes[request->lane];
    lane->offered[request->slot] = NULL;
    lane->slots &= ~(1u << request->slot);
    lane->offers--;
    pando_reactor_line_of(reactor, connection)->offered -= !request->claimed;
}

/* 1: the request has no place now; 0: its worker has claimed it. */
static int take_back(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_request *request = &connection->request;
    struct pando_lane *shared = reactor->lanes[request->lane].shared;
    if (request->claimed || !pando_lane_withdraw(shared, request->slot, request->turn))
        return 0;
    clear(reactor, connection);
    request->place = PANDO_NOWHERE;
    request->lane = PANDO_NONE;
    pando_reactor_heavy_settle(reactor, connection);
    return 1;
}

/* Takes unclaimed offers back from a worker that accepts no more requests; they go to the front of the queue. */
static void take_back_from_closed(struct pando_reactor *reactor, struct pando_reactor_lane *lane)
{
    if (lane->offers == 0 || !atomic_load(&lane->shared->closed))
        return;
    for (uint32_t slot = PANDO_LANE_SLOTS; slot > 0; slot--) {
        struct pando_connection *connection = lane->offered[slot - 1];
        if (connection && take_back(reactor, connection))
            pando_reactor_request_wait_again(reactor, connection);
    }
}

/* `ready`: when the worker took the next request, or went to sleep. A long interval counts little: the CPU may have
 * been given to another process. */
static void note_pace(struct pando_reactor_lane *lane, uint64_t ready)
{
    uint64_t since = lane->last_taken && ready > lane->last_taken ? (ready - lane->last_taken) / 1000 : 0;
    if (since == 0)
        return;
    since = since < SLOWEST ? since : SLOWEST;
    if (lane->pace == 0 || since < lane->pace)
        lane->pace = (uint32_t)((lane->pace + since + 1) / 2);
    else
        lane->pace += (uint32_t)((since - lane->pace) / 16);
}

static void offer(struct pando_reactor *reactor, uint32_t number, struct pando_connection *connection)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    struct pando_request *request = &connection->request;
    request->slot = pando_reactor_choice_slot(lane);
    if (request->slot == PANDO_NONE) { /* there was one a moment ago: the worker has written where it must not */
        pando_reactor_request_wait_again(reactor, connection);
        return;
    }
    request->turn = next_turn(reactor);
    request->lane = number;
    request->place = PANDO_OFFERED;
    request->claimed = 0;
    request->offered_at = reactor->now;
    pando_reactor_heavy_offer(reactor, connection);
    pando_reactor_request_copy(reactor, connection, &lane->shared->slots[request->slot]);
    lane->offered[request->slot] = connection;
    lane->slots |= 1u << request->slot;
    lane->offers++;
    lane->ended = 0;
    pando_reactor_line_of(reactor, connection)->offered++;
    pando_lane_offer(lane->shared, request->slot, request->turn);
    /* The offer must be visible before the reactor checks whether the worker sleeps. The worker does the same in
     * reverse. */
    request->staged = !pando_lane_rouse(lane->shared);
    if (!request->staged) {
        if (reactor->threads > 0) /* a lane of many is seldom so busy that it takes one request right after another */
            note_pace(lane, atomic_load(&lane->shared->idle_since));
        lane->last_taken = lane->stepped_at = 0;
        lane->roused = 1;
    }
    take_back_from_closed(reactor, lane);
}

/* Wakes workers only after all offers are made: a wake-up may cost the reactor its CPU. */
static void wake_roused(struct pando_reactor *reactor)
{
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        struct pando_reactor_lane *lane = open_lane(reactor, i);
        if (lane->roused)
            pando_reactor_lane_wake(lane);
        lane->roused = 0;
    }
}

int pando_reactor_dispatch_withdraw(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_request *request = &connection->request;
    if (request->place == PANDO_QUEUED || request->place == PANDO_SET_ASIDE) {
        struct pando_reactor_line *line = pando_reactor_line_of(reactor, connection);
        pando_queue_remove(request->place == PANDO_QUEUED ? &line->queue : &line->heavy, connection);
        request->place = PANDO_NOWHERE;
        return 1;
    }
    return request->place == PANDO_OFFERED && take_back(reactor, connection);
}

void pando_reactor_dispatch_forget(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_request *request = &connection->request;
    if (request->place == PANDO_TAKEN)
        reactor->lanes[request->lane].taken = NULL;
    if (request->place == PANDO_OFFERED) {
        clear(reactor, connection);
        reactor->lanes[request->lane].stepped_at = request->offered_at; /* its worker has it */
    }
    pando_reactor_heavy_settle(reactor, connection);
    request->place = PANDO_NOWHERE;
}

/* --- what workers have claimed --- */

static uint64_t believable(const struct pando_reactor *reactor, uint64_t taken, uint64_t arrived)
{
    if (taken >= arrived && taken / 1000000u <= reactor->now) /* the usual case, without asking the clock */
        return taken;
    uint64_t now = pando_reactor_nanoseconds();
    return taken >= arrived && taken <= now ? taken : now;
}

/* 0: the state of some offer is unreadable. */
static int note_once(struct pando_reactor *reactor, const struct pando_reactor_lane *lane)
{
    int sound = 1;
    PANDO_EACH_OFFER (lane, slot) {
        struct pando_request *request = &lane->offered[slot]->request;
        if (request->claimed)
            continue;
        enum pando_offer state = pando_lane_offered(lane->shared, slot, request->turn);
        if (state == PANDO_OFFER_MADE)
            continue;
        if (state != PANDO_OFFER_CLAIMED && state != PANDO_OFFER_COPIED) {
            sound = 0;
            continue;
        }
        uint64_t taken = atomic_load_explicit(&lane->shared->taken[slot], memory_order_relaxed);
        request->taken = believable(reactor, taken, request->arrived);
        request->claimed = 1;
        pando_reactor_line_of(reactor, lane->offered[slot])->offered--;
    }
    return sound;
}

/* The worker goes on claiming while the reactor looks: a claim in one slot may have followed a claim in a slot that
 * was checked before. Hence the repetition. */
int pando_reactor_dispatch_note(struct pando_reactor *reactor, const struct pando_reactor_lane *lane)
{
    int sound;
    uint32_t before;
    do {
        before = reactor->lines[lane->pool].offered;
        sound = note_once(reactor, lane);
    } while (reactor->lines[lane->pool].offered != before);
    return sound;
}

void pando_reactor_dispatch_look(struct pando_reactor *reactor, uint32_t number)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    if (lane->offers == 0 || lane->corrupt)
        return;
    if (!pando_reactor_dispatch_note(reactor, lane)) {
        pando_reactor_lane_corrupt(reactor, number);
        return;
    }
    if (lane->taken) /* or the end of its answer is still in the ring */
        return;
    struct pando_connection *first = NULL;
    PANDO_EACH_OFFER (lane, slot) {
        struct pando_connection *one = lane->offered[slot];
        if (one->request.claimed && (!first || (int32_t)(one->request.turn - first->request.turn) < 0))
            first = one;
    }
    if (!first)
        return;
    clear(reactor, first);
    first->request.place = PANDO_TAKEN;
    lane->taken = first;
    pando_reactor_request_half_closed(reactor, first); /* another offer may have its slot */
    lane->stepped_at = first->request.offered_at;
    lane->suspected = 0;
    note_pace(lane, first->request.taken);
    lane->last_taken = first->request.taken;
}

/* --- choosing the next request for a worker --- */

static struct pando_connection *older(struct pando_connection *one, struct pando_connection *other)
{
    return !one || (other && other->request.arrived < one->request.arrived) ? other : one;
}

/* Whether another worker may have it. Waking one takes longer than a fast, busy worker takes to reach it. */
static int is_anybodys(const struct pando_reactor *reactor, const struct pando_reactor_lane *lane,
                       const struct pando_connection *one)
{
    if (one->request.claimed || !one->request.staged)
        return 0;
    return !pando_reactor_choice_is_fast(lane) || reactor->now - one->request.offered_at >= PANDO_PATIENCE;
}

/* The request that has waited longest for a busy worker of the pool, at least `age` milliseconds. */
static struct pando_connection *oldest_ahead(struct pando_reactor *reactor, uint32_t pool, uint32_t age)
{
    struct pando_connection *oldest = NULL;
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        const struct pando_reactor_lane *lane = open_lane(reactor, i);
        if (lane->pool != pool)
            continue;
        PANDO_EACH_OFFER (lane, slot) {
            struct pando_connection *one = lane->offered[slot];
            if (is_anybodys(reactor, lane, one) && reactor->now - one->request.offered_at >= age)
                oldest = older(oldest, one);
        }
    }
    return oldest;
}

/* A request that its worker claims at this very moment stays there. */
static struct pando_connection *steal(struct pando_reactor *reactor, uint32_t pool, uint32_t age)
{
    struct pando_connection *connection;
    while (reactor->lines[pool].offered > 0 && (connection = oldest_ahead(reactor, pool, age))) {
        if (take_back(reactor, connection))
            return connection;
        connection->request.staged = 0;
    }
    return NULL;
}

static struct pando_connection *next_for_idle(struct pando_reactor *reactor, uint32_t pool)
{
    struct pando_connection *connection = steal(reactor, pool, 0);
    return connection ? connection : pando_reactor_heavy_next(reactor, &reactor->lines[pool]);
}

/* Searches for stale requests at most once per millisecond. */
static struct pando_connection *next_for_busy(struct pando_reactor *reactor, uint32_t pool)
{
    struct pando_reactor_line *line = &reactor->lines[pool];
    struct pando_connection *connection = line->stale_at == reactor->now ? NULL : steal(reactor, pool, STALE);
    if (connection)
        return connection;
    line->stale_at = reactor->now;
    return pando_reactor_heavy_next(reactor, line);
}

static void look_at_lanes(struct pando_reactor *reactor)
{
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        pando_reactor_dispatch_look(reactor, reactor->open[i]);
        take_back_from_closed(reactor, open_lane(reactor, i));
    }
}

static void dispatch_in(struct pando_reactor *reactor, uint32_t pool)
{
    struct pando_reactor_line *line = &reactor->lines[pool];
    struct pando_connection *connection;
    uint32_t lane;
    while (line->queue.count > 0 && (lane = pando_reactor_choice_fast(reactor, pool)) != PANDO_NONE &&
           (connection = pando_reactor_heavy_next_light(reactor, line)))
        offer(reactor, lane, connection);
    while ((lane = pando_reactor_choice_idle(reactor, pool)) != PANDO_NONE &&
           (connection = next_for_idle(reactor, pool)))
        offer(reactor, lane, connection);
    while (line->queue.count + pando_reactor_heavy_due(reactor, line) > 0 &&
           (lane = pando_reactor_choice_busy(reactor, pool)) != PANDO_NONE &&
           (connection = next_for_busy(reactor, pool)))
        offer(reactor, lane, connection);
}

void pando_reactor_dispatch(struct pando_reactor *reactor)
{
    reactor->unannounced = 0;
    if (pando_reactor_dispatch_waiting(reactor) == 0)
        return;
    look_at_lanes(reactor);
    for (uint32_t pool = 0; pool < reactor->config->pools; pool++)
        if (pando_reactor_dispatch_waiting_in(reactor, pool) > 0)
            dispatch_in(reactor, pool);
    wake_roused(reactor);
}

/* Whether an idle worker can have a request that waits. */
int pando_reactor_dispatch_due(struct pando_reactor *reactor)
{
    for (uint32_t pool = 0; pool < reactor->config->pools; pool++)
        if (reactor->lines[pool].told > 0 && pando_reactor_choice_idle(reactor, pool) != PANDO_NONE)
            return 1;
    return 0;
}

void pando_reactor_dispatch_late(struct pando_reactor *reactor)
{
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        struct pando_reactor_lane *lane = open_lane(reactor, i);
        PANDO_EACH_OFFER (lane, slot) {
            struct pando_connection *one = lane->offered[slot];
            if (one->request.claimed || one->request.staged || reactor->now - one->request.offered_at < LATE)
                continue;
            one->request.staged = 1;
            pando_reactor_lane_wake(lane);
        }
    }
}

/* --- how many wait --- */

uint32_t pando_reactor_dispatch_waiting_in(const struct pando_reactor *reactor, uint32_t pool)
{
    const struct pando_reactor_line *line = &reactor->lines[pool];
    return line->queue.count + line->heavy.count + line->offered;
}

uint32_t pando_reactor_dispatch_waiting(const struct pando_reactor *reactor)
{
    uint32_t count = 0;
    for (uint32_t pool = 0; pool < reactor->config->pools; pool++)
        count += pando_reactor_dispatch_waiting_in(reactor, pool);
    return count;
}

int pando_reactor_dispatch_offers(const struct pando_reactor *reactor)
{
    for (uint32_t pool = 0; pool < reactor->config->pools; pool++)
        if (reactor->lines[pool].offered > 0)
            return 1;
    return 0;
}

/* Leaves out requests for which a worker was woken, or that a fast worker will reach soon: they are as good as
 * taken. */
static uint32_t without_worker(const struct pando_reactor *reactor, uint32_t pool)
{
    const struct pando_reactor_line *line = &reactor->lines[pool];
    uint32_t count = line->queue.count + pando_reactor_heavy_due(reactor, line);
    for (uint32_t i = 0; line->offered > 0 && i < reactor->open_count; i++) {
        const struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[i]];
        if (lane->pool != pool)
            continue;
        PANDO_EACH_OFFER (lane, slot)
            count += is_anybodys(reactor, lane, lane->offered[slot]);
    }
    return count;
}

void pando_reactor_dispatch_tell(struct pando_reactor *reactor)
{
    for (uint32_t pool = 0; pool < reactor->config->pools; pool++) {
        struct pando_reactor_line *line = &reactor->lines[pool];
        uint32_t waiting = without_worker(reactor, pool);
        pando_stat_set(&reactor->stats->pools[pool].queued, pando_reactor_dispatch_waiting_in(reactor, pool));
        pando_stat_set(&reactor->stats->pools[pool].set_aside, line->heavy.count);
        if (waiting != line->told)
            atomic_store(&reactor->channel.shared->waiting[pool], waiting);
        line->told = waiting;
    }
}
