/* Writes to something whose reader may stall, such as stderr, without ever waiting for it. Runs in any process.
 * O_NONBLOCK does not help: it would be set for every process that shares the descriptor. */
#ifndef PANDO_SYS_WRITE_NOW_H
#define PANDO_SYS_WRITE_NOW_H

#include <stddef.h>
#include <sys/types.h>

/* Up to so many bytes stay together in a pipe (pipe(7)), and are taken whole or not at all. */
#define PANDO_WRITE_AT_ONCE 4096u

/* Writes as much as is taken at once, up to PANDO_WRITE_AT_ONCE bytes; to a regular file everything, by a plain
 * write(2). The number of bytes, or -1 with errno; EAGAIN: nothing is taken now. */
ssize_t pando_write_now(int fd, const char *bytes, size_t length);

/* The methods for pipes and terminals, exposed for tests. EOPNOTSUPP: not available here. */
ssize_t pando_write_flagged(int fd, const char *bytes, size_t length);
ssize_t pando_write_reopened(int fd, const char *bytes, size_t length);
ssize_t pando_write_polled(int fd, const char *bytes, size_t length);

#endif
