/* Double forks, the fork probe and the cold spawn, see fork.h. Runs in the monitor, molds and workers. */
#include "fork.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* For one thread: another thread that forks meanwhile gets an ordinary child. */
static _Thread_local volatile sig_atomic_t armed;
static pid_t middle;
static pid_t current;
/* The middle process writes its pid here, since its forker may never see it: a hook may raise. Shared with the middle
 * process, for one fork only. NULL: the kernel had no page for it. */
static volatile pid_t *announced;
static unsigned forks;

void pando_forget_middle(void)
{
    if (announced) munmap((void *)announced, sizeof *announced);
    announced = NULL;
}

/* Runs inside the C library's fork(2), in the new process, before the interpreter knows of it. So nothing of Ruby (no
 * hook, no thread clean-up, no timer) runs in the middle process: it exits before fork() returns. What Ruby does
 * after a fork happens once, in the final child. */
static void split_in_child(void)
{
    forks++;
    current = getpid();
    if (!armed) return;
    armed = 0;
    middle = current;
    if (announced) *announced = current;
    pid_t pid = _Fork(); /* no atfork handlers: those that follow run in the final child only */
    if (pid == 0) {
        current = getpid();
        pando_forget_middle();
        return;
    }
    _exit(pid < 0 ? errno : 0);
}

int pando_fork_setup(void)
{
    current = getpid();
    return pthread_atfork(NULL, NULL, split_in_child);
}

pid_t pando_pid(void)
{
    return current;
}

void pando_double_fork_arm(void)
{
    pando_forget_middle();
    void *page = mmap(NULL, sizeof *announced, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    announced = page == MAP_FAILED ? NULL : page;
    armed = 1;
}

void pando_double_fork_disarm(void)
{
    armed = 0;
}

/* The middle process may not have announced itself yet: wait up to a second. */
pid_t pando_announced_middle(void)
{
    struct timespec moment = {0, 1000000};
    for (int i = 0; announced && !*announced && i < 1000; i++) nanosleep(&moment, NULL);
    return announced ? *announced : 0;
}

unsigned pando_forks(void)
{
    return forks;
}

pid_t pando_middle_pid(void)
{
    return middle;
}

int pando_middle_wait(pid_t middle)
{
    int status;
    pid_t reaped;
    do {
        reaped = waitpid(middle, &status, 0);
    } while (reaped == -1 && errno == EINTR);
    if (reaped == -1) return errno == ECHILD ? 0 : errno; /* the app ignores SIGCHLD: reaped already */
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    return ECHILD; /* killed before or after its fork: only the link can tell */
}

static void nested_probe(void)
{
    pid_t inner = vfork();
    if (inner == 0) _exit(0);
    if (inner < 0) _exit(errno);
    waitpid(inner, NULL, 0);
    _exit(0);
}

int pando_fork_probe(void)
{
    sigset_t all, before;
    int result;
    /* The child of vfork borrows the parent's memory: no handler may run in it. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = vfork();
    if (pid == 0) nested_probe();
    result = pid < 0 ? errno : pando_middle_wait(pid);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return result;
}

/* A new process inherits the limit, so the caller has it for a moment. It opens nothing meanwhile. */
static int spawn_limited(pid_t *pid, char *const argv[], char *const envp[],
                         const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes, long files)
{
    struct rlimit own, given;
    int limited = files >= 0 && getrlimit(RLIMIT_NOFILE, &own) == 0;
    if (limited) {
        given = (struct rlimit){(rlim_t)files < own.rlim_max ? (rlim_t)files : own.rlim_max, own.rlim_max};
        limited = setrlimit(RLIMIT_NOFILE, &given) == 0;
    }
    int failure = posix_spawnp(pid, argv[0], actions, attributes, argv, envp);
    if (limited) setrlimit(RLIMIT_NOFILE, &own);
    return failure;
}

int pando_spawn(pid_t *pid, char *const argv[], char *const envp[],
                const struct pando_fd_map *fds, size_t count, long files)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure) return failure;
    failure = posix_spawnattr_init(&attributes);
    if (failure) {
        posix_spawn_file_actions_destroy(&actions);
        return failure;
    }
    sigemptyset(&none);
    failure = posix_spawnattr_setsigmask(&attributes, &none);
    if (!failure) failure = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    for (size_t i = 0; i < count && !failure; i++)
        failure = posix_spawn_file_actions_adddup2(&actions, fds[i].from, fds[i].to);
    if (!failure) failure = spawn_limited(pid, argv, envp, &actions, &attributes, files);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}
