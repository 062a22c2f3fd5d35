/* Forks: the double fork that makes a sibling, the probe, and the spawn of generation 0. Runs in the monitor, molds
 * and workers. */
#ifndef PANDO_SYS_FORK_H
#define PANDO_SYS_FORK_H

#include <sys/types.h>

/* Called once, when the extension is loaded. 0 or an errno. */
int pando_fork_setup(void);
/* The next fork(2) of this thread becomes a double fork: the caller gets the pid of a middle process that exits at
 * once, the final child gets 0. */
void pando_double_fork_arm(void);
void pando_double_fork_disarm(void);
/* In the forker, since it was armed: the pid of the middle process, if fork(2) did not get to return it. 0: there was
 * none. */
pid_t pando_announced_middle(void);
/* Gives back the memory in which the middle process announces itself. On both sides, when nothing waits for it any
 * more. */
void pando_forget_middle(void);
/* In the final child: the pid of the middle process, its parent until that exits. */
pid_t pando_middle_pid(void);
/* This process's pid, without a system call. Correct after the C library's fork(2) and daemon(3), and in an exec'd
 * image; not after a bare clone(2), which no C library notices. */
pid_t pando_pid(void);
/* Number of forks between the first process with this library and this one: another number means another process. */
unsigned pando_forks(void);
/* Reaps the middle process. 0, or the errno of its own fork. */
int pando_middle_wait(pid_t middle);
/* Whether this process can have two more (a middle process and its child). 0 or an errno. */
int pando_fork_probe(void);

struct pando_fd_map { int from, to; };
/* posix_spawn of argv with the given descriptors at the given numbers, and with this soft limit of open files; -1: that
 * of this process. 0 or an errno. */
int pando_spawn(pid_t *pid, char *const argv[], char *const envp[],
                const struct pando_fd_map *fds, size_t count, long files);

#endif
