/* The scoreboard, see scoreboard.h. Runs in all processes of a cluster. */
#include "scoreboard.h"

#include "measure.h"
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x70616e646f303034ULL /* "pando004": includes the layout version */

/* Pages of an older Pando are blank behind the seats. */
struct header {
    uint64_t magic;
    uint64_t seats;
    uint64_t started_at;
    _Atomic uint32_t used;
    _Atomic uint32_t waiting[PANDO_QUEUES];
};

static struct header *header_of(const struct pando_scoreboard *board)
{
    return (struct header *)(void *)board->mapping;
}

/* A row's pages: their protection is its own. */
static size_t stride_bytes(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (sizeof(struct pando_row) + page - 1) / page * page;
}

static int map(struct pando_scoreboard *board, int fd, size_t bytes)
{
    void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapping == MAP_FAILED) return -1;
    *board = (struct pando_scoreboard){.mapping = mapping, .bytes = bytes, .stride = stride_bytes(), .fd = fd};
    board->seats = bytes / board->stride - 1;
    return 0;
}

static int prepare(struct pando_scoreboard *board, int fd, size_t seats)
{
    size_t bytes = (seats + 1) * stride_bytes();
    if (ftruncate(fd, (off_t)bytes) == -1) return -1;
    /* Nobody can shrink it while it is mapped (SIGBUS). */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == -1) return -1;
    if (map(board, fd, bytes) == -1) return -1;
    struct header *header = header_of(board);
    header->seats = seats;
    header->started_at = pando_now();
    header->magic = MAGIC;
    return 0;
}

int pando_scoreboard_create(struct pando_scoreboard *board, size_t seats)
{
    if (seats == 0 || seats > PANDO_SEATS_MAX) return errno = EINVAL, -1;
    int fd = memfd_create("pando-scoreboard", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd == -1) return -1;
    if (prepare(board, fd, seats) == 0) return 0;
    int failure = errno;
    close(fd);
    errno = failure;
    return -1;
}

int pando_scoreboard_attach(struct pando_scoreboard *board, int fd)
{
    struct stat status;
    if (fstat(fd, &status) == -1) return -1;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals == -1 || !(seals & F_SEAL_SHRINK)) return errno = EINVAL, -1;
    size_t bytes = (size_t)status.st_size;
    if (bytes < 2 * stride_bytes() || bytes % stride_bytes() != 0) return errno = EINVAL, -1;
    if (map(board, fd, bytes) == -1) return -1;
    const struct header *header = header_of(board);
    if (header->magic == MAGIC && header->seats == board->seats) return 0;
    pando_scoreboard_unmap(board);
    board->fd = -1; /* it still belongs to the caller */
    errno = EINVAL;
    return -1;
}

void pando_scoreboard_unmap(struct pando_scoreboard *board)
{
    if (board->mapping) munmap(board->mapping, board->bytes);
    board->mapping = NULL;
    board->own = NULL;
    board->seats = 0;
}

int pando_scoreboard_guard(struct pando_scoreboard *board)
{
    if (mprotect(board->mapping, board->bytes, PROT_READ) == -1) return -1;
    board->guarded = 1;
    board->own = NULL;
    return 0;
}

struct pando_row *pando_scoreboard_row(const struct pando_scoreboard *board, size_t seat)
{
    if (seat >= board->seats) return NULL;
    return (struct pando_row *)(void *)(board->mapping + (seat + 1) * board->stride);
}

/* The row that a child takes was its forker's before. */
struct pando_row *pando_scoreboard_take(struct pando_scoreboard *board, size_t seat)
{
    struct pando_row *row = pando_scoreboard_row(board, seat);
    if (!row) return errno = EINVAL, NULL;
    if (!board->guarded || row == board->own) return row;
    if (mprotect(row, board->stride, PROT_READ | PROT_WRITE) == -1) return NULL;
    if (board->own) mprotect(board->own, board->stride, PROT_READ);
    board->own = row;
    return row;
}

uint64_t pando_scoreboard_started_at(const struct pando_scoreboard *board)
{
    return header_of(board)->started_at;
}

uint32_t pando_scoreboard_used(const struct pando_scoreboard *board)
{
    uint32_t used = atomic_load_explicit(&header_of(board)->used, memory_order_acquire);
    return used < board->seats ? used : (uint32_t)board->seats;
}

void pando_scoreboard_use(struct pando_scoreboard *board, size_t seat)
{
    if (seat < board->seats && seat >= pando_scoreboard_used(board))
        atomic_store_explicit(&header_of(board)->used, (uint32_t)seat + 1, memory_order_release);
}

uint32_t pando_scoreboard_waiting(const struct pando_scoreboard *board, size_t pool)
{
    if (pool >= PANDO_QUEUES) return 0;
    return atomic_load_explicit(&header_of(board)->waiting[pool], memory_order_relaxed);
}

