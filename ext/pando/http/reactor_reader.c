/* Measures how fast clients take their answers. A reader is a client with output queued: one that takes nothing for
 * long, or too little overall, is reset. Runs in the reactor. */
#include "reactor_private.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

/* SIOCOUTQ, tcp(7). Writes say little: a socket takes some 64 KiB at a time, for which a slow client needs long. The
 * value never decreases, because `sent` lacks bytes that another process wrote to the same socket. */
uint64_t pando_reactor_reader_taken(const struct pando_connection *connection)
{
    int left = 0;
    if (!connection->tcp || ioctl(connection->watch.fd, SIOCOUTQ, &left) == -1 || left < 0)
        left = 0;
    uint64_t taken = connection->sent > (uint64_t)left ? connection->sent - (uint64_t)left : 0;
    return taken > connection->taken ? taken : connection->taken;
}

/* A 100 Continue still waits to be sent: the running timer is that of the body, or of the queue if the request waits
 * already. */
static int timed_otherwise(const struct pando_connection *connection)
{
    return connection->state == PANDO_READING_BODY ||
           pando_reactor_timer_runs(connection, PANDO_TIMER_QUEUE + connection->request.pool);
}

void pando_reactor_reader_begin(struct pando_reactor *reactor, struct pando_connection *connection)
{
    pando_reactor_pace_begin(reactor, connection);
    pando_list_append(&reactor->readers, &connection->reader);
    connection->reader_since = reactor->now;
    connection->taken = connection->taken_before = pando_reactor_reader_taken(connection);
    connection->pauses = 0;
}

void pando_reactor_reader_end(struct pando_reactor *reactor, struct pando_connection *connection)
{
    pando_list_remove(&connection->reader);
    if (!timed_otherwise(connection))
        pando_reactor_timer_stop(reactor, connection);
}

/* While a body is read (after 100 Continue), the body has its own timer. */
void pando_reactor_reader_watch(struct pando_reactor *reactor, struct pando_connection *connection)
{
    int waits = connection->out && connection->state != PANDO_READING_BODY;
    if (waits && !pando_reactor_timer_runs(connection, PANDO_TIMER_WRITE))
        pando_reactor_timer_start(reactor, connection, PANDO_TIMER_WRITE);
}

static int too_slow(struct pando_reactor *reactor, struct pando_connection *connection)
{
    pando_stat_add(&reactor->stats->slow_readers, 1);
    pando_reactor_connection_reset(reactor, connection);
    return 0;
}

int pando_reactor_reader_moved(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (timed_otherwise(connection))
        return 1;
    uint64_t taken = pando_reactor_reader_taken(connection), bytes = taken - connection->taken;
    if (bytes == 0)
        return 1;
    connection->taken = taken;
    connection->pauses = 0;
    if (!pando_reactor_pace_moved(reactor, connection, bytes, reactor->config->write_timeout))
        return too_slow(reactor, connection);
    pando_reactor_timer_stop(reactor, connection);
    pando_reactor_reader_watch(reactor, connection);
    return 1;
}

void pando_reactor_reader_overdue(struct pando_reactor *reactor, struct pando_connection *connection)
{
    connection->pauses++;
    if (!pando_reactor_reader_moved(reactor, connection))
        return;
    if (connection->pauses < PANDO_WRITE_LOOKS)
        pando_reactor_reader_watch(reactor, connection);
    else
        too_slow(reactor, connection);
}
