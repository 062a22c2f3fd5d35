/* Lists, replaces, closes and wakes descriptors, see fds.h. Runs in any process. */
#include "fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define ENTRIES 4096 /* bytes of directory entries read at a time */
#define LISTED 512   /* descriptors that are closed at a time */

/* The record of getdents64(2). */
struct entry {
    uint64_t inode;
    int64_t next;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* The descriptor that an entry of /proc/self/fd names; -1: none ("." for example). */
static int number_of(const struct entry *entry)
{
    char *end;
    long number = strtol(entry->name, &end, 10);
    return end == entry->name || *end || number < 0 || number > INT_MAX ? -1 : (int)number;
}

/* Without opendir(3), which calls malloc: a forked child would have to copy pages for that. */
ssize_t pando_open_descriptors(int *numbers, size_t room)
{
    _Alignas(struct entry) char bytes[ENTRIES];
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t count = 0;
    ssize_t got;
    if (folder == -1) return -1;
    while ((got = syscall(SYS_getdents64, folder, bytes, sizeof(bytes))) > 0) {
        for (ssize_t at = 0; at < got; at += ((struct entry *)(bytes + at))->size) {
            int number = number_of((struct entry *)(bytes + at));
            if (number == -1 || number == folder) continue;
            if (count < room) numbers[count] = number;
            count++;
        }
    }
    int failure = errno;
    close(folder);
    if (got == 0) return (ssize_t)count;
    errno = failure;
    return -1;
}

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

static int close_range_of(unsigned first, unsigned last)
{
    return (int)syscall(SYS_close_range, first, last, 0);
}

static int close_each(unsigned first, unsigned last)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == -1) return -1;
    for (unsigned fd = first; fd <= last && fd < limit.rlim_max; fd++) close((int)fd);
    return 0;
}

/* What lies between the kept ones, and behind the last. */
static int close_gaps(const int *kept, size_t count, int (*close_from_to)(unsigned first, unsigned last))
{
    unsigned first = STDERR_FILENO + 1;
    for (size_t i = 0; i < count; i++) {
        if (kept[i] < (int)first) continue;
        if ((unsigned)kept[i] > first && close_from_to(first, (unsigned)kept[i] - 1) == -1) return -1;
        first = (unsigned)kept[i] + 1;
    }
    return close_from_to(first, UINT_MAX);
}

static int is_kept(int fd, const int *kept, size_t count)
{
    if (fd <= STDERR_FILENO) return 1;
    for (size_t i = 0; i < count; i++)
        if (kept[i] == fd) return 1;
    return 0;
}

/* -1: there is no list, or what is kept fills it. */
static int close_listed(const int *kept, size_t count)
{
    int open[LISTED];
    for (;;) {
        ssize_t all = pando_open_descriptors(open, LISTED);
        size_t closed = 0;
        if (all == -1) return -1;
        for (ssize_t i = 0; i < all && i < LISTED; i++) {
            if (is_kept(open[i], kept, count)) continue;
            close(open[i]);
            closed++;
        }
        if (all <= LISTED) return 0;
        if (closed == 0) return -1;
    }
}

/* Linux 5.9 has close_range(2). A sandbox may answer EPERM to calls that it does not know (seccomp(2)). Then those are
 * closed that /proc shows. Without it each number is tried, up to a limit that may be a billion. */
int pando_close_all_but(int *kept, size_t count)
{
    sort(kept, count);
    if (close_gaps(kept, count, close_range_of) == 0) return 0;
    if (errno != ENOSYS && errno != EPERM) return -1;
    if (close_listed(kept, count) == 0) return 0;
    return close_gaps(kept, count, close_each);
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
