/* The link to the monitor: carries out its orders and reports to it. Runs in the reactor. */
#include "reactor_health.h"
#include "reactor_private.h"

#include "sys/record.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

#define IDLE_GRACE 500u /* milliseconds: a client that sends another request meanwhile learns from the answer that the
                         * connection ends */

int pando_reactor_control_tell(struct pando_reactor *reactor, uint32_t kind, uint32_t lane)
{
    struct pando_reactor_record record = {.kind = kind, .lane = lane};
    return pando_record_send(reactor->control.fd, &record, sizeof(record), NULL, 0);
}

static void end_if_idle(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (!pando_reactor_must_end(reactor, connection))
        return;
    if (pando_reactor_input_silent(connection))
        pando_reactor_connection_close_idle(reactor, connection);
    else if (connection->state == PANDO_READING_PROXY || connection->state == PANDO_READING_HEAD)
        pando_reactor_input_unfinished(reactor, connection, 408, &reactor->stats->refused_header_time);
}

static int is_open(const struct pando_reactor *reactor, struct pando_node *node)
{
    return node == &reactor->connections || pando_owner(node, struct pando_connection, all)->state != PANDO_CLOSED;
}

/* Closes silent connections, and sends 408 to clients that have not finished a request. A request that arrives
 * meanwhile may close other connections, and a closed one is in the graveyard, where the end of this list is never
 * met. */
static void close_idle(struct pando_reactor *reactor)
{
    struct pando_node *node = reactor->connections.next, *next;
    while (node != &reactor->connections) {
        next = node->next;
        end_if_idle(reactor, pando_owner(node, struct pando_connection, all));
        if (is_open(reactor, node))
            next = node->next;
        node = is_open(reactor, next) ? next : reactor->connections.next;
    }
}

/* Clients that have connected before are still served. */
static void drain(struct pando_reactor *reactor)
{
    if (reactor->draining)
        return;
    reactor->draining = 1;
    atomic_store(&reactor->channel.shared->draining, 1);
    pando_reactor_accept_end(reactor);
    reactor->idle_until = reactor->now + IDLE_GRACE;
    if (pando_reactor_deserted(reactor))
        pando_reactor_requests_give_up(reactor);
}

void pando_control_finish_draining(struct pando_reactor *reactor)
{
    if (reactor->idle_until > 0 && reactor->now >= reactor->idle_until) {
        reactor->idle_until = 0;
        close_idle(reactor);
    }
    if (reactor->orphaned) {
        if (reactor->connection_count == 0 || reactor->now >= reactor->deadline)
            pando_reactor_end(reactor, PANDO_REACTOR_ORPHANED);
    } else if (reactor->draining && reactor->connection_count == 0) {
        pando_reactor_control_tell(reactor, PANDO_REACTOR_DRAINED_ALL, 0); /* the exit status says it too */
        pando_reactor_end(reactor, PANDO_REACTOR_DRAINED);
    }
}

static void orphan(struct pando_reactor *reactor)
{
    struct pando_node *node = reactor->connections.next, *next;
    epoll_ctl(reactor->epoll, EPOLL_CTL_DEL, reactor->control.fd, NULL); /* else EOF would wake the loop for ever */
    reactor->orphaned = reactor->draining = 1;
    atomic_store(&reactor->channel.shared->draining, 1);
    reactor->deadline = reactor->now + reactor->config->grace;
    pando_reactor_accept_stop(reactor);
    for (; node != &reactor->connections; node = next) {
        next = node->next;
        struct pando_connection *connection = pando_owner(node, struct pando_connection, all);
        if (connection->state != PANDO_IN_FLIGHT && connection->state != PANDO_FINISHING)
            pando_reactor_connection_close(reactor, connection);
    }
}

static void open_listener(struct pando_reactor *reactor, const struct pando_reactor_record *order, int fd)
{
    struct pando_listener listener = {.fd = fd, .number = order->lane, .flags = order->cause};
    if (pando_reactor_listener_open(reactor, &listener) == -1)
        pando_reactor_accept_pause(reactor); /* accepting resumes after the pause */
}

static void close_listener(struct pando_reactor *reactor, uint32_t number)
{
    pando_reactor_listener_close(reactor, number);
    reactor->idle_until = reactor->now + IDLE_GRACE;
}

static int takes_fds(uint32_t kind)
{
    return kind == PANDO_REACTOR_LANE_OPEN ? 3 : kind == PANDO_REACTOR_LISTENER_OPEN ? 1 : 0;
}

static uint32_t most_of(uint32_t kind)
{
    int of_listener = kind == PANDO_REACTOR_LISTENER_OPEN || kind == PANDO_REACTOR_LISTENER_CLOSE;
    return of_listener ? PANDO_REACTOR_LISTENERS : PANDO_CHANNEL_LANES;
}

/* 0: not a valid record */
static int obey(struct pando_reactor *reactor, const struct pando_reactor_record *order, int *fds, int count)
{
    int of_worker = order->pool || order->slot || order->generation;
    if ((of_worker && order->kind != PANDO_REACTOR_LANE_OPEN) || count != takes_fds(order->kind) ||
        order->lane >= most_of(order->kind))
        return 0;
    switch (order->kind) {
    case PANDO_REACTOR_LANE_OPEN:
        if (order->cause >= PANDO_CHANNEL_LANES || order->pool >= reactor->config->pools)
            return 0;
        pando_reactor_lane_open(reactor, order, fds[0], fds[1], fds[2]);
        return 1;
    case PANDO_REACTOR_LANE_DEAD:
        if (order->cause > PANDO_REACTOR_LEFT_LATE)
            return 0;
        pando_reactor_lane_lost(reactor, order->lane, order->cause);
        return 1;
    case PANDO_REACTOR_LANE_CLOSE:
        pando_reactor_lane_lost(reactor, order->lane, PANDO_REACTOR_DIED);
        return 1;
    case PANDO_REACTOR_WELCOME:
    case PANDO_REACTOR_UNWELCOME:
        pando_reactor_health_told(reactor, order->kind == PANDO_REACTOR_WELCOME);
        return 1;
    case PANDO_REACTOR_DRAIN:
        drain(reactor);
        return 1;
    case PANDO_REACTOR_REOPEN_LOG:
        pando_access_log_reopen(reactor);
        return 1;
    case PANDO_REACTOR_LISTENER_OPEN:
        open_listener(reactor, order, fds[0]);
        return 1;
    case PANDO_REACTOR_LISTENER_CLOSE:
        close_listener(reactor, order->lane);
        return 1;
    default:
        return 0;
    }
}

static int receive(struct pando_reactor *reactor, struct pando_reactor_record *order, struct pando_record *record)
{
    pando_reactor_reserve_release(reactor);
    int received = pando_record_receive(reactor->control.fd, order, sizeof(*order), record);
    int failure = errno;
    pando_reactor_reserve_fill(reactor);
    errno = failure;
    return received;
}

void pando_reactor_control_read(struct pando_reactor *reactor)
{
    struct pando_reactor_record order;
    struct pando_record record;
    int received;

    while ((received = receive(reactor, &order, &record)) == 1) {
        if (record.length == sizeof(order) && !record.truncated && obey(reactor, &order, record.fds, record.fd_count))
            continue;
        for (int i = 0; i < record.fd_count; i++)
            close(record.fds[i]);
        pando_reactor_end(reactor, PANDO_REACTOR_CONFUSED);
        return;
    }
    if (received == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        orphan(reactor);
}
