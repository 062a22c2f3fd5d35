/* A thread that writes lines, see log_writer.h. */
#include "log_writer.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define REST 20u    /* milliseconds after a wake-up and a write, in which further lines gather for the next write */
#define PAUSE 1000u /* milliseconds until a failed write is tried again */
#define MODE 0640

static void signal_thread(const struct pando_log_writer *writer)
{
    const uint64_t one = 1;
    while (write(writer->wake, &one, sizeof(one)) == -1 && errno == EINTR)
        ;
}

/* --- the thread that writes --- */

static void failed(const struct pando_log_writer *writer)
{
    atomic_store(writer->failure, (uint64_t)errno);
}

static int opened(const struct pando_log_writer *writer)
{
    if (strcmp(writer->path, "-") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return open(writer->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, MODE);
}

/* If that fails, the next turn tries again; until then the old file is written to, if there is one. */
static void open_again(struct pando_log_writer *writer)
{
    int file = opened(writer);
    if (file == -1) {
        failed(writer);
        return;
    }
    atomic_store(&writer->reopen, 0);
    if (writer->file != -1)
        close(writer->file);
    writer->file = file;
}

/* A standard output that somebody has made non-blocking. */
static void wait_until_writable(const struct pando_log_writer *writer)
{
    struct pollfd file = {.fd = writer->file, .events = POLLOUT};
    poll(&file, 1, PAUSE);
}

/* Writes what waits, in pieces as long as the ring allows. 0: all is written; -1: that failed, and the rest waits. */
static int write_out(struct pando_log_writer *writer)
{
    uint64_t written = atomic_load_explicit(&writer->written, memory_order_relaxed);
    for (;;) {
        uint64_t left = atomic_load_explicit(&writer->put, memory_order_acquire) - written;
        if (left == 0)
            return 0;
        size_t place = (size_t)(written % PANDO_LOG_RING), most = PANDO_LOG_RING - place;
        ssize_t bytes = writer->file == -1 ? -1 : write(writer->file, writer->ring + place, left < most ? left : most);
        if (bytes > 0) {
            written += (uint64_t)bytes;
            atomic_store_explicit(&writer->written, written, memory_order_release);
            if (!atomic_load(&writer->reopen))
                atomic_store(writer->failure, 0);
        } else if (writer->file == -1) {
            return -1;
        } else if (bytes == -1 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            wait_until_writable(writer);
            if (atomic_load(&writer->stopped))
                return -1;
        } else if (bytes == -1 && errno != EINTR) {
            failed(writer);
            return -1;
        }
    }
}

/* A path that cannot be opened anew has time until the next line. */
static int anything_to_do(const struct pando_log_writer *writer)
{
    int reopen = atomic_load(&writer->reopen) && atomic_load(writer->failure) == 0;
    return atomic_load(&writer->put) != atomic_load(&writer->written) || reopen || atomic_load(&writer->stopped);
}

/* Until there is something to do; after a failure for PAUSE, unless there is an order: further lines do not shorten
 * that. */
static void await_work(struct pando_log_writer *writer, int after_failure)
{
    struct pollfd wake = {.fd = writer->wake, .events = POLLIN};
    uint64_t count;
    atomic_store(&writer->asleep, !after_failure); /* declared before the last look, so that no wake-up is lost */
    if (after_failure || !anything_to_do(writer)) {
        poll(&wake, 1, after_failure ? (int)PAUSE : -1);
        if (read(writer->wake, &count, sizeof(count)) == -1)
            count = 0; /* nobody has woken it */
    }
    atomic_store(&writer->asleep, 0);
}

static void rest(void)
{
    const struct timespec time = {.tv_nsec = REST * 1000000l};
    nanosleep(&time, NULL);
}

static void *write_lines(void *place)
{
    struct pando_log_writer *writer = place;
    prctl(PR_SET_NAME, "pando log"); /* for ps -L and perf; a failure changes nothing else */
    for (;;) {
        int stopped = atomic_load(&writer->stopped); /* read before the last lines are written */
        if (atomic_load(&writer->reopen) || writer->file == -1)
            open_again(writer);
        int failure = write_out(writer) == -1;
        if (stopped)
            return NULL;
        if (!failure)
            rest();
        await_work(writer, failure);
    }
}

/* --- the thread that logs --- */

int pando_log_writer_start(struct pando_log_writer *writer, const char *path, _Atomic uint64_t *failure)
{
    memset(writer, 0, sizeof(*writer));
    writer->path = path;
    writer->failure = failure;
    writer->file = -1;
    writer->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    writer->ring = malloc(PANDO_LOG_RING);
    if (writer->wake != -1 && writer->ring && pando_thread_start(&writer->thread, write_lines, writer) == 0)
        return 0;
    if (writer->wake != -1)
        close(writer->wake);
    free(writer->ring);
    return -1;
}

int pando_log_writer_put(struct pando_log_writer *writer, const char *line, size_t bytes)
{
    uint64_t put = atomic_load_explicit(&writer->put, memory_order_relaxed);
    uint64_t waiting = put - atomic_load_explicit(&writer->written, memory_order_acquire);
    if (bytes > PANDO_LOG_RING - waiting)
        return 0;
    size_t place = (size_t)(put % PANDO_LOG_RING), first = PANDO_LOG_RING - place;
    if (first > bytes)
        first = bytes;
    memcpy(writer->ring + place, line, first);
    memcpy(writer->ring, line + first, bytes - first);
    atomic_store_explicit(&writer->put, put + bytes, memory_order_release);
    return 1;
}

void pando_log_writer_nudge(struct pando_log_writer *writer)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&writer->asleep) && atomic_load(&writer->put) != atomic_load(&writer->written) &&
        atomic_exchange(&writer->asleep, 0))
        signal_thread(writer);
}

void pando_log_writer_reopen(struct pando_log_writer *writer)
{
    atomic_store(&writer->reopen, 1);
    signal_thread(writer);
}

int pando_log_writer_stop(struct pando_log_writer *writer, unsigned milliseconds)
{
    struct timespec until = {0};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(milliseconds / 1000) + (until.tv_nsec + milliseconds % 1000 * 1000000l) / 1000000000l;
    until.tv_nsec = (until.tv_nsec + milliseconds % 1000 * 1000000l) % 1000000000l;
    atomic_store(&writer->stopped, 1);
    signal_thread(writer);
    if (pthread_timedjoin_np(writer->thread, NULL, &until) != 0)
        return 0;
    if (writer->file != -1)
        close(writer->file);
    close(writer->wake);
    free(writer->ring);
    return 1;
}