void pando_scoreboard_tell_waiting(struct pando_scoreboard *board, size_t pool, uint32_t count)
{
    if (pool < PANDO_QUEUES) atomic_store_explicit(&header_of(board)->waiting[pool], count, memory_order_relaxed);
}

uint64_t pando_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

void pando_row_reset(struct pando_row *row)
{
    uint32_t used = pando_row_jobs_used(row); /* what was never used takes no memory */
    memset((void *)row, 0, offsetof(struct pando_row, jobs) + used * sizeof(struct pando_job));
}

static void copy_text(char *to, size_t capacity, const char *from, size_t length)
{
    size_t kept = length < capacity ? length : capacity;
    memcpy(to, from, kept);
    if (kept < capacity) to[kept] = '\0';
}

void pando_row_start(struct pando_row *row, uint32_t index, const char *verb, size_t verb_length,
                     const char *subject, size_t subject_length, uint64_t soft, uint64_t hard, uint64_t now)
{
    struct pando_job *job = &row->jobs[index];
    uint64_t number = atomic_load_explicit(&job->number, memory_order_relaxed);
    atomic_store_explicit(&job->number, number | 1, memory_order_release);
    atomic_thread_fence(memory_order_release);
    copy_text(job->verb, PANDO_VERB_MAX, verb, verb_length);
    copy_text(job->subject, PANDO_SUBJECT_MAX, subject, subject_length);
    atomic_store_explicit(&job->soft_deadline, soft, memory_order_relaxed);
    atomic_store_explicit(&job->hard_deadline, hard, memory_order_relaxed);
    atomic_store_explicit(&job->lock_wait, 0, memory_order_relaxed);
    atomic_store_explicit(&job->number, (number | 1) + 1, memory_order_release);
    if (index >= atomic_load_explicit(&row->jobs_used, memory_order_relaxed))
        atomic_store_explicit(&row->jobs_used, index + 1, memory_order_release);
    pando_sample_kind(row, verb, verb_length, subject, subject_length);
    pando_measure_begin(row, index);
    atomic_store_explicit(&job->busy_since, now, memory_order_release);
}

static void become_idle(struct pando_row *row, struct pando_job *job, uint64_t now)
{
    atomic_store_explicit(&job->soft_deadline, 0, memory_order_relaxed);
    atomic_store_explicit(&job->hard_deadline, 0, memory_order_relaxed);
    atomic_store_explicit(&job->notes, 0, memory_order_relaxed);
    /* A reader that sees the row idle from here on must not count from before the job. */
    atomic_store_explicit(&row->heartbeat, now, memory_order_relaxed);
    atomic_store_explicit(&job->busy_since, 0, memory_order_release);
}

void pando_row_rest(struct pando_row *row, uint32_t index)
{
    become_idle(row, &row->jobs[index], pando_now());
}

/* A process's threads finish jobs one after another, for each holds the interpreter lock. */
int pando_row_finish(struct pando_row *row, uint32_t index)
{
    uint64_t requests = atomic_load_explicit(&row->requests, memory_order_relaxed);
    uint64_t now = pando_now();
    pando_measure_end(row, index, requests, now);
    struct pando_job *job = &row->jobs[index];
    uint64_t waited = atomic_load_explicit(&row->lock_waited, memory_order_relaxed);
    waited += atomic_load_explicit(&job->lock_wait, memory_order_relaxed);
    atomic_store_explicit(&row->lock_waited, waited, memory_order_relaxed);
    become_idle(row, job, now);
    atomic_store_explicit(&row->requests, requests + 1, memory_order_relaxed);
    return pando_sample_due(row, requests + 1, now);
}

uint32_t pando_row_jobs_used(const struct pando_row *row)
{
    uint32_t used = atomic_load_explicit(&row->jobs_used, memory_order_acquire);
    return used < PANDO_JOBS ? used : PANDO_JOBS;
}

uint64_t pando_row_busy_since(const struct pando_row *row)
{
    uint64_t earliest = 0;
    for (uint32_t i = 0; i < pando_row_jobs_used(row); i++) {
        uint64_t since = atomic_load_explicit(&row->jobs[i].busy_since, memory_order_acquire);
        if (since && (!earliest || since < earliest)) earliest = since;
    }
    return earliest;
}

uint64_t pando_row_job(const struct pando_row *row, uint32_t index, char verb[PANDO_VERB_MAX + 1],
                       char subject[PANDO_SUBJECT_MAX + 1])
{
    const struct pando_job *job = &row->jobs[index];
    uint64_t before = atomic_load_explicit(&job->number, memory_order_acquire);
    memcpy(verb, job->verb, PANDO_VERB_MAX);
    memcpy(subject, job->subject, PANDO_SUBJECT_MAX);
    verb[PANDO_VERB_MAX] = subject[PANDO_SUBJECT_MAX] = '\0';
    atomic_thread_fence(memory_order_acquire);
    uint64_t after = atomic_load_explicit(&job->number, memory_order_relaxed);
    return before == after && (before & 1) == 0 ? before : 0;
}
