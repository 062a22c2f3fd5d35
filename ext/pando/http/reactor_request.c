/* Follows a request through a worker, and decides what happens to it when the worker or the client goes away. Runs in
 * the reactor. */
#include "reactor_private.h"

#include <stdatomic.h>
#include <string.h>

#define LONGEST 3600000000000u /* longest time in the queue that is believed, in nanoseconds */
#define RETRIES 3 /* of a request that was beside the one that ended its worker */
#define ANNOUNCE 16 /* requests queued before the reactor wakes workers: a wake-up may cost it the CPU */

int pando_reactor_requests_begin(struct pando_reactor *reactor)
{
    for (uint32_t pool = 0; pool < reactor->config->pools; pool++)
        if (pando_queue_init(&reactor->lines[pool].queue, reactor->config->max_queue[pool]) == -1 ||
            pando_queue_init(&reactor->lines[pool].heavy, reactor->config->max_queue[pool]) == -1)
            return -1;
    return 0;
}

void pando_reactor_requests_drop(struct pando_reactor *reactor)
{
    for (uint32_t pool = 0; pool < PANDO_REACTOR_POOLS; pool++) {
        pando_queue_drop(&reactor->lines[pool].queue);
        pando_queue_drop(&reactor->lines[pool].heavy);
    }
}

static struct pando_pool_stats *stats_of(struct pando_reactor *reactor, const struct pando_connection *connection)
{
    return &reactor->stats->pools[connection->request.pool];
}

/* To the front of the queue. -1: no memory. */
static int push_back(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (pando_queue_push_back(&pando_reactor_line_of(reactor, connection)->queue, connection) == -1)
        return -1;
    connection->request.place = PANDO_QUEUED;
    return 0;
}

static int push(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (pando_reactor_heavy_set_aside(reactor, connection))
        return 0;
    if (pando_queue_push(&pando_reactor_line_of(reactor, connection)->queue, connection) == -1)
        return -1;
    connection->request.place = PANDO_QUEUED;
    return 0;
}

/* 0: no memory. */
static int enqueue(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_request *request = &connection->request;
    if ((request->retried ? push_back(reactor, connection) : push(reactor, connection)) == -1)
        return 0;
    request->lane = PANDO_NONE;
    pando_reactor_timer_start(reactor, connection, PANDO_TIMER_QUEUE + request->pool);
    if (++reactor->unannounced >= ANNOUNCE)
        pando_reactor_dispatch(reactor);
    return 1;
}

static void shed(struct pando_reactor *reactor, struct pando_connection *connection, _Atomic uint64_t *reason)
{
    pando_reactor_request_settle(reactor, connection);
    pando_reactor_shed(reactor, connection, reason);
}

static int is_full(const struct pando_reactor *reactor, uint32_t pool)
{
    return pando_reactor_dispatch_waiting_in(reactor, pool) >= reactor->config->max_queue[pool];
}

/* The queue is full: the client with most requests in it loses its newest one. 0: that is this request. */
static int make_room(struct pando_reactor *reactor, const struct pando_connection *connection)
{
    pando_reactor_dispatch(reactor); /* workers may have claimed some meanwhile */
    if (!is_full(reactor, connection->request.pool))
        return 1;
    struct pando_connection *victim = pando_reactor_heavy_victim(reactor, connection);
    if (!victim)
        victim = pando_queue_victim(&pando_reactor_line_of(reactor, connection)->queue, connection);
    if (!victim)
        return 0;
    pando_reactor_dispatch_withdraw(reactor, victim);
    shed(reactor, victim, &stats_of(reactor, victim)->shed_queue);
    return 1;
}

/* The pool with the longest path that the request's lies at or below. */
static uint8_t pool_of(const struct pando_reactor *reactor, const struct pando_connection *connection)
{
    size_t longest = 0;
    uint8_t pool = 0;
    const char *one = reactor->config->pool_paths;
    for (size_t length; one && (length = strlen(one)) > 0; one += length + 1)
        if (length > longest && pando_reactor_input_lies_at(connection, one + 1)) {
            longest = length;
            pool = (uint8_t)(one[0] - '0');
        }
    return pool;
}

