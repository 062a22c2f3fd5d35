/* Timeouts of connections. Runs in the reactor. All timers of a kind have the same duration, so each kind is a list
 * in order of expiry: starting, stopping and expiring take constant time. */
#include "reactor_private.h"

#define NEVER (UINT64_MAX >> 2) /* far away, but sums with it do not overflow */
#define LINGER_SILENCE 500u
#define SLOWEST 1024 /* bytes per second that a client must keep up */
#define WINDOW 10000 /* milliseconds of credit at most: a fast start does not count for ever */

static uint32_t kinds(const struct pando_reactor *reactor)
{
    return PANDO_TIMER_QUEUE + reactor->config->pools;
}

void pando_reactor_timers_init(struct pando_reactor *reactor)
{
    const struct pando_reactor_config *config = reactor->config;
    reactor->durations[PANDO_TIMER_HEADER] = config->header_timeout;
    reactor->durations[PANDO_TIMER_BODY] = config->body_timeout;
    reactor->durations[PANDO_TIMER_IDLE] = config->idle_timeout;
    reactor->durations[PANDO_TIMER_WRITE] = (config->write_timeout + PANDO_WRITE_LOOKS - 1) / PANDO_WRITE_LOOKS;
    reactor->durations[PANDO_TIMER_LINGER] = LINGER_SILENCE;
    for (uint32_t pool = 0; pool < config->pools; pool++)
        reactor->durations[PANDO_TIMER_QUEUE + pool] = config->queue_timeout[pool];
    for (uint32_t kind = 0; kind < kinds(reactor); kind++)
        pando_list_init(&reactor->timers[kind]);
}

void pando_reactor_timer_start(struct pando_reactor *reactor, struct pando_connection *connection, uint32_t kind)
{
    struct pando_timer *timer = &connection->timer;
    pando_reactor_timer_stop(reactor, connection);
    timer->kind = (uint8_t)kind;
    timer->due = reactor->durations[kind] == 0 ? NEVER : reactor->now + reactor->durations[kind];
    pando_list_append(&reactor->timers[kind], &timer->node);
    reactor->running[kind]++;
}

void pando_reactor_timer_stop(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_timer *timer = &connection->timer;
    if (pando_list_empty(&timer->node))
        return;
    pando_list_remove(&timer->node);
    reactor->running[timer->kind]--;
}

int pando_reactor_timer_runs(const struct pando_connection *connection, uint32_t kind)
{
    return !pando_list_empty(&connection->timer.node) && connection->timer.kind == kind;
}

static struct pando_connection *first_of(const struct pando_reactor *reactor, uint32_t kind)
{
    const struct pando_node *list = &reactor->timers[kind];
    return pando_list_empty(list) ? NULL : pando_owner(list->next, struct pando_connection, timer.node);
}

void pando_reactor_timers_expire(struct pando_reactor *reactor)
{
    for (uint32_t kind = 0; kind < kinds(reactor); kind++) {
        struct pando_connection *connection;
        while ((connection = first_of(reactor, kind)) && connection->timer.due <= reactor->now) {
            pando_reactor_timer_stop(reactor, connection);
            pando_reactor_connection_expired(reactor, connection, kind);
        }
    }
}

void pando_reactor_timers_postpone(struct pando_reactor *reactor, uint64_t milliseconds)
{
    struct pando_node *node;
    for (node = reactor->connections.next; node != &reactor->connections; node = node->next) {
        struct pando_connection *connection = pando_owner(node, struct pando_connection, all);
        connection->pace_at += milliseconds;
        if (connection->timer.due < NEVER)
            connection->timer.due += milliseconds;
    }
    reactor->told_at += milliseconds;
    if (reactor->orphaned)
        reactor->deadline += milliseconds;
}

int64_t pando_reactor_timers_next(const struct pando_reactor *reactor)
{
    int64_t next = -1;
    for (uint32_t kind = 0; kind < kinds(reactor); kind++) {
        const struct pando_connection *connection = first_of(reactor, kind);
        if (!connection)
            continue;
        int64_t left = connection->timer.due > reactor->now ? (int64_t)(connection->timer.due - reactor->now) : 0;
        if (next == -1 || left < next)
            next = left;
    }
    return next;
}

/* --- the minimum rate ---
 *
 * Each millisecond adds to a client's debt, each byte pays some of it off: SLOWEST bytes pay for one second. A client
 * may be `allowance` in debt, and up to WINDOW in advance. The debt is in units of 1/SLOWEST ms; a byte pays 1000. */

void pando_reactor_pace_begin(struct pando_reactor *reactor, struct pando_connection *connection)
{
    connection->pace_at = reactor->now;
    connection->pace_debt = 0;
}

int pando_reactor_pace_moved(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t bytes,
                             uint32_t allowance)
{
    uint64_t passed = reactor->now - connection->pace_at;
    if (passed > allowance) /* more would have fired its timer, unless the reactor was stopped meanwhile */
        passed = allowance;
    int64_t debt = connection->pace_debt + (int64_t)passed * SLOWEST - (int64_t)bytes * 1000;
    connection->pace_debt = debt < -WINDOW * SLOWEST ? -WINDOW * SLOWEST : debt;
    connection->pace_at = reactor->now;
    return allowance == 0 || connection->pace_debt <= (int64_t)allowance * SLOWEST;
}
