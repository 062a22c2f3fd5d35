/* The life of a connection, from accept to close. reactor.c shows its states. Runs in the reactor. */
#include "reactor_private.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SPARE 1024          /* connection objects kept for reuse */
#define MANY 2048u          /* at a peak of so many connections, giving memory back is worth a call */
#define WORK 262144u        /* budget of one connection per turn: bytes received, or the equivalent */
#define STEP_COST 8192u     /* the equivalent of a system call, a parsed head or a queued request */
#define LINGER_TOTAL 2000u  /* milliseconds */

static struct pando_connection *allocate(struct pando_reactor *reactor)
{
    if (pando_list_empty(&reactor->spare))
        return malloc(sizeof(struct pando_connection));
    struct pando_connection *connection = pando_owner(reactor->spare.next, struct pando_connection, all);
    pando_list_remove(&connection->all);
    reactor->spare_count--;
    return connection;
}

int pando_reactor_connection_watch(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    return epoll_ctl(reactor->epoll, EPOLL_CTL_ADD, connection->watch.fd, &event);
}

void pando_reactor_connection_look_away(struct pando_reactor *reactor, struct pando_connection *connection)
{
    epoll_ctl(reactor->epoll, EPOLL_CTL_DEL, connection->watch.fd, NULL);
}

struct pando_connection *pando_reactor_connection_open(struct pando_reactor *reactor, int fd, uint32_t listener)
{
    struct pando_connection *connection = allocate(reactor);
    if (!connection)
        return NULL;
    memset(connection, 0, sizeof(*connection));
    connection->watch = (struct pando_watch){PANDO_WATCH_CONNECTION, fd};
    connection->writable = 1;
    connection->listener = listener;
    int proxied = reactor->listeners[listener].flags & PANDO_LISTENER_PROXIED;
    connection->state = proxied ? PANDO_READING_PROXY : PANDO_READING_HEAD;
    connection->request.lane = connection->blocks = PANDO_NONE;
    connection->spool = connection->overflow = -1;
    pando_list_init(&connection->queued);
    pando_list_init(&connection->again);
    pando_list_init(&connection->timer.node);
    pando_list_init(&connection->reader);
    pando_list_append(&reactor->connections, &connection->all);
    reactor->connection_count++;
    pando_http_parser_init(&connection->parser, reactor->limits, reactor->fields);

    if (pando_reactor_connection_watch(reactor, connection) == -1) {
        connection->watch.fd = -1;
        pando_reactor_connection_forget(reactor, connection);
        return NULL;
    }
    pando_reactor_timer_start(reactor, connection, PANDO_TIMER_HEADER);
    return connection;
}

void pando_reactor_connection_again(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (pando_list_empty(&connection->again))
        pando_list_append(&reactor->again, &connection->again);
}

/* 0: nothing left to do for now. */
static int drop_input(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (!connection->readable)
        return 0;
    ssize_t bytes = recv(connection->watch.fd, reactor->scratch, PANDO_SCRATCH_BYTES, MSG_DONTWAIT);
    if (bytes == 0 || (bytes == -1 && errno != EAGAIN && errno != EINTR) ||
        reactor->now - connection->pace_at > LINGER_TOTAL) {
        pando_reactor_connection_close(reactor, connection);
        return 0;
    }
    if (bytes == -1 && errno == EAGAIN)
        connection->readable = 0;
    if (bytes > 0) {
        reactor->work += (uint32_t)bytes;
        pando_reactor_timer_start(reactor, connection, PANDO_TIMER_LINGER);
    }
    return connection->readable;
}

static int step(struct pando_reactor *reactor, struct pando_connection *connection)
{
    switch (connection->state) {
    case PANDO_READING_PROXY:
        return pando_reactor_input_proxy(reactor, connection);
    case PANDO_READING_HEAD:
        return pando_reactor_input_head(reactor, connection);
    case PANDO_READING_BODY:
        return pando_reactor_body_step(reactor, connection);
    case PANDO_LINGERING:
        return drop_input(reactor, connection);
    default:
        return 0;
    }
}

