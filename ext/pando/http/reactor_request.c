/* Requests on their way through the channel, and what becomes of them when a
 * worker goes, or the client. */
#include "reactor_private.h"

#include <string.h>

#define LONGEST 3600000000000u /* nanoseconds in the queue that are believed */
#define ANNOUNCE 16 /* requests published before somebody is woken for them: a wake-up may cost us the processor */

/* What the workers read. The reactor never reads it again. */
static void fill(struct pando_reactor *reactor, struct pando_connection *connection, uint32_t number, uint32_t flags)
{
    struct pando_slot *slot = &reactor->channel.shared->slots[number];
    int head_in_file = connection->head_bytes > PANDO_SLOT_BYTES;

    if (head_in_file)
        flags |= PANDO_SLOT_ALL_IN_FILE;
    else
        memcpy(slot->data, connection->in.data, connection->head_bytes + connection->body_bytes);
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
    slot->head_bytes = connection->head_bytes;
    slot->body_bytes = connection->body_bytes;
    slot->file_bytes = connection->spooled;
    slot->arrived = reactor->requests[number].arrived = pando_reactor_nanoseconds();
    pando_stat_set(&slot->taken, 0);
    slot->listener = connection->listener;
    memcpy(slot->remote, connection->remote, sizeof(slot->remote));
    slot->flags = flags;
}

static void offer(struct pando_reactor *reactor, struct pando_connection *connection, uint32_t slot, uint32_t flags)
{
    struct pando_request *request = &reactor->requests[slot];
    fill(reactor, connection, slot, flags);
    request->lane = PANDO_NONE;
    request->suspected = 0;
    request->turn = pando_channel_publish(&reactor->channel, slot);
    if (request->turn == 0) {
        pando_reactor_request_settle(reactor, slot);
        pando_reactor_shed(reactor, connection, &reactor->stats->shed_queue);
        return;
    }
    pando_reactor_timer_start(reactor, connection, PANDO_TIMER_QUEUE);
    if (++reactor->unannounced >= ANNOUNCE)
        pando_reactor_requests_announce(reactor);
}

void pando_reactor_requests_announce(struct pando_reactor *reactor)
{
    if (reactor->unannounced > 0)
        pando_reactor_lanes_wake(reactor, reactor->unannounced);
    reactor->unannounced = 0;
}

void pando_reactor_request_publish(struct pando_reactor *reactor, struct pando_connection *connection)
{
    uint32_t depth = pando_channel_depth(&reactor->channel);
    if (pando_reactor_deserted(reactor)) {
        pando_reactor_shed(reactor, connection, &reactor->stats->shed_stopping);
        return;
    }
    if (reactor->free_count == 0 || depth >= reactor->config->max_queue) {
        pando_reactor_shed(reactor, connection, &reactor->stats->shed_queue);
        return;
    }
    if (connection->spool != -1)
        pando_reactor_spool_seal(connection);
    if (pando_reactor_must_end(reactor, connection)) /* since the head was read */
        connection->persistent = 0;
    uint32_t slot = reactor->free_slots[--reactor->free_count];
    reactor->requests[slot] = (struct pando_request){.connection = connection, .busy = 1};
    reactor->in_flight++;
    connection->slot = slot;
    connection->state = PANDO_IN_FLIGHT;
    pando_stat_add(&reactor->stats->requests, 1);
    offer(reactor, connection, slot, 0);
}

/* Until now, if nobody took it; else the worker's word counts, unless it cannot be. */
static void note_wait(struct pando_reactor *reactor, uint32_t slot)
{
    uint64_t arrived = reactor->requests[slot].arrived;
    uint64_t taken = pando_stat_get(&reactor->channel.shared->slots[slot].taken);
    if (taken == 0)
        taken = pando_reactor_nanoseconds();
    if (taken >= arrived && taken - arrived < LONGEST)
        pando_stats_waited(reactor->stats, taken - arrived);
}

void pando_reactor_request_settle(struct pando_reactor *reactor, uint32_t slot)
{
    struct pando_request *request = &reactor->requests[slot];
    note_wait(reactor, slot);
    request->connection->slot = PANDO_NONE;
    *request = (struct pando_request){0};
    pando_channel_release(&reactor->channel, slot);
    reactor->free_slots[reactor->free_count++] = slot;
    reactor->in_flight--;
}

void pando_reactor_request_lend(struct pando_reactor *reactor, uint32_t slot)
{
    struct pando_request *request = &reactor->requests[slot];
    request->lent = 1;
    pando_reactor_timer_stop(reactor, request->connection);
    pando_reactor_connection_look_away(reactor, request->connection);
    pando_reactor_input_release(reactor, request->connection);
}

/* RFC 9112 section 9.6: no reason not to answer. Who wants to know may look. */
void pando_reactor_request_half_closed(struct pando_reactor *reactor, const struct pando_connection *connection)
{
    if (connection->slot != PANDO_NONE)
        __atomic_fetch_or(&reactor->channel.shared->slots[connection->slot].flags, PANDO_SLOT_HALF_CLOSED,
                          __ATOMIC_RELAXED);
}

