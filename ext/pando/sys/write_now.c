/* Writes without waiting, see write_now.h. Runs in any process. */
#include "write_now.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Linux 4.14 */
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

/* Pipes support the flag since Linux 6.5. Terminals accept it and wait all the same. */
ssize_t pando_write_flagged(int fd, const char *bytes, size_t length)
{
    struct iovec part = {.iov_base = (char *)bytes, .iov_len = length};
    ssize_t written = syscall(SYS_pwritev2, fd, &part, 1L, -1L, -1L, (long)RWF_NOWAIT);
    if (written == -1 && (errno == ENOSYS || errno == EINVAL || errno == ESPIPE)) errno = EOPNOTSUPP;
    return written;
}

/* Writes through an open file of our own, for which O_NONBLOCK can be set. */
ssize_t pando_write_reopened(int fd, const char *bytes, size_t length)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own == -1 && errno == ENXIO) return errno = EPIPE, -1; /* fifo(7): no process has it open for reading */
    if (own == -1) return errno = EOPNOTSUPP, -1; /* no /proc, another user's file, or no free descriptor */
    ssize_t written = write(own, bytes, length);
    int failure = errno;
    close(own);
    errno = failure;
    return written;
}

/* The last resort: it waits only if another process fills the pipe between the two calls. */
ssize_t pando_write_polled(int fd, const char *bytes, size_t length)
{
    struct pollfd target = {.fd = fd, .events = POLLOUT};
    int ready = poll(&target, 1, 0);
    if (ready == 0) errno = EAGAIN;
    return ready > 0 ? write(fd, bytes, length) : -1;
}

static ssize_t write_by_any_means(int fd, mode_t mode, const char *bytes, size_t length)
{
    ssize_t written = -1;
    errno = EOPNOTSUPP;
    if (S_ISFIFO(mode)) written = pando_write_flagged(fd, bytes, length);
    if (written == -1 && errno == EOPNOTSUPP) written = pando_write_reopened(fd, bytes, length);
    if (written == -1 && errno == EOPNOTSUPP) written = pando_write_polled(fd, bytes, length);
    return written;
}

ssize_t pando_write_now(int fd, const char *bytes, size_t length)
{
    struct stat target;
    ssize_t written;
    if (fstat(fd, &target) == -1) return -1;
    if (length > PANDO_WRITE_AT_ONCE && !S_ISREG(target.st_mode)) length = PANDO_WRITE_AT_ONCE;
    do {
        if (S_ISREG(target.st_mode))
            written = write(fd, bytes, length);
        else if (S_ISSOCK(target.st_mode))
            written = send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        else
            written = write_by_any_means(fd, target.st_mode, bytes, length);
    } while (written == -1 && errno == EINTR);
    return written;
}
