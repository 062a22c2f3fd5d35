/* Which descriptors are open; descriptors that keep their number while the open file behind them changes, and
 * descriptors that a new process must not have. Runs in any process. */
#ifndef PANDO_SYS_FDS_H
#define PANDO_SYS_FDS_H

#include <stddef.h>
#include <sys/types.h>

/* Writes the numbers of the open descriptors, as many as fit. Returns how many there are, or -1 with errno. Allocates
 * nothing: safe in a forked child. */
ssize_t pando_open_descriptors(int *numbers, size_t room);

/* Makes `target` refer to the open file of `source`; its close-on-exec flag stays as it was. 0 or -1 with errno
 * (EBADF: `target` is not open). */
int pando_replace_fd(int target, int source);

/* Closes all descriptors but stdin, stdout, stderr and the given ones, which it sorts. Allocates nothing: safe in a
 * forked child. 0 or -1 with errno. */
int pando_close_all_but(int *kept, size_t count);

/* A file in memory, empty. -1: errno. */
int pando_memory_file(const char *name);

/* A file in memory with these bytes, which can never change (memfd_create(2)); close-on-exec. Its descriptor, or -1
 * with errno. */
int pando_sealed_memory(const char *name, const char *bytes, size_t length);

/* Wakes every process that watches an eventfd, even edge-triggered. If nobody reads the eventfd, its count may be
 * full and take no more, so it is emptied first. */
void pando_eventfd_signal(int fd);

#endif
