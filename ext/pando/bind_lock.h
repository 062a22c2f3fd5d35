/* Follows which thread has the interpreter lock, see bind_lock.c. Runs in workers with threads. */
#ifndef PANDO_BIND_LOCK_H
#define PANDO_BIND_LOCK_H

#include "sys/scoreboard.h"

/* The calling thread's use of the lock is written into this job from now on. */
void pando_lock_follow(struct pando_job *job);
/* Starts to follow all threads of this process. 0: this Ruby cannot (before 3.2). Called once in a process.
 * users: where PANDO_LANE_LOCK and the number of threads that have or want the lock are kept. when_freed: called when
 * that number has become 0, by any thread, without the lock. Both may be NULL. */
int pando_lock_watch(_Atomic uint32_t *users, void (*when_freed)(void *), void *data);
/* `data` is about to go: nothing is followed any more. */
void pando_lock_forget(const void *data);

#endif
