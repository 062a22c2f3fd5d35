/* Replaces, closes and wakes descriptors, see fds.h. Runs in any process. */
#include "fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <stdint.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* One atomic step: with close and open, another thread could get the number in between. The previous open file only
 * loses this process's reference, so a peer that still talks to another process notices nothing. */
int pando_replace_fd(int target, int source)
{
    int flags = fcntl(target, F_GETFD);
    if (flags == -1) return -1;
    if (target == source) return 0;
    while (dup3(source, target, flags & FD_CLOEXEC ? O_CLOEXEC : 0) == -1) {
        if (errno != EINTR && errno != EBUSY) return -1; /* EBUSY: a race with open(2), see dup(2) */
    }
    return 0;
}

static void sort(int *numbers, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        int number = numbers[i];
        size_t place = i;
        for (; place > 0 && numbers[place - 1] > number; place--) numbers[place] = numbers[place - 1];
        numbers[place] = number;
    }
}

/* Linux 5.9 has close_range(2); before, each number is tried. A sandbox may answer EPERM to calls that it does not
 * know (seccomp(2)). */
static int close_from_to(unsigned first, unsigned last)
{
    if (first > last) return 0;
    if (syscall(SYS_close_range, first, last, 0) == 0) return 0;
    if (errno != ENOSYS && errno != EPERM) return -1;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == -1) return -1;
    for (unsigned fd = first; fd <= last && fd < limit.rlim_max; fd++) close((int)fd);
    return 0;
}

int pando_close_all_but(int *kept, size_t count)
{
    unsigned first = STDERR_FILENO + 1;
    sort(kept, count);
    for (size_t i = 0; i < count; i++) {
        if (kept[i] < (int)first) continue;
        if (close_from_to(first, (unsigned)kept[i] - 1) == -1) return -1;
        first = (unsigned)kept[i] + 1;
    }
    return close_from_to(first, UINT_MAX);
}

static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);
        if (written == -1 && errno == EINTR) continue;
        if (written == -1) return -1;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

int pando_memory_file(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
}

int pando_sealed_memory(const char *name, const char *bytes, size_t length)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd == -1) return -1;
    if (write_all(fd, bytes, length) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    int failure = errno;
    close(fd);
    errno = failure;
    return -1;
}

void pando_eventfd_signal(int fd)
{
    uint64_t one = 1, count;
    for (int tries = 0; tries < 4; tries++) {
        if (write(fd, &one, sizeof(one)) == sizeof(one)) return;
        if (errno == EAGAIN && read(fd, &count, sizeof(count)) == -1 && errno != EAGAIN) return;
        if (errno != EAGAIN && errno != EINTR) return;
    }
}
