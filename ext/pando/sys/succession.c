/* A line of successors, see succession.h. Runs in all processes of a test run. */
#include "succession.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
#define PASSED_ON (sizeof passed_on / sizeof *passed_on)

static pid_t living;
/* Set by the handlers. */
static volatile sig_atomic_t pending[PASSED_ON];
static volatile int bell = -1;

struct line {
    int socket;
    pid_t witness;
    struct sigaction before[PASSED_ON];
    struct sigaction chld_before;
};

static void ring(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info, (void)context;
    int saved = errno;
    if (bell != -1) eventfd_write(bell, 1);
    errno = saved;
}

/* A terminal's ^C reaches the whole process group anyway, and comes from the kernel. */
static void note(int signo, siginfo_t *info, void *context)
{
    if (info->si_code == SI_KERNEL) return;
    for (size_t i = 0; i < PASSED_ON; i++)
        if (passed_on[i] == signo) pending[i] = 1;
    ring(signo, info, context);
}

static void swallow(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info, (void)context;
}

static void handle(int signo, void (*handler)(int, siginfo_t *, void *), struct sigaction *before)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&action.sa_mask);
    sigaction(signo, &action, before); /* fails for SIGKILL and SIGSTOP only */
}

static void take_signals(struct line *line, void (*handler)(int, siginfo_t *, void *))
{
    for (size_t i = 0; i < PASSED_ON; i++) handle(passed_on[i], handler, &line->before[i]);
}

static void return_signals(const struct line *line)
{
    for (size_t i = 0; i < PASSED_ON; i++) sigaction(passed_on[i], &line->before[i], NULL);
}

/* It is frozen, and its memory holds nothing that matters: SIGKILL is fine. */
static void dismiss(struct line *line)
{
    if (line->witness) kill(line->witness, SIGKILL);
    line->witness = 0;
}

static void hear_births(struct line *line)
{
    pid_t born;
    while (recv(line->socket, &born, sizeof born, MSG_DONTWAIT) == (ssize_t)sizeof born) {
        if (born == living) continue; /* the first heir, which guard() knows already */
        dismiss(line);
        line->witness = living;
        living = born;
    }
}

/* Not from the handler: which process lives is known only when all births have been read. */
static void pass_on(void)
{
    for (size_t i = 0; i < PASSED_ON; i++) {
        if (!pending[i]) continue;
        pending[i] = 0;
        if (living) kill(living, passed_on[i]);
    }
}

static int asked_to_end(int signo)
{
    for (size_t i = 0; i < PASSED_ON; i++)
        if (passed_on[i] == signo) return 1;
    return signo == SIGALRM || signo == SIGPIPE;
}

static void end_by(int signo)
{
    struct rlimit none = {0, 0};
    sigset_t mask;
    setrlimit(RLIMIT_CORE, &none);
    signal(signo, SIG_DFL);
    sigemptyset(&mask);
    sigaddset(&mask, signo);
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
    kill(getpid(), signo);
    _exit(128 + signo);
}

/* 0: the witness takes over; a signal: there is no witness. */
static int bury(struct line *line, const siginfo_t *info)
{
    living = 0;
    waitpid(info->si_pid, NULL, 0);
    if (info->si_code == CLD_EXITED || asked_to_end(info->si_status)) {
        pid_t witness = line->witness;
        dismiss(line);
        if (witness) waitpid(witness, NULL, 0);
        if (info->si_code == CLD_EXITED) _exit(info->si_status);
        end_by(info->si_status);
    }
    pid_t heir = line->witness;
    line->witness = 0;
    if (!heir || send(line->socket, &info->si_status, sizeof info->si_status, MSG_NOSIGNAL) == -1)
        return info->si_status;
    living = heir;
    return 0;
}

/* Reaps all that have ended, orphans of the app included. 0, a signal as bury() returns it, or -1. */
static int reap(struct line *line)
{
    for (;;) {
        siginfo_t info;
        memset(&info, 0, sizeof info);
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == -1) {
            if (errno == EINTR) continue;
            return -1;
        }
        if (info.si_pid == 0) return 0;
        hear_births(line); /* a process that has ended had announced itself before */
        if (info.si_pid == living) {
            int signo = bury(line, &info);
            if (signo) return signo;
            continue;
        }
        if (info.si_pid == line->witness) line->witness = 0;
        waitpid(info.si_pid, NULL, 0);
    }
}

static int guard(struct line *line)
{
    struct pollfd fds[2] = {{.fd = bell, .events = POLLIN}, {.fd = line->socket, .events = POLLIN}};
    for (;;) {
        eventfd_t count;
        int result = reap(line);
        if (result) return result;
        if (poll(fds, 2, -1) == -1 && errno != EINTR) return -1;
        if (fds[0].revents) eventfd_read(bell, &count);
        hear_births(line);
        pass_on();
    }
}

int pando_succession_guard(int socket, pid_t first_heir)
{
    struct line line = {.socket = socket, .witness = 0};
    living = first_heir;
    for (size_t i = 0; i < PASSED_ON; i++) pending[i] = 0;
    bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell == -1) return -1;
    take_signals(&line, note);
    handle(SIGCHLD, ring, &line.chld_before);
    int result = guard(&line);
    int failure = errno;
    living = 0;
    return_signals(&line);
    sigaction(SIGCHLD, &line.chld_before, NULL);
    close(bell);
    bell = -1;
    errno = failure;
    return result;
}

int pando_succession_witness(int socket)
{
    struct line line = {.socket = socket, .witness = 0};
    struct pollfd readable = {.fd = socket, .events = POLLIN};
    int signo = 0;
    ssize_t length;
    take_signals(&line, swallow);
    do { /* the socket may be in non-blocking mode */
        poll(&readable, 1, -1);
        length = recv(socket, &signo, sizeof signo, 0);
    } while (length == -1 && (errno == EINTR || errno == EAGAIN));
    int failure = errno;
    return_signals(&line);
    errno = length == -1 ? failure : EPROTO;
    return length == (ssize_t)sizeof signo ? signo : -1;
}

int pando_succession_announce(int socket)
{
    pid_t self = getpid();
    return send(socket, &self, sizeof self, MSG_NOSIGNAL) == (ssize_t)sizeof self ? 0 : -1;
}