void pando_reactor_request_publish(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (pando_reactor_deserted(reactor)) {
        pando_reactor_shed(reactor, connection, &reactor->stats->shed_stopping);
        return;
    }
    uint8_t pool = connection->request.pool = connection->exchange.pool = pool_of(reactor, connection);
    if (is_full(reactor, pool) && !make_room(reactor, connection)) {
        pando_reactor_shed(reactor, connection, &stats_of(reactor, connection)->shed_queue);
        return;
    }
    if (connection->spool != -1)
        pando_reactor_spool_seal(connection);
    if (pando_reactor_must_end(reactor, connection)) /* may have become true since the head was read */
        connection->persistent = 0;
    connection->request = (struct pando_request){
        .lane = PANDO_NONE, .pool = pool, .arrived = pando_reactor_nanoseconds()};
    connection->state = PANDO_IN_FLIGHT;
    if (!enqueue(reactor, connection)) {
        pando_reactor_shed(reactor, connection, &reactor->stats->shed_resources);
        return;
    }
    pando_reactor_exchange_complete(connection);
    reactor->in_flight++;
    pando_stat_add(&reactor->stats->requests, 1);
}

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

void pando_reactor_request_copy(const struct pando_reactor *reactor, const struct pando_connection *connection,
                                struct pando_slot *slot)
{
    uint64_t begun = connection->exchange.body_begun;
    slot->epoch = reactor->epoch;
    slot->turn = connection->request.turn;
    slot->head_bytes = connection->head_bytes;
    slot->body_bytes = connection->body_bytes;
    slot->file_bytes = connection->spooled;
    slot->arrived = connection->request.arrived;
    slot->body_time = begun > 0 && begun < slot->arrived ? slot->arrived - begun : 0;
    slot->listener = connection->listener;
    slot->flags = flags_of(connection);
    memcpy(slot->remote, connection->remote, sizeof(slot->remote));
    if (connection->head_bytes <= PANDO_SLOT_BYTES)
        memcpy(slot->data, connection->in.data, connection->head_bytes + connection->body_bytes);
}

static void note_wait(struct pando_reactor *reactor, struct pando_connection *connection)
{
    const struct pando_request *request = &connection->request;
    uint64_t taken = request->taken ? request->taken : pando_reactor_nanoseconds();
    uint64_t waited = taken > request->arrived ? taken - request->arrived : 0;
    if (waited < LONGEST)
        pando_histogram_add(&reactor->stats->pools[request->pool].queue, waited);
    int claimed = request->lane != PANDO_NONE && (request->place == PANDO_TAKEN || request->claimed);
    pando_reactor_exchange_settled(connection, claimed ? &reactor->lanes[request->lane] : NULL, waited);
}

void pando_reactor_request_settle(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_request *request = &connection->request;
    note_wait(reactor, connection);
    pando_reactor_dispatch_forget(reactor, connection);
    *request = (struct pando_request){.lane = PANDO_NONE};
    reactor->in_flight--;
}

void pando_reactor_request_lend(struct pando_reactor *reactor, struct pando_connection *connection)
{
    connection->request.lent = 1;
    pando_reactor_timer_stop(reactor, connection);
    pando_reactor_connection_look_away(reactor, connection);
    connection->in_end = connection->raw; /* the worker has what follows the head */
}

/* RFC 9112 section 9.6: a half-closed connection still gets its answer. The flag is there for an application that
 * asks. A lane may have an offer in each of its slots, but only one request that is taken. */
void pando_reactor_request_half_closed(struct pando_reactor *reactor, const struct pando_connection *connection)
{
    const struct pando_request *request = &connection->request;
    if (!connection->read_ended)
        return;
    if (request->place == PANDO_OFFERED)
        atomic_store(&reactor->lanes[request->lane].shared->slots[request->slot].half_closed, request->turn);
    else if (request->place == PANDO_TAKEN)
        atomic_store(&reactor->lanes[request->lane].shared->half_closed, request->turn);
}

/* Tells the worker that nobody wants the answer. The worker checks at each frame, and after it has read the slot. */
static void tell_gone(struct pando_reactor *reactor, const struct pando_request *request)
{
    if (request->place == PANDO_OFFERED || request->place == PANDO_TAKEN)
        atomic_store(&reactor->lanes[request->lane].shared->gone, request->turn);
}

/* Whether its worker gave it up because it leaves. */
static int was_cut(const struct pando_reactor *reactor, const struct pando_request *request)
{
    return request->place == PANDO_TAKEN && atomic_load(&reactor->lanes[request->lane].shared->cut) == request->turn;
}

void pando_reactor_request_abandon(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_request *request = &connection->request;
    if (request->place == PANDO_NOWHERE)
        return;
    if (!pando_reactor_dispatch_withdraw(reactor, connection))
        tell_gone(reactor, request);
    pando_reactor_request_settle(reactor, connection);
}

