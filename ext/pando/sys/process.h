/* Thin calls about processes: subreaper, pidfd, death of the parent. No policy. */
#ifndef PANDO_SYS_PROCESS_H
#define PANDO_SYS_PROCESS_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

int pando_subreaper_enable(void);
int pando_pidfd_open(pid_t pid);
int pando_pidfd_signal(int pidfd, int signo);
/* 1: filled in and (unless keep) reaped; 0: still alive; -1: errno. */
int pando_pidfd_wait(int pidfd, int keep, siginfo_t *info);
/* The pid of any child that has ended, left unreaped; 0: none; -1: errno. */
pid_t pando_ended_child(void);

/* Waits until the parent is no longer `middle` but `reaper`. 0 or -1 with errno (ESRCH: adopted by another, ETIMEDOUT). */
int pando_wait_adoption(pid_t middle, pid_t reaper, int timeout_ms);
/* The kernel kills this process the moment its parent is gone. */
int pando_die_with_parent(void);
/* As above, but this process gets `grace_ms` to end its work; then SIGKILL. */
int pando_outlive_parent(int grace_ms);
int pando_orphaned(void);
/* Listening sockets that are shut then, for whoever else has them too, even in the midst of a request: another server
 * can have the address. They replace those named before. 0 or -1 with errno (EINVAL: more than PANDO_SHUT_MAX). */
#define PANDO_SHUT_MAX 128
int pando_shut_when_orphaned(const int *fds, size_t count);

/* For this process and all that is forked from it; the first also through an exec (prctl(2)). 0 or -1 with errno. */
int pando_huge_pages_disable(void);
int pando_same_pages_merge(void); /* EINVAL: before Linux 6.4, or without KSM */

#endif
