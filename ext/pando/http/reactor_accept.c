/* Accepts connections from the listeners, as many as there is room for. Runs in the reactor. */
#include "reactor_private.h"

#include "address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define AT_ONCE 64        /* connections per turn and listener */
#define LONGEST_QUEUE 65536
#define PAUSE 100         /* milliseconds without accepting when the kernel has no room for more */
#define TO_BE_REFUSED 128 /* connections beyond the limit that may wait for their 503 */
#define TO_BE_TOLD 8      /* the same for one address; the reactor closes further ones without an answer */

static int count_addresses(struct pando_reactor *reactor)
{
    struct rlimit files;
    rlim_t most = reactor->config->max_connections;
    if (reactor->config->max_per_address == 0)
        return 0;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < most)
        most = files.rlim_cur;
    return pando_addresses_init(&reactor->addresses, (uint32_t)most);
}

int pando_reactor_accept_start(struct pando_reactor *reactor)
{
    if (count_addresses(reactor) == -1)
        return -1;
    return pando_reactor_listeners_start(reactor);
}

void pando_reactor_accept_pause(struct pando_reactor *reactor)
{
    if (reactor->accept_at == 0)
        pando_reactor_listeners_watch(reactor, EPOLL_CTL_DEL);
    reactor->accept_at = reactor->now + PAUSE;
}

void pando_reactor_accept_resume(struct pando_reactor *reactor)
{
    if (reactor->accept_at == 0 || reactor->now < reactor->accept_at)
        return;
    reactor->accept_at = 0;
    if (pando_reactor_listeners_watch(reactor, EPOLL_CTL_ADD) == -1)
        pando_reactor_accept_pause(reactor);
}

void pando_reactor_accept_stop(struct pando_reactor *reactor)
{
    if (!reactor->accepting)
        return;
    if (reactor->accept_at == 0)
        pando_reactor_listeners_watch(reactor, EPOLL_CTL_DEL);
    for (uint32_t i = 0; i < reactor->listener_count; i++)
        if (reactor->listeners[i].watch.fd != -1)
            close(reactor->listeners[i].watch.fd);
    reactor->accepting = 0;
    reactor->accept_at = 0;
}

static int somebody_idle(const struct pando_reactor *reactor)
{
    return !pando_list_empty(&reactor->timers[PANDO_TIMER_IDLE]);
}

/* Closes the connection that has been idle for longest. 0: no connection is idle. */
static int make_room(struct pando_reactor *reactor)
{
    while (somebody_idle(reactor)) {
        struct pando_node *first = reactor->timers[PANDO_TIMER_IDLE].next;
        if (!pando_reactor_connection_close_idle(reactor, pando_owner(first, struct pando_connection, timer.node)))
            continue; /* it is no longer idle */
        pando_stat_add(&reactor->stats->evicted, 1);
        return 1;
    }
    return 0;
}

int pando_reactor_accept_admit(struct pando_reactor *reactor, struct pando_connection *connection)
{
    uint32_t most = reactor->config->max_per_address;
    connection->origin = pando_address_of(connection->remote);
    if (most == 0 || connection->origin.count == 0)
        return 1;
    connection->address = connection->origin;
    uint32_t count = connection->address.count = pando_addresses_add(&reactor->addresses, &connection->address);
    if (count <= most)
        return 1;
    if (count - most <= TO_BE_TOLD) {
        pando_reactor_shed(reactor, connection, &reactor->stats->shed_address);
    } else {
        pando_stat_add(&reactor->stats->shed_address, 1);
        pando_reactor_connection_close(reactor, connection);
    }
    return 0;
}

/* 1: there may be more; 0: not now. */
static int accept_failed(struct pando_reactor *reactor, uint32_t listener)
{
    switch (errno) {
    case EAGAIN:
        return 0;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        make_room(reactor);
        pando_reactor_accept_pause(reactor);
        return 0;
    case EBADF:
    case EINVAL:
    case ENOTSOCK:
    case EOPNOTSUPP: /* not a listener: a bug of ours, so pause before the next try, unless this listener was just
                      * shut down */
        if (!reactor->listeners[listener].left)
            pando_reactor_accept_pause(reactor);
        return 0;
    default: /* the client left again, or a signal came: accept(2) */
        return 1;
    }
}

static int accept_one(struct pando_reactor *reactor, uint32_t listener)
{
    uint32_t limit = reactor->config->max_connections;
    if (reactor->connection_count >= limit + TO_BE_REFUSED && !somebody_idle(reactor)) {
        pando_reactor_accept_pause(reactor);
        return 0;
    }

    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    address.ss_family = AF_UNSPEC;
    int fd = accept4(reactor->listeners[listener].watch.fd, (struct sockaddr *)&address, &size,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd == -1)
        return accept_failed(reactor, listener);

    pando_stat_add(&reactor->stats->accepted, 1);
    struct pando_connection *connection = pando_reactor_connection_open(reactor, fd, listener);
    if (!connection) {
        make_room(reactor); /* for the next connection */
        pando_reactor_turn_away(reactor, fd);
        return 1;
    }
    pando_http_peer_text(&address, connection->remote, sizeof(connection->remote));
    connection->tcp = address.ss_family == AF_INET || address.ss_family == AF_INET6;
    if (connection->state != PANDO_READING_PROXY && !pando_reactor_accept_admit(reactor, connection))
        return 1;
    if (reactor->connection_count > limit && !make_room(reactor))
        pando_reactor_shed(reactor, connection, &reactor->stats->shed_connections);
    return 1;
}

void pando_reactor_accept_some(struct pando_reactor *reactor)
{
    for (uint32_t i = 0; i < reactor->listener_count; i++)
        for (int count = 0; count < AT_ONCE && reactor->accepting && reactor->accept_at == 0; count++)
            if (reactor->listeners[i].watch.fd == -1 || !accept_one(reactor, i))
                break;
}

void pando_reactor_accept_all_of(struct pando_reactor *reactor, uint32_t number)
{
    for (int left = LONGEST_QUEUE; left > 0 && accept_one(reactor, number); left--)
        ;
}

void pando_reactor_accept_end(struct pando_reactor *reactor)
{
    if (!reactor->accepting)
        return;
    for (uint32_t i = 0; i < reactor->listener_count; i++)
        pando_reactor_listener_close(reactor, i);
    pando_reactor_accept_stop(reactor);
}
