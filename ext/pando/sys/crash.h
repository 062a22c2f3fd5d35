/* Announces a crash as it begins: Ruby's crash report may take longer than starting another process. Runs in
 * workers. */
#ifndef PANDO_SYS_CRASH_H
#define PANDO_SYS_CRASH_H

#include <stddef.h>

#define PANDO_CRASH_WORDS_MAX 64

/* From now on, in this process but not in its children, a signal that Ruby treats as a crash first sends one record
 * with these words to the socket `fd`, before Ruby handles it. The descriptor must stay open. Replaces an earlier
 * announcement. 0 or -1 with errno (EINVAL: too many words). */
int pando_announce_crash(int fd, const void *words, size_t length);

#endif
