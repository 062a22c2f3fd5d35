/* Takes the locks of the C library that every process needs, and gives them back:
 * a child that was forked while a thread held one of them stands still here. */
#ifndef PANDO_SYS_EXERCISE_H
#define PANDO_SYS_EXERCISE_H

/* The allocator: small, large and mapped blocks, of this thread's arena. */
void pando_exercise_allocator(void);
/* A thread is started, allocates from an arena that is not ours, and ends. */
void pando_exercise_thread(void);
/* Streams: the list of all of them and the lock of each standard one. Nothing is flushed,
 * for what the parent had buffered would be written twice. */
void pando_exercise_stdio(void);
/* The time zone: localtime(3) and everything that logs a time. */
void pando_exercise_clock(void);
/* The loader: a small library is loaded, or found where it is loaded already. */
void pando_exercise_loader(void);
/* Looks up an address, a service and, if asked to, the name "localhost", by the files that nsswitch.conf(5)
 * names: nothing leaves the host. */
void pando_exercise_resolver(int name_too);

#endif
