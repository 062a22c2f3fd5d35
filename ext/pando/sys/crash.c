/* Announces a crash to the monitor, see crash.h. Runs in workers. */
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
#define NICE 5
/* Bytes around the end of the stack: more than a C function needs for itself. */
#define NEAR ((uintptr_t)1 << 20)

/* The previous handler of each signal. */
static struct sigaction before[CRASHES];
static int chained[CRASHES];
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
        setpriority(PRIO_PROCESS, 0, NICE);
    }
    errno = saved;
    for (size_t i = 0; i < CRASHES; i++)
        if (crashes[i] == signo) before[i].sa_sigaction(signo, info, context);
}

/* Where no handler was set, nobody writes a report, so there is nothing to announce ahead of. */
static int chain(size_t which)
{
    struct sigaction action;
    if (sigaction(crashes[which], NULL, &before[which]) == -1) return -1;
    if (!(before[which].sa_flags & SA_SIGINFO)) return 0;
    action = before[which];
    action.sa_sigaction = on_crash;
    if (sigaction(crashes[which], &action, NULL) == -1) return -1;
    chained[which] = 1;
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
    for (size_t i = 0; i < CRASHES; i++)
        if (!chained[i] && chain(i) == -1) return -1;
    owner = getpid();
    return 0;
}
