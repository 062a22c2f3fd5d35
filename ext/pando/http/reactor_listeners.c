/* The set of listeners: those given at the start, and those that the monitor has opened and closed since. Runs in the
 * reactor. */
#include "reactor_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A listener that is already watched, or already not watched, is fine. */
static int watch(struct pando_reactor *reactor, struct pando_reactor_listener *listener, int operation)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener->watch};
    if (listener->watch.fd == -1 || epoll_ctl(reactor->epoll, operation, listener->watch.fd, &event) == 0)
        return 0;
    return errno == EEXIST || errno == ENOENT ? 0 : -1;
}

int pando_reactor_listeners_watch(struct pando_reactor *reactor, int operation)
{
    int result = 0;
    for (uint32_t i = 0; i < reactor->listener_count; i++)
        if (watch(reactor, &reactor->listeners[i], operation) == -1)
            result = -1;
    return result;
}

int pando_reactor_listeners_start(struct pando_reactor *reactor)
{
    const struct pando_reactor_config *config = reactor->config;
    reactor->listeners = calloc(PANDO_REACTOR_LISTENERS, sizeof(*reactor->listeners));
    if (!reactor->listeners)
        return -1;
    for (uint32_t i = 0; i < PANDO_REACTOR_LISTENERS; i++)
        reactor->listeners[i].watch = (struct pando_watch){PANDO_WATCH_LISTENER, -1};
    reactor->accepting = 1;
    for (uint32_t i = 0; i < config->listener_count; i++)
        if (pando_reactor_listener_open(reactor, &config->listeners[i]) == -1)
            return -1;
    return 0;
}

int pando_reactor_listener_open(struct pando_reactor *reactor, const struct pando_listener *wanted)
{
    if (wanted->number >= PANDO_REACTOR_LISTENERS)
        return errno = EINVAL, -1;
    struct pando_reactor_listener *listener = &reactor->listeners[wanted->number];
    int known = listener->watch.fd != -1;
    listener->flags = wanted->flags;
    if (known || !reactor->accepting) {
        close(wanted->fd);
        return 0;
    }
    listener->watch.fd = wanted->fd;
    listener->left = 0;
    if (wanted->number >= reactor->listener_count)
        reactor->listener_count = wanted->number + 1;
    return reactor->accept_at > 0 ? 0 : watch(reactor, listener, EPOLL_CTL_ADD); /* during a pause: added when it is
                                                                                  * over */
}

/* Accepts first: a connection left in the backlog would be reset when the last process closes the listener. On a UNIX
 * socket, connections that were in the backlog at shutdown can still be accepted. */
void pando_reactor_listener_close(struct pando_reactor *reactor, uint32_t number)
{
    struct pando_reactor_listener *listener = &reactor->listeners[number];
    if (listener->watch.fd == -1)
        return;
    pando_reactor_accept_all_of(reactor, number);
    listener->left = 1;
    if (!(listener->flags & PANDO_LISTENER_HELD)) {
        shutdown(listener->watch.fd, SHUT_RDWR);
        pando_reactor_accept_all_of(reactor, number);
    }
    if (reactor->accept_at == 0)
        watch(reactor, listener, EPOLL_CTL_DEL);
    close(listener->watch.fd);
    listener->watch.fd = -1;
}

int pando_reactor_must_end(const struct pando_reactor *reactor, const struct pando_connection *connection)
{
    return reactor->draining || reactor->listeners[connection->listener].left;
}