void pando_reactor_connection_advance(struct pando_reactor *reactor, struct pando_connection *connection)
{
    for (reactor->work = 0; reactor->work < WORK; reactor->work += STEP_COST)
        if (!step(reactor, connection))
            return;
    pando_reactor_connection_again(reactor, connection);
}

void pando_reactor_connection_event(struct pando_reactor *reactor, struct pando_connection *connection, uint32_t events)
{
    if (connection->state == PANDO_CLOSED)
        return;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        connection->readable = 1;
    if (events & EPOLLRDHUP && !connection->read_ended) {
        connection->read_ended = 1;
        pando_reactor_request_half_closed(reactor, connection);
    }
    if ((events & (EPOLLHUP | EPOLLERR)) &&
        (connection->state == PANDO_IN_FLIGHT || connection->state == PANDO_FINISHING)) {
        pando_reactor_connection_close(reactor, connection);
        return;
    }
    if (events & EPOLLOUT) {
        connection->writable = 1;
        if (connection->out)
            pando_reactor_output_flush(reactor, connection);
    }
    if (connection->state != PANDO_CLOSED)
        pando_reactor_connection_advance(reactor, connection);
}

/* --- after the answer --- */

static void next_request(struct pando_reactor *reactor, struct pando_connection *connection)
{
    connection->state = PANDO_READING_HEAD;
    connection->head_only = 0;
    connection->requests++;
    pando_reactor_input_rest(reactor, connection);
    if (connection->in_end > 0)
        pando_reactor_exchange_begin(connection);
    pando_reactor_timer_start(reactor, connection, connection->in_end ? PANDO_TIMER_HEADER : PANDO_TIMER_IDLE);
    pando_reactor_connection_again(reactor, connection);
}

/* RFC 9112 section 9.6: closing a socket with unread input sends a reset. The reset may overtake what was sent and
 * drops what is still to be sent, hence the shutdown first. */
static void end(struct pando_reactor *reactor, struct pando_connection *connection)
{
    int unread = connection->raw < connection->in_end || connection->readable;
    pando_reactor_input_release(reactor, connection);
    if (shutdown(connection->watch.fd, SHUT_WR) == -1 || (!connection->linger && !unread)) {
        pando_reactor_connection_close(reactor, connection);
        return;
    }
    connection->state = PANDO_LINGERING;
    connection->readable = 1;
    pando_reactor_pace_begin(reactor, connection);
    pando_reactor_timer_start(reactor, connection, PANDO_TIMER_LINGER);
    pando_reactor_connection_again(reactor, connection);
}

void pando_reactor_connection_flushed(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->state != PANDO_FINISHING)
        return;
    pando_reactor_exchange_end(reactor, connection);
    if (connection->persistent)
        next_request(reactor, connection);
    else
        end(reactor, connection);
}

void pando_reactor_connection_answered(struct pando_reactor *reactor, struct pando_connection *connection, int keep)
{
    connection->state = PANDO_FINISHING;
    connection->persistent = connection->persistent && keep;
    if (connection->out)
        return;
    pando_reactor_timer_stop(reactor, connection);
    pando_reactor_connection_flushed(reactor, connection);
}

void pando_reactor_connection_expired(struct pando_reactor *reactor, struct pando_connection *connection, uint32_t kind)
{
    switch (kind) {
    case PANDO_TIMER_HEADER:
        pando_reactor_input_unfinished(reactor, connection, 408, &reactor->stats->refused_header_time);
        return;
    case PANDO_TIMER_BODY:
        pando_reactor_refuse(reactor, connection, 408);
        return;
    case PANDO_TIMER_WRITE:
        pando_reactor_reader_overdue(reactor, connection);
        return;
    case PANDO_TIMER_IDLE:
    case PANDO_TIMER_LINGER:
        pando_reactor_connection_close(reactor, connection);
        return;
    default:
        pando_reactor_request_expired(reactor, connection);
    }
}

