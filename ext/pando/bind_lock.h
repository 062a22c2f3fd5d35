/* Follows which thread has the interpreter lock, see bind_lock.c. Runs in workers with threads. */
#ifndef PANDO_BIND_LOCK_H
#define PANDO_BIND_LOCK_H

#include "sys/scoreboard.h"

/* The calling thread's use of the lock is written into this job from now on. */
void pando_lock_follow(struct pando_job *job);
/* Where the number of threads that have or want the lock is written, and what is called when it has become 0: by any
 * thread, without the lock. Both are NULL at first. */
void pando_lock_publish(_Atomic uint32_t *users, void (*freed)(void *), void *data);
/* `data` is about to go. */
void pando_lock_forget(const void *data);
/* Starts to follow all threads of this process. 0: this Ruby cannot (before 3.2). Called once in a process. */
int pando_lock_watch(void);

#endif
