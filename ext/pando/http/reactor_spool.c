/* Keeps requests that are too large for a slot: in a memfd while small, in an unlinked file on disk if they may be
 * large. Also tracks how much of the disk Pando may use, answers included. Runs in the reactor. */
#include "reactor_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MARGIN 8u  /* this fraction of the free space is left alone: a file that was given up takes space for a moment
                    * longer */
#define SHUT 1000u /* milliseconds without a try after the disk took nothing */

static int named_file(const char *directory)
{
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/pando-XXXXXX", directory);
    if (length < 0 || (size_t)length >= sizeof(path))
        return errno = ENAMETOOLONG, -1;
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd != -1)
        unlink(path);
    return fd;
}

static const char *directory_of(const struct pando_reactor *reactor)
{
    return reactor->config->spool_directory ? reactor->config->spool_directory : "/tmp";
}

int pando_reactor_spool_file(const struct pando_reactor *reactor)
{
    const char *directory = directory_of(reactor);
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    /* Not every file system supports nameless files: open(2) */
    return fd == -1 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT) ? named_file(directory) : fd;
}

/* A file system may have less room than the settings allow: what is free on it now, and what Pando has there already.
 * statvfs(3) */
void pando_reactor_spool_measure(struct pando_reactor *reactor)
{
    struct statvfs place;
    reactor->spool_most = reactor->config->spool_total;
    if (statvfs(directory_of(reactor), &place) == -1)
        return;
    uint64_t available = (uint64_t)place.f_bavail * place.f_frsize;
    uint64_t most = available - available / MARGIN + reactor->spooled_responses + reactor->spooled_bodies;
    if (most < reactor->spool_most)
        reactor->spool_most = most;
}

/* The free space changes while Pando has files there; where it was too small, others may free some. */
void pando_reactor_spool_look(struct pando_reactor *reactor)
{
    uint64_t used = reactor->spooled_responses + reactor->spooled_bodies;
    if (used > 0 || reactor->spool_most < reactor->config->spool_total)
        pando_reactor_spool_measure(reactor);
}

int pando_reactor_spool_has_room(const struct pando_reactor *reactor, uint64_t bytes)
{
    uint64_t used = reactor->spooled_responses + reactor->spooled_bodies, total = reactor->spool_most;
    if (reactor->config->spool_in_memory && !pando_reactor_pool_allows(&reactor->pool, bytes))
        return 0;
    return reactor->now >= reactor->spool_shut_until && used <= total && bytes <= total - used;
}

void pando_reactor_spool_failed(struct pando_reactor *reactor)
{
    int reason = errno;
    pando_stat_set(&reactor->stats->spool_error, (uint64_t)reason);
    pando_stat_add(&reactor->stats->spool_failed, 1);
    if (reason != EFBIG) /* that concerns one file only */
        reactor->spool_shut_until = reactor->now + SHUT;
    pando_reactor_spool_measure(reactor);
    errno = reason;
}

size_t pando_reactor_spool_put(int fd, const char *data, size_t bytes, uint64_t offset)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t written = pwrite(fd, data + done, bytes - done, (off_t)(offset + done));
        if (written == -1 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        done += (size_t)written;
    }
    return done;
}

/* Tests the disk with a few bytes in a file of their own: a real frame that the disk refuses would have to stay in
 * memory. */
static int takes_bytes(const struct pando_reactor *reactor)
{
    int fd = pando_reactor_spool_file(reactor);
    if (fd == -1)
        return 0;
    size_t written = pando_reactor_spool_put(fd, reactor->scratch, PANDO_SCRATCH_BYTES, 0);
    int reason = errno;
    close(fd);
    errno = reason;
    return written == PANDO_SCRATCH_BYTES;
}

int pando_reactor_spool_is_missed(const struct pando_reactor *reactor)
{
    return reactor->waiting > 0 && reactor->spool_shut_until > 0;
}

void pando_reactor_spool_try(struct pando_reactor *reactor)
{
    reactor->spool_shut_until = 0;
    if (!takes_bytes(reactor))
        pando_reactor_spool_failed(reactor);
    if (reactor->spool_shut_until == 0)
        reactor->roomier = 1;
}

_Atomic uint64_t *pando_reactor_spool_reason(struct pando_reactor *reactor)
{
    if (errno == ENOBUFS)
        return &reactor->stats->shed_memory;
    if (errno == EFBIG)
        return &reactor->stats->shed_file_size;
    return errno == EDQUOT ? &reactor->stats->shed_spool : &reactor->stats->shed_resources;
}

