/* Decides where the unread part of an answer waits: in memory, then in a file. When both are full, its worker waits,
 * but never more than half of all workers: instead of one more, the slowest reader is reset. Runs in the reactor. */
#include "reactor_private.h"

#define SMALL 3072u         /* bytes that are accepted even without room */
#define SUBSTANTIAL 16384u  /* bytes of memory that make a reset worthwhile */
#define YOUNG 2000u         /* milliseconds after which a reader's rate means something */

int pando_reactor_room_of_all(const struct pando_reactor *reactor, size_t bytes)
{
    return reactor->out_total + bytes <= reactor->config->response_total &&
           pando_reactor_pool_allows(&reactor->pool, bytes);
}

int pando_reactor_room_in_memory(const struct pando_reactor *reactor, const struct pando_connection *connection,
                                 size_t bytes)
{
    const struct pando_reactor_config *config = reactor->config;
    if (!connection->out && bytes <= SMALL)
        return 1;
    if (connection->out_last && connection->out_last->spooled &&
        pando_reactor_overflow_possible(reactor, connection, bytes))
        return 0; /* it joins the bytes in the file */
    /* Without a disk a client has as much room as it would have had with one. */
    uint64_t most = reactor->now < reactor->spool_shut_until ? config->response_total : config->response_memory;
    return connection->out_bytes + bytes <= most && pando_reactor_room_of_all(reactor, bytes);
}

int pando_reactor_room_for(const struct pando_reactor *reactor, const struct pando_connection *connection,
                           size_t bytes)
{
    return pando_reactor_room_in_memory(reactor, connection, bytes) ||
           pando_reactor_overflow_possible(reactor, connection, bytes);
}

/* --- the slowest reader --- */

/* Whether its reset would make room or free a worker. */
static int holds(const struct pando_connection *connection)
{
    return connection->overflow != -1 || connection->blocks != PANDO_NONE || connection->out_bytes >= SUBSTANTIAL;
}

/* Bytes per second. */
static uint64_t rate(const struct pando_reactor *reactor, const struct pando_connection *connection)
{
    uint64_t bytes = pando_reactor_reader_taken(connection) - connection->taken_before;
    return bytes * 1000 / (reactor->now - connection->reader_since + 1);
}

/* Young readers rank behind all others, the oldest first. */
static uint64_t rank(const struct pando_reactor *reactor, const struct pando_connection *connection)
{
    if (reactor->now - connection->reader_since < YOUNG)
        return (UINT64_MAX >> 1) + connection->reader_since;
    return rate(reactor, connection);
}

static void tell_of_cut(const struct pando_reactor *reactor, const struct pando_connection *connection)
{
    pando_stat_set(&reactor->stats->cut_family, connection->origin.family);
    pando_stat_set(&reactor->stats->cut_network, connection->origin.network);
    pando_stat_set(&reactor->stats->cut_rate, rate(reactor, connection));
    pando_stat_add(&reactor->stats->cut_readers, 1);
}

int pando_reactor_room_cut(struct pando_reactor *reactor)
{
    struct pando_connection *slowest = NULL;
    uint64_t least = UINT64_MAX;
    for (struct pando_node *node = reactor->readers.next; node != &reactor->readers; node = node->next) {
        struct pando_connection *connection = pando_owner(node, struct pando_connection, reader);
        uint64_t place = rank(reactor, connection);
        if (place < least && holds(connection)) {
            least = place;
            slowest = connection;
        }
    }
    if (!slowest)
        return 0;
    tell_of_cut(reactor, slowest);
    pando_reactor_heavy_cut(reactor);
    pando_reactor_connection_reset(reactor, slowest);
    return 1;
}

/* Not while heavy requests wait for such a worker: they would wait for a slow reader. */
static int may_wait(const struct pando_reactor *reactor)
{
    return reactor->waiting < reactor->open_count / 2 && !pando_reactor_heavy_waits(reactor);
}

/* No lane waits for a client with an empty output queue: its socket may take all of it. */
int pando_reactor_room_wait(struct pando_reactor *reactor, uint32_t lane, struct pando_connection *connection,
                            size_t bytes)
{
    while (connection->out && !pando_reactor_room_for(reactor, connection, bytes))
        if (may_wait(reactor) || !pando_reactor_room_cut(reactor)) {
            pando_reactor_lane_block(reactor, lane, connection);
            return 1;
        }
    return 0;
}
