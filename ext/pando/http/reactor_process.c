/* Starts the reactor's process: a fork or an exec in the monitor, then the start of the reactor itself in the new
 * process. */
#include "reactor_process.h"

#include "sys/fds.h"
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TITLE "pando reactor"
#define REST 500 /* milliseconds that it has to exit by itself */

/* Signals of a crash end the reactor; all else is ordered by the monitor, over the link. SIGXFSZ is not among them: a
 * write beyond the maximum size of a file (RLIMIT_FSIZE) just fails, with EFBIG. */
static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU};

/* The parent's signal handlers belong to an interpreter that does not run here. */
static void forget_handlers(void)
{
    for (int number = 1; number <= SIGRTMAX; number++) signal(number, SIG_IGN); /* fails where it must */
    for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++) signal(deadly[i], SIG_DFL);
}

static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void die(const char *what)
{
    dprintf(STDERR_FILENO, TITLE ": %s: %s\n", what, strerror(errno));
    _exit(PANDO_REACTOR_FAILED);
}

/* Each connection takes a descriptor, and the soft limit exists only for programs that use select(2). */
static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == -1) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void close_the_others(const struct pando_reactor_config *config)
{
    size_t count = config->listener_count + 3;
    int *kept = malloc(count * sizeof(*kept));
    if (!kept) die("memory");
    for (uint32_t i = 0; i < config->listener_count; i++) kept[i] = config->listeners[i].fd;
    kept[count - 3] = config->channel;
    kept[count - 2] = config->wake;
    kept[count - 1] = config->control;
    if (pando_close_all_but(kept, count) == -1) die("close_range");
    free(kept);
}

void pando_reactor_live(const struct pando_reactor_config *config, pid_t monitor)
{
    forget_handlers();
    if (pando_outlive_parent((int)config->grace + REST) == -1) die("prctl(PR_SET_PDEATHSIG)");
    if (getppid() != monitor) _exit(PANDO_REACTOR_ORPHANED); /* it died before the signal was set */
    prctl(PR_SET_NAME, TITLE, 0, 0, 0);
    close_the_others(config);
    raise_limit();
    unblock_signals();
    int status = pando_reactor_run(config);
    if (status == PANDO_REACTOR_FAILED) die("it cannot run");
    _exit(status);
}

/* No signal may reach the child while it has its parent's handlers, nor a program that has not set its own. */
static void block_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, before);
}

static void restore_signals(const sigset_t *before)
{
    int failure = errno;
    sigprocmask(SIG_SETMASK, before, NULL);
    errno = failure;
}

pid_t pando_reactor_fork(struct pando_reactor_papers *papers)
{
    sigset_t before;
    pid_t monitor = getpid();
    block_signals(&before);
    pid_t pid = fork();
    if (pid == 0) pando_reactor_live(pando_reactor_papers_config(papers), monitor);
    restore_signals(&before);
    return pid;
}

/* Puts each descriptor at a new number, where it stays. A child of vfork(2) has a descriptor table of its own. */
static int hand_over(const struct pando_reactor_papers *papers, int sealed)
{
    const struct pando_reactor_config *config = &papers->config;
    for (uint32_t i = 0; i < config->listener_count; i++)
        if (fcntl(papers->listeners[i].fd, F_SETFD, 0) == -1) return -1;
    if (fcntl(config->channel, F_SETFD, 0) == -1 || fcntl(config->wake, F_SETFD, 0) == -1) return -1;
    if (fcntl(config->control, F_SETFD, 0) == -1 || fcntl(sealed, F_SETFD, 0) == -1) return -1;
    return 0;
}

/* The child borrows the parent's memory until it executes the program or exits: it writes to nothing but `failure`. */
static pid_t execute(int program, const struct pando_reactor_papers *papers, int sealed, char *const *environment,
                     volatile int *failure)
{
    static char title[] = TITLE;
    char *const arguments[] = {title, NULL};
    pid_t pid = vfork();
    if (pid == 0) {
        if (hand_over(papers, sealed) == 0) fexecve(program, arguments, environment);
        *failure = errno;
        _exit(127);
    }
    return pid;
}

/* The access log writes local time. -1: the zone of the machine. */
static int copy_zone(char *variable, size_t size)
{
    const char *zone = getenv("TZ");
    int length = zone ? snprintf(variable, size, "TZ=%s", zone) : -1;
    return length != -1 && (size_t)length < size ? 0 : -1;
}

pid_t pando_reactor_spawn(int program, struct pando_reactor_papers *papers)
{
    sigset_t before;
    char variable[sizeof(PANDO_REACTOR_VARIABLE) + 12], zone[PATH_MAX];
    char *const environment[] = {variable, copy_zone(zone, sizeof(zone)) == 0 ? zone : NULL, NULL};
    volatile int failure = 0;
    int sealed = pando_reactor_papers_seal(papers);
    if (sealed == -1) return -1;
    snprintf(variable, sizeof(variable), "%s=%d", PANDO_REACTOR_VARIABLE, sealed);
    block_signals(&before);
    pid_t pid = execute(program, papers, sealed, environment, &failure);
    if (pid > 0 && failure) waitpid(pid, NULL, 0);
    if (pid == -1) failure = errno;
    restore_signals(&before);
    close(sealed);
    errno = failure;
    return failure ? -1 : pid;
}
