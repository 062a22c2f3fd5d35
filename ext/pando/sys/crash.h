/* Tells of a crash when it begins: what Ruby writes about it may take longer than another process takes to come up. */
#ifndef PANDO_SYS_CRASH_H
#define PANDO_SYS_CRASH_H

#include <stddef.h>

#define PANDO_CRASH_WORDS_MAX 64

/* From now on, in this process and not in its children, one record with these words goes to the socket `fd` when a
 * signal comes that Ruby takes for a crash, before Ruby is told of it. The descriptor must stay open. It replaces what
 * was asked for before. 0 or -1 with errno (EINVAL: too many words). */
int pando_announce_crash(int fd, const void *words, size_t length);

#endif
