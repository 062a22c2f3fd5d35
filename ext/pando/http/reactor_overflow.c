/* Holds the part of an answer that finds no room in memory, in a nameless file of its connection's own. The reactor
 * appends to it, sends from its beginning, and closes it as soon as none of it waits. Runs in the reactor. */
#include "reactor_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define LEAST 16u       /* files allowed in any case, however few descriptors there are */
#define HOLE (4u << 20) /* bytes sent that make punching a hole worth a system call */

/* Half of the descriptors that connections leave; bodies and workers need some too. */
void pando_reactor_overflow_init(struct pando_reactor *reactor)
{
    struct rlimit files;
    uint64_t connections = reactor->config->max_connections;
    reactor->most_overflows = LEAST;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > connections + 2 * LEAST) {
        uint64_t half = ((uint64_t)files.rlim_cur - connections) / 2;
        reactor->most_overflows = half > UINT32_MAX ? UINT32_MAX : (uint32_t)half;
    }
}

int pando_reactor_overflow_possible(const struct pando_reactor *reactor, const struct pando_connection *connection,
                                    size_t bytes)
{
    int descriptor = connection->overflow != -1 || reactor->overflows < reactor->most_overflows;
    return descriptor && !connection->overflow_full && pando_reactor_spool_has_room(reactor, bytes);
}

static int open_file(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->overflow != -1)
        return 0;
    connection->overflow = pando_reactor_spool_file(reactor);
    connection->overflow_end = connection->overflow_given = 0;
    if (connection->overflow == -1) {
        pando_reactor_spool_failed(reactor);
        return -1;
    }
    reactor->overflows++;
    return 0;
}

int pando_reactor_overflow_write(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                                 size_t *bytes)
{
    size_t wanted = *bytes;
    *bytes = 0;
    if (!pando_reactor_overflow_possible(reactor, connection, wanted) || open_file(reactor, connection) == -1)
        return -1;
    *bytes = pando_reactor_spool_put(connection->overflow, data, wanted, connection->overflow_end);
    connection->overflow_end += *bytes;
    reactor->spooled_responses += *bytes;
    if (*bytes < wanted) {
        connection->overflow_full = errno == EFBIG;
        pando_reactor_spool_failed(reactor);
    }
    pando_reactor_spool_count(reactor);
    pando_reactor_heavy_note(reactor, connection);
    return *bytes == wanted ? 0 : -1;
}

static void give_back(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t until)
{
    reactor->spooled_responses -= until - connection->overflow_given;
    connection->overflow_given = until;
    pando_reactor_spool_count(reactor);
    reactor->roomier = 1;
}

/* A file system without hole punching keeps the space until the file is closed. */
void pando_reactor_overflow_sent(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t until)
{
    uint64_t from = connection->overflow_given, bytes = until - from;
    if (bytes >= HOLE &&
        fallocate(connection->overflow, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)bytes) == 0)
        give_back(reactor, connection, until);
}

void pando_reactor_overflow_close(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->overflow == -1)
        return;
    give_back(reactor, connection, connection->overflow_end);
    pando_reactor_closer_take(reactor, connection->overflow);
    reactor->overflows--;
    connection->overflow = -1;
    connection->overflow_full &= connection->overflow_end == 0; /* another file would not take a byte either */
}
