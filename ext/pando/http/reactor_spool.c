/* Where a request waits that is too large for a slot: a memfd while it is
 * small, an unlinked file on disk if it may be large. */
#include "reactor_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY (128u << 20) /* bytes that all together may take; what comes then goes to the disk */

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

static int file_on_disk(const struct pando_reactor *reactor)
{
    const char *directory = reactor->config->spool_directory;
    if (!directory)
        directory = "/tmp";
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    /* Not every file system has nameless files: open(2) */
    return fd == -1 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT) ? named_file(directory) : fd;
}

int pando_reactor_spool_open(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t expected)
{
    uint64_t head = connection->head_bytes > PANDO_SLOT_BYTES ? connection->head_bytes : 0;
    int in_memory = expected <= reactor->config->body_memory && expected + head <= MEMORY - reactor->spool_memory;
    connection->spool = in_memory ? memfd_create("pando-request", MFD_CLOEXEC | MFD_ALLOW_SEALING)
                                  : file_on_disk(reactor);
    if (connection->spool == -1)
        return -1;
    connection->spool_memory = in_memory ? expected + head : 0;
    reactor->spool_memory += connection->spool_memory;
    return 0;
}

int pando_reactor_spool_write(struct pando_connection *connection, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = pwrite(connection->spool, data, bytes, (off_t)connection->spooled);
        if (written == -1 && errno == EINTR)
            continue;
        if (written <= 0)
            return -1;
        data += written;
        bytes -= (size_t)written;
        connection->spooled += (uint64_t)written;
    }
    return 0;
}

/* A memfd can be sealed; of another file the workers get a description that cannot write. */
void pando_reactor_spool_seal(struct pando_connection *connection)
{
    char path[64];
    if (fcntl(connection->spool, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", connection->spool);
    int read_only = open(path, O_RDONLY | O_CLOEXEC);
    if (read_only == -1)
        return; /* no /proc: the worker gets ours */
    close(connection->spool);
    connection->spool = read_only;
}

void pando_reactor_spool_close(struct pando_reactor *reactor, struct pando_connection *connection)
{
    reactor->spool_memory -= connection->spool_memory;
    connection->spool_memory = 0;
    if (connection->spool != -1)
        close(connection->spool);
    connection->spool = -1;
    connection->spooled = 0;
}
