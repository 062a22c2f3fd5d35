/* Announces a crash as it begins: Ruby's crash report may take longer than starting another process. Runs in workers,
 * and in the molds that they are forked from. */
#ifndef PANDO_SYS_CRASH_H
#define PANDO_SYS_CRASH_H

#include <stddef.h>

#define PANDO_CRASH_WORDS_MAX 64

/* Called before any code of the application: takes the place right before Ruby's own handlers, in this process and in
 * its children. A library may handle faults of its own (WebAssembly's or Java's) that are no crash. Its handlers come
 * later, so they get each signal first, and pass on only what is not theirs. 0 or -1 with errno. */
int pando_watch_crashes(void);

/* From now on, in this process but not in its children, a signal that Ruby treats as a crash first sends one record
 * with these words to the socket `fd`, before Ruby handles it, and the thread gets a lower priority. Needs
 * pando_watch_crashes. The descriptor must stay open. Replaces an earlier announcement. 0 or -1 with errno (EINVAL: too
 * many words). */
int pando_announce_crash(int fd, const void *words, size_t length);

#endif
