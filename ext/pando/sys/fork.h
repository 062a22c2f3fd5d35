/* Forks: the double fork that makes a sibling, the probe, and the spawn of generation 0. */
#ifndef PANDO_SYS_FORK_H
#define PANDO_SYS_FORK_H

#include <sys/types.h>

/* To be called once, when the extension is loaded. 0 or an errno. */
int pando_fork_setup(void);
/* The next fork(2) of this thread becomes a double fork: the caller sees the
 * pid of a middle process that exits at once, the final child sees 0. */
void pando_double_fork_arm(void);
void pando_double_fork_disarm(void);
/* In the forker, between the two: the middle that was forked, if fork(2) itself did not get to return its pid to us.
 * 0: there was none. */
pid_t pando_announced_middle(void);
/* In the final child: the process that it is a child of until that exits. */
pid_t pando_middle_pid(void);
/* This process, without a system call: right after fork(2) and daemon(3) of the C library, and in an
 * exec'd image; not after a bare clone(2), which no C library hears of. */
pid_t pando_pid(void);
/* Forks between the first process with this library and this one: another number, another process. */
unsigned pando_forks(void);
/* Forks that this process has made: so many others may hold copies of its descriptors. */
unsigned pando_copies(void);
/* Reaps the middle process. 0, or the errno of its own fork. */
int pando_middle_wait(pid_t middle);
/* Can this process have two more (a middle and its child)? 0 or an errno. */
int pando_fork_probe(void);

struct pando_fd_map { int from, to; };
/* posix_spawn of argv with the given descriptors at the given numbers. 0 or an errno. */
int pando_spawn(pid_t *pid, char *const argv[], char *const envp[],
                const struct pando_fd_map *fds, size_t count);

#endif
