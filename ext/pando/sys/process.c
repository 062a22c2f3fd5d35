/* Thin calls about processes, see process.h. Runs in any process. */
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* A realtime signal: no Ruby program can trap it, so none can take it away. */
#define ORPHAN_SIGNAL (SIGRTMAX - 2)

static volatile sig_atomic_t orphaned;
static volatile sig_atomic_t orphan_grace_ms;
static int to_be_shut[PANDO_SHUT_MAX];
static volatile sig_atomic_t shut_count;

int pando_subreaper_enable(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

int pando_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0); /* always close-on-exec, pidfd_open(2) */
}

int pando_pidfd_signal(int pidfd, int signo)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
}

static int wait_for(idtype_t type, id_t id, int options, siginfo_t *info)
{
    int result;
    memset(info, 0, sizeof *info);
    do {
        result = waitid(type, id, info, WEXITED | WNOHANG | options);
    } while (result == -1 && errno == EINTR);
    return result;
}

int pando_pidfd_wait(int pidfd, int keep, siginfo_t *info)
{
    if (wait_for((idtype_t)P_PIDFD, (id_t)pidfd, keep ? WNOWAIT : 0, info) == -1) return -1;
    return info->si_pid != 0;
}

pid_t pando_ended_child(void)
{
    siginfo_t info;
    if (wait_for(P_ALL, 0, WNOWAIT, &info) == -1) return errno == ECHILD ? 0 : -1;
    return info.si_pid;
}

/* 0 once the process behind the pidfd has ended. */
static int wait_exit(int pidfd, int timeout_ms)
{
    struct pollfd exit = {.fd = pidfd, .events = POLLIN};
    int ready;
    do {
        ready = poll(&exit, 1, timeout_ms);
    } while (ready == -1 && errno == EINTR);
    if (ready == 0) errno = ETIMEDOUT;
    return ready > 0 ? 0 : -1;
}

/* The middle process of a double fork is about to exit: its pidfd becomes readable after its children were given to
 * the subreaper (exit(2)). If the middle process is no longer the parent, adoption has happened already. */
int pando_wait_adoption(pid_t middle, pid_t reaper, int timeout_ms)
{
    int pidfd = getppid() == middle ? pando_pidfd_open(middle) : -1;
    if (pidfd != -1) {
        int result = getppid() == middle ? wait_exit(pidfd, timeout_ms) : 0;
        int failure = errno;
        close(pidfd);
        if (result == -1) return errno = failure, -1;
    } else if (getppid() == middle) {
        return -1;
    }
    if (getppid() == reaper) return 0;
    errno = ESRCH;
    return -1;
}

int pando_die_with_parent(void)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

/* A number that the application has closed may be something else by now: shut only listening sockets. */
static void shut_listeners(void)
{
    for (int i = 0; i < shut_count; i++) {
        int listens = 0;
        socklen_t size = sizeof listens;
        if (getsockopt(to_be_shut[i], SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens)
            shutdown(to_be_shut[i], SHUT_RDWR);
    }
}

int pando_shut_when_orphaned(const int *fds, size_t count)
{
    if (count > PANDO_SHUT_MAX) return errno = EINVAL, -1;
    shut_count = 0;
    for (size_t i = 0; i < count; i++) to_be_shut[i] = fds[i];
    shut_count = (sig_atomic_t)count;
    if (orphaned) shut_listeners();
    return 0;
}

/* Only async-signal-safe calls. The process cannot stop a kernel timer that sends SIGKILL by what it does with its
 * own signals. */
static void on_orphaned(int signo)
{
    (void)signo;
    int saved = errno;
    struct sigevent event;
    int timer = 0;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    struct itimerspec due = {.it_value = {.tv_sec = orphan_grace_ms / 1000,
                                          .tv_nsec = (orphan_grace_ms % 1000) * 1000000L + 1}};
    orphaned = 1;
    shut_listeners();
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == -1 ||
        syscall(SYS_timer_settime, timer, 0, &due, NULL) == -1)
        _exit(1);
    errno = saved;
}

int pando_outlive_parent(int grace_ms)
{
    struct sigaction action;
    sigset_t mask;
    orphan_grace_ms = grace_ms;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_orphaned;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    if (sigaction(ORPHAN_SIGNAL, &action, NULL) == -1) return -1;
    sigemptyset(&mask);
    sigaddset(&mask, ORPHAN_SIGNAL);
    if (sigprocmask(SIG_UNBLOCK, &mask, NULL) == -1) return -1;
    return prctl(PR_SET_PDEATHSIG, ORPHAN_SIGNAL, 0, 0, 0);
}

int pando_orphaned(void)
{
    return orphaned;
}