/* --- the end --- */

void pando_reactor_connection_forget(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->state == PANDO_CLOSED)
        return;
    connection->state = PANDO_CLOSED;
    pando_reactor_timer_stop(reactor, connection);
    pando_list_remove(&connection->again);
    pando_list_remove(&connection->all);
    pando_list_append(&reactor->graveyard, &connection->all);
    reactor->connection_count--;

    if (connection->address.count > 0)
        pando_addresses_remove(&reactor->addresses, &connection->address);
    pando_reactor_request_abandon(reactor, connection);
    pando_reactor_exchange_end(reactor, connection);
    pando_reactor_lane_unblock(reactor, connection);
    pando_reactor_input_release(reactor, connection);
    pando_reactor_output_release(reactor, connection);
    if (connection->watch.fd != -1) {
        pando_reactor_connection_look_away(reactor, connection);
        close(connection->watch.fd);
    }
}

/* The reactor alone holds the socket, so close sends the FIN at once and removes it from the epoll set. A socket that
 * was lent to a worker is different: a process that the app forked may keep a copy. epoll(7) would go on reporting
 * events, under the address of a connection object that may already belong to another client. Such a socket is
 * removed from the epoll set first. */
void pando_reactor_connection_close(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->state == PANDO_CLOSED)
        return;
    if (connection->streamed)
        pando_reactor_connection_look_away(reactor, connection);
    close(connection->watch.fd);
    connection->watch.fd = -1;
    pando_reactor_connection_forget(reactor, connection);
}

/* First reads once more: the reactor still serves a request that the client sent a moment ago. */
int pando_reactor_connection_close_idle(struct pando_reactor *reactor, struct pando_connection *connection)
{
    connection->readable = 1;
    pando_reactor_connection_advance(reactor, connection);
    if (pando_reactor_input_silent(connection))
        pando_reactor_connection_close(reactor, connection);
    return connection->state == PANDO_CLOSED;
}

void pando_reactor_connection_reset(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    if (connection->state == PANDO_CLOSED)
        return;
    setsockopt(connection->watch.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)); /* if this fails, a plain close
                                                                                   * follows */
    pando_reactor_connection_close(reactor, connection);
}

void pando_reactor_connections_trim(struct pando_reactor *reactor)
{
    if (reactor->connection_count > reactor->connection_peak)
        reactor->connection_peak = reactor->connection_count;
    if (reactor->connection_peak < MANY || reactor->connection_count > reactor->connection_peak / 4)
        return;
    reactor->connection_peak = reactor->connection_count;
#ifdef __GLIBC__ /* musl gives memory back by itself */
    malloc_trim(0);
#endif
}

/* Safe now: no event of this turn can refer to them any more. */
void pando_reactor_connections_bury(struct pando_reactor *reactor)
{
    while (!pando_list_empty(&reactor->graveyard)) {
        struct pando_connection *connection = pando_owner(reactor->graveyard.next, struct pando_connection, all);
        pando_list_remove(&connection->all);
        if (reactor->spare_count < SPARE) {
            pando_list_append(&reactor->spare, &connection->all);
            reactor->spare_count++;
        } else {
            free(connection);
        }
    }
}

void pando_reactor_connections_drop(struct pando_reactor *reactor)
{
    while (!pando_list_empty(&reactor->connections))
        pando_reactor_connection_close(reactor, pando_owner(reactor->connections.next, struct pando_connection, all));
    pando_reactor_connections_bury(reactor);
    while (!pando_list_empty(&reactor->spare)) {
        struct pando_connection *connection = pando_owner(reactor->spare.next, struct pando_connection, all);
        pando_list_remove(&connection->all);
        free(connection);
    }
}