void pando_reactor_spool_count(struct pando_reactor *reactor)
{
    uint64_t spooled = reactor->config->spool_in_memory ? reactor->spooled_responses + reactor->spooled_bodies : 0;
    reactor->pool.elsewhere = reactor->spool_memory + spooled;
}

/* Refuses the longest body still being read, if it is longer than this one. 0: there is none. */
static int refuse_a_longer_one(struct pando_reactor *reactor, const struct pando_connection *connection, uint64_t bytes)
{
    struct pando_connection *longest = NULL;
    uint64_t most = connection->spool_disk + bytes;
    for (struct pando_node *node = reactor->connections.next; node != &reactor->connections; node = node->next) {
        struct pando_connection *one = pando_owner(node, struct pando_connection, all);
        if (one->state == PANDO_READING_BODY && one->spool_disk > most) {
            longest = one;
            most = one->spool_disk;
        }
    }
    if (!longest)
        return 0;
    pando_reactor_spool_close(reactor, longest);
    pando_reactor_shed(reactor, longest, &reactor->stats->shed_spool);
    return 1;
}

/* Longer requests make way where bodies alone fill the disk, then slow readers where answers take the rest. -1 with
 * EDQUOT: still not enough room; with ENOBUFS: the files are in memory, which is full. */
static int reserve(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t bytes)
{
    uint64_t total = reactor->spool_most;
    while (reactor->spooled_bodies > total || bytes > total - reactor->spooled_bodies)
        if (!refuse_a_longer_one(reactor, connection, bytes))
            return errno = EDQUOT, -1;
    if (reactor->config->spool_in_memory && !pando_reactor_pool_allows(&reactor->pool, bytes))
        return errno = ENOBUFS, -1;
    while (reactor->spooled_responses > total - reactor->spooled_bodies - bytes)
        if (!pando_reactor_room_cut(reactor))
            return errno = EDQUOT, -1;
    connection->spool_disk += bytes;
    reactor->spooled_bodies += bytes;
    pando_reactor_spool_count(reactor);
    return 0;
}

/* Not the fault of the directory. */
static int is_shortage(int reason)
{
    return reason == EMFILE || reason == ENFILE || reason == ENOMEM;
}

int pando_reactor_spool_open(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t expected)
{
    uint64_t head = connection->head_bytes > PANDO_SLOT_BYTES ? connection->head_bytes : 0;
    int in_memory = expected <= reactor->config->body_memory &&
                    pando_reactor_pool_allows(&reactor->pool, expected + head);
    connection->spool = in_memory ? memfd_create("pando-request", MFD_CLOEXEC | MFD_ALLOW_SEALING)
                                  : pando_reactor_spool_file(reactor);
    if (connection->spool == -1) {
        if (!in_memory && !is_shortage(errno))
            pando_reactor_spool_failed(reactor);
        pando_reactor_spool_close(reactor, connection);
        return -1;
    }
    connection->spool_memory = in_memory ? expected + head : 0;
    reactor->spool_memory += connection->spool_memory;
    pando_reactor_spool_count(reactor);
    return 0;
}

int pando_reactor_spool_write(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                              size_t bytes)
{
    /* Reserves space as bytes arrive: a body that is only announced takes no space from others. */
    if (connection->spool_memory == 0 && reserve(reactor, connection, bytes) == -1)
        return -1;
    size_t written = pando_reactor_spool_put(connection->spool, data, bytes, connection->spooled);
    connection->spooled += written;
    if (written == bytes)
        return 0;
    pando_reactor_spool_failed(reactor);
    return -1;
}

/* A memfd can be sealed. For a file on disk, workers get an open file that cannot write. */
void pando_reactor_spool_seal(struct pando_connection *connection)
{
    char path[64];
    if (fcntl(connection->spool, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", connection->spool);
    int read_only = open(path, O_RDONLY | O_CLOEXEC);
    if (read_only == -1)
        return; /* no /proc: the worker gets the reactor's own */
    close(connection->spool);
    connection->spool = read_only;
}

void pando_reactor_spool_close(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->spool_disk > 0)
        pando_reactor_closer_take(reactor, connection->spool);
    else if (connection->spool != -1)
        close(connection->spool);
    reactor->spool_memory -= connection->spool_memory;
    reactor->spooled_bodies -= connection->spool_disk;
    reactor->roomier = connection->spool_disk > 0 || reactor->roomier;
    connection->spool_memory = connection->spool_disk = 0;
    pando_reactor_spool_count(reactor);
    connection->spool = -1;
    connection->spooled = 0;
}
