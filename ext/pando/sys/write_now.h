/* Writing to what may have a reader that stalls, such as stderr, without ever
 * waiting for it. O_NONBLOCK is of no use there: it would be set for every
 * process that shares the descriptor. */
#ifndef PANDO_SYS_WRITE_NOW_H
#define PANDO_SYS_WRITE_NOW_H

#include <stddef.h>
#include <sys/types.h>

/* At most this many bytes stay together in a pipe (pipe(7)), and are taken whole or not at all. */
#define PANDO_WRITE_AT_ONCE 4096u

/* Writes what is taken at once, of at most PANDO_WRITE_AT_ONCE bytes; to a regular file all, by a plain write(2).
 * The number of bytes, or -1 with errno, which is EAGAIN if nothing is taken now. */
ssize_t pando_write_now(int fd, const char *bytes, size_t length);

/* The ways in which it is done for pipes and terminals, for tests. EOPNOTSUPP: not here. */
ssize_t pando_write_flagged(int fd, const char *bytes, size_t length);
ssize_t pando_write_reopened(int fd, const char *bytes, size_t length);
ssize_t pando_write_polled(int fd, const char *bytes, size_t length);

#endif