static int withdraw(struct pando_reactor *reactor, uint32_t slot)
{
    const struct pando_request *request = &reactor->requests[slot];
    return request->lane == PANDO_NONE && pando_channel_withdraw(&reactor->channel, slot, request->turn);
}

static void shed(struct pando_reactor *reactor, uint32_t slot, _Atomic uint64_t *reason)
{
    struct pando_connection *connection = reactor->requests[slot].connection;
    pando_reactor_request_settle(reactor, slot);
    pando_reactor_shed(reactor, connection, reason);
}

/* A worker that has it is told by the claim: at its next frame, or when it has read the slot. */
void pando_reactor_request_abandon(struct pando_reactor *reactor, struct pando_connection *connection)
{
    uint32_t slot = connection->slot;
    if (slot == PANDO_NONE)
        return;
    withdraw(reactor, slot);
    pando_reactor_request_settle(reactor, slot);
}

/* If a worker has it meanwhile, its time in the queue was short enough. */
void pando_reactor_request_expired(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->slot != PANDO_NONE && withdraw(reactor, connection->slot))
        shed(reactor, connection->slot, &reactor->stats->shed_queue_time);
}

void pando_reactor_request_fail(struct pando_reactor *reactor, uint32_t slot, int status)
{
    struct pando_connection *connection = reactor->requests[slot].connection;
    int answered = reactor->requests[slot].answered, lent = reactor->requests[slot].lent;
    pando_reactor_request_settle(reactor, slot);
    if (lent && pando_reactor_connection_watch(reactor, connection) == -1) {
        pando_reactor_connection_close(reactor, connection);
        return;
    }
    if (answered) {
        pando_stat_add(&reactor->stats->resets, 1);
        pando_reactor_connection_reset(reactor, connection);
    } else {
        pando_reactor_refuse(reactor, connection, status);
    }
}

/* RFC 9110 section 9.2.1: what a safe method asks for may be done twice. */
static int may_retry(const struct pando_reactor *reactor, const struct pando_request *request, uint32_t cause)
{
    return reactor->config->retry && cause == PANDO_REACTOR_DIED && request->connection->safe && !request->answered &&
           !request->informed && !request->retried && !request->lent;
}

static void lost(struct pando_reactor *reactor, uint32_t slot, uint32_t cause)
{
    struct pando_request *request = &reactor->requests[slot];
    if (request->lent && reactor->lanes[request->lane].corrupt)
        request->answered = 1; /* for all we know */
    if (!may_retry(reactor, request, cause)) {
        pando_reactor_request_fail(reactor, slot, cause == PANDO_REACTOR_TIMEOUT ? 504 : 502);
        return;
    }
    note_wait(reactor, slot);
    request->retried = 1;
    pando_stat_add(&reactor->stats->retried, 1);
    offer(reactor, request->connection, slot, PANDO_SLOT_RETRY);
}

int pando_reactor_deserted(const struct pando_reactor *reactor)
{
    return reactor->draining && reactor->open_count == 0;
}

void pando_reactor_requests_give_up(struct pando_reactor *reactor)
{
    for (uint32_t slot = 0; slot < PANDO_CHANNEL_SLOTS; slot++)
        if (reactor->requests[slot].busy && withdraw(reactor, slot))
            shed(reactor, slot, &reactor->stats->shed_stopping);
}

static uint32_t holder(const struct pando_reactor *reactor, uint32_t slot)
{
    const struct pando_request *request = &reactor->requests[slot];
    if (request->lane != PANDO_NONE)
        return request->lane;
    return pando_channel_claimant(&reactor->channel, slot, request->turn);
}

void pando_reactor_requests_lost(struct pando_reactor *reactor, uint32_t lane, uint32_t cause)
{
    for (uint32_t slot = 0; slot < PANDO_CHANNEL_SLOTS; slot++)
        if (reactor->requests[slot].busy && holder(reactor, slot) == lane)
            lost(reactor, slot, cause);
}

/* A claim by nobody can only come from a worker that wrote where it must not. A lane that we were not told of yet
 * may be right: its request is left alone the first times. */
void pando_reactor_requests_audit(struct pando_reactor *reactor)
{
    for (uint32_t slot = 0; slot < PANDO_CHANNEL_SLOTS && reactor->in_flight > 0; slot++) {
        struct pando_request *request = &reactor->requests[slot];
        if (!request->busy)
            continue;
        uint32_t lane = holder(reactor, slot);
        int unreadable = lane < PANDO_CHANNEL_LANES && reactor->lanes[lane].corrupt;
        if (lane == PANDO_CLAIM_OFFERED || (lane < PANDO_CHANNEL_LANES && reactor->lanes[lane].open && !unreadable))
            request->suspected = 0;
        else if (unreadable || ++request->suspected == 3)
            pando_reactor_request_fail(reactor, slot, 502);
    }
}
