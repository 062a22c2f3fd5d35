/* Takes and releases the C library's locks that every process needs. Runs in new workers and molds: if a thread of
 * the forker held one of them at the fork, the child hangs here. Also runs in the mold of a cold boot, to load what
 * its children need for this. */
#ifndef PANDO_SYS_EXERCISE_H
#define PANDO_SYS_EXERCISE_H

/* The allocator: small, large and mapped blocks from this thread's arena. */
void pando_exercise_allocator(void);
/* Starts a thread that allocates from another arena and ends. */
void pando_exercise_thread(void);
/* Streams: the lock of their list and the lock of each standard stream. Flushes nothing, since the parent's buffered
 * output would be written twice. */
void pando_exercise_stdio(void);
/* The time zone: localtime(3), and with it all code that logs a time. */
void pando_exercise_clock(void);
/* The loader: loads a small library, or finds it loaded already. */
void pando_exercise_loader(void);
/* Looks up an address, a service and, if asked, the name "localhost", by the files that nsswitch.conf(5) names.
 * Nothing leaves the host. */
void pando_exercise_resolver(int name_too);

#endif
