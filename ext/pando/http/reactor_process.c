#include "reactor_process.h"

#include "sys/fds.h"
#include "sys/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define REST 500 /* milliseconds, to end by itself */

/* What would tell a crash must; all else is the monitor's to say, over the link. */
static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU, SIGXFSZ};

/* The parent's handlers are for an interpreter that does not run here. */
static void forget_handlers(void)
{
    for (int number = 1; number <= SIGRTMAX; number++) signal(number, SIG_IGN); /* refused where it must be */
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
    dprintf(STDERR_FILENO, "pando reactor: %s: %s\n", what, strerror(errno));
    _exit(PANDO_REACTOR_FAILED);
}

/* Each connection is a descriptor, and the soft limit is one for programs that use select(2). */
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

static void live(const struct pando_reactor_config *config, pid_t parent)
{
    forget_handlers();
    if (pando_outlive_parent((int)config->grace + REST) == -1) die("prctl(PR_SET_PDEATHSIG)");
    if (getppid() != parent) _exit(PANDO_REACTOR_ORPHANED); /* it died before the signal was set */
    prctl(PR_SET_NAME, "pando reactor", 0, 0, 0);
    close_the_others(config);
    raise_limit();
    unblock_signals();
    int status = pando_reactor_run(config);
    if (status == PANDO_REACTOR_FAILED) die("it cannot run");
    _exit(status);
}

/* No signal may find the child with its parent's handlers. */
pid_t pando_reactor_fork(const struct pando_reactor_config *config)
{
    sigset_t all, before;
    pid_t parent = getpid();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) live(config, parent);
    int failure = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = failure;
    return pid;
}
