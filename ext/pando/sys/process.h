/* Thin calls about processes: subreaper, pidfd, death of the parent. No policy. Runs in any process. */
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
/* The pid of any child that has ended, not reaped; 0: none; -1: errno. */
pid_t pando_ended_child(void);

/* Waits until the parent is no longer `middle` but `reaper`. 0 or -1 with errno (ESRCH: adopted by another,
 * ETIMEDOUT). */
int pando_wait_adoption(pid_t middle, pid_t reaper, int timeout_ms);
/* The kernel kills this process as soon as its parent is gone. */
int pando_die_with_parent(void);
/* As above, but with `grace_ms` to finish its work before SIGKILL. */
int pando_outlive_parent(int grace_ms);
int pando_orphaned(void);
/* Listening sockets to shut when the parent is gone, even during a request. They are shut for all processes that have
 * them, so that another server can take the address. Replaces those named before. 0 or -1 with errno (EINVAL: more
 * than PANDO_SHUT_MAX). */
#define PANDO_SHUT_MAX 128
int pando_shut_when_orphaned(const int *fds, size_t count);

#endif
