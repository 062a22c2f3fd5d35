/* Announces a crash to the monitor, see crash.h. Runs in workers, and in the molds that they are forked from. */
#include "crash.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL};
#define CRASHES (sizeof(crashes) / sizeof(crashes[0]))
/* Writing Ruby's crash report takes CPU time, and all other processes come first. */
#define NICER 5
/* Bytes around the end of the stack: more than a C function needs for itself. */
#define NEAR ((uintptr_t)1 << 20)

/* The handler of each signal that comes after ours. */
static struct sigaction next[CRASHES];
static int watched[CRASHES];
static char record[PANDO_CRASH_WORDS_MAX];
static size_t record_length;
static int record_fd;
static volatile pid_t owner;

/* Ruby survives a stack overflow. */
static int stack_too_deep(const siginfo_t *info, const void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    const ucontext_t *interrupted = context;
#if defined(__x86_64__)
    uintptr_t stack = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    uintptr_t stack = (uintptr_t)interrupted->uc_mcontext.sp;
#else
    uintptr_t stack = address; /* unknown, so it may be an overflow */
    (void)interrupted;
#endif
    if (info->si_code <= 0) return 0; /* sent by a process */
    return (address > stack ? address - stack : stack - address) < NEAR;
}

/* Only async-signal-safe functions (signal-safety(7)) and plain system calls, and none of them waits. */
static void on_crash(int signo, siginfo_t *info, void *context)
{
    int saved = errno;
    if (owner == getpid() && !stack_too_deep(info, context)) {
        owner = 0;
        (void)!send(record_fd, record, record_length, MSG_DONTWAIT | MSG_NOSIGNAL);
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER); /* the kernel's limit is 19 */
    }
    errno = saved;
    for (size_t i = 0; i < CRASHES; i++)
        if (crashes[i] == signo) next[i].sa_sigaction(signo, info, context);
}

/* Where no handler was set, nobody writes a report, so there is nothing to announce ahead of. */
static int watch(size_t which)
{
    struct sigaction action;
    if (sigaction(crashes[which], NULL, &next[which]) == -1) return -1;
    if (!(next[which].sa_flags & SA_SIGINFO)) return 0;
    action = next[which];
    action.sa_sigaction = on_crash;
    if (sigaction(crashes[which], &action, NULL) == -1) return -1;
    watched[which] = 1;
    return 0;
}

int pando_watch_crashes(void)
{
    for (size_t i = 0; i < CRASHES; i++)
        if (!watched[i] && watch(i) == -1) return -1;
    return 0;
}

static void forget(void)
{
    owner = 0;
}

int pando_announce_crash(int fd, const void *words, size_t length)
{
    static int forgotten_in_children;
    if (length > sizeof(record)) {
        errno = EINVAL;
        return -1;
    }
    if (!forgotten_in_children && (errno = pthread_atfork(NULL, NULL, forget)) != 0) return -1;
    forgotten_in_children = 1;
    forget(); /* an incomplete record goes to nobody */
    memcpy(record, words, length);
    record_length = length;
    record_fd = fd;
    owner = getpid();
    return 0;
}