/* If a worker has claimed it meanwhile, it was in time. */
void pando_reactor_request_expired(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (pando_reactor_dispatch_withdraw(reactor, connection))
        shed(reactor, connection, &stats_of(reactor, connection)->shed_queue_time);
}

/* No worker will answer it, or finish its answer. cut: because its worker leaves. */
static void fail(struct pando_reactor *reactor, struct pando_connection *connection, int status, int cut)
{
    int answered = connection->request.answered, lent = connection->request.lent;
    tell_gone(reactor, &connection->request);
    pando_reactor_request_settle(reactor, connection);
    if (lent && pando_reactor_connection_watch(reactor, connection) == -1) {
        pando_reactor_connection_close(reactor, connection);
        return;
    }
    if (answered) {
        pando_stat_add(cut ? &reactor->stats->streams_cut : &reactor->stats->resets, 1);
        pando_reactor_connection_reset(reactor, connection);
    } else {
        pando_reactor_refuse(reactor, connection, status);
    }
}

void pando_reactor_request_fail(struct pando_reactor *reactor, struct pando_connection *connection, int status)
{
    fail(reactor, connection, status, was_cut(reactor, &connection->request));
}

/* RFC 9110 section 9.2.1: a safe request may be made twice. */
static int may_retry(const struct pando_reactor *reactor, const struct pando_connection *connection, uint32_t cause)
{
    const struct pando_request *request = &connection->request;
    uint8_t most = cause == PANDO_REACTOR_DIED ? 1 : cause == PANDO_REACTOR_BESIDE ? RETRIES : 0;
    return reactor->config->retry && connection->safe && !request->answered && !request->informed &&
           request->retried < most && !request->lent;
}

static void lost(struct pando_reactor *reactor, struct pando_connection *connection, uint32_t cause)
{
    struct pando_request *request = &connection->request;
    if (request->lent && reactor->lanes[request->lane].corrupt)
        request->answered = 1; /* nobody can say, so assume the worst */
    if (may_retry(reactor, connection, cause)) {
        note_wait(reactor, connection);
        pando_reactor_dispatch_forget(reactor, connection);
        request->retried++;
        request->taken = 0;
        if (enqueue(reactor, connection)) {
            pando_stat_add(&reactor->stats->retried, 1);
            return;
        }
    }
    int late = cause == PANDO_REACTOR_LEFT_LATE;
    fail(reactor, connection, late || cause == PANDO_REACTOR_TIMEOUT ? 504 : 502, late || was_cut(reactor, request));
}

/* The request goes back to the front of the queue. */
void pando_reactor_request_wait_again(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (push_back(reactor, connection) == -1)
        shed(reactor, connection, &reactor->stats->shed_resources);
}

/* The oldest offer on a lane without a known claim: its worker may have claimed it and damaged the word that
 * said so. */
static struct pando_connection *suspect_of(const struct pando_reactor_lane *lane)
{
    struct pando_connection *oldest = NULL;
    for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS && !lane->taken; slot++) {
        struct pando_connection *one = lane->offered[slot];
        if (one && (!oldest || (int32_t)(one->request.turn - oldest->request.turn) < 0))
            oldest = one;
    }
    return oldest;
}

void pando_reactor_requests_lost(struct pando_reactor *reactor, uint32_t number, uint32_t cause)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    pando_reactor_dispatch_note(reactor, lane);
    const struct pando_connection *suspect = suspect_of(lane);
    for (uint32_t slot = PANDO_LANE_SLOTS; slot > 0; slot--) {
        struct pando_connection *offered = lane->offered[slot - 1];
        if (offered && pando_reactor_dispatch_withdraw(reactor, offered))
            pando_reactor_request_wait_again(reactor, offered);
        else if (offered) /* a request behind another has not caused the damage */
            lost(reactor, offered, offered->request.claimed || offered == suspect ? cause : PANDO_REACTOR_DIED);
    }
    if (lane->taken)
        lost(reactor, lane->taken, cause);
}

int pando_reactor_deserted(const struct pando_reactor *reactor)
{
    return reactor->draining && reactor->open_count == 0;
}

void pando_reactor_requests_give_up(struct pando_reactor *reactor)
{
    struct pando_connection *connection;
    for (uint32_t pool = 0; pool < reactor->config->pools; pool++) {
        struct pando_reactor_line *line = &reactor->lines[pool];
        while ((connection = pando_queue_shift(line->queue.count > 0 ? &line->queue : &line->heavy))) {
            connection->request.place = PANDO_NOWHERE;
            shed(reactor, connection, &reactor->stats->shed_stopping);
        }
    }
}
