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

#define MAGIC 0x70616e646f303033ULL /* "pando003": includes the layout version */

struct header {
    uint64_t magic;
    uint64_t seats;
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static int map(struct pando_scoreboard *board, int fd, size_t bytes)
{
    void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapping == MAP_FAILED) return -1;
    *board = (struct pando_scoreboard){.mapping = mapping, .bytes = bytes, .page = page_bytes(), .fd = fd};
    board->seats = bytes / board->page - 1;
    return 0;
}

static int prepare(struct pando_scoreboard *board, int fd, size_t seats)
{
    size_t bytes = (seats + 1) * page_bytes();
    if (ftruncate(fd, (off_t)bytes) == -1) return -1;
    /* Nobody can shrink it while it is mapped (SIGBUS). */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == -1) return -1;
    if (map(board, fd, bytes) == -1) return -1;
    struct header *header = (struct header *)(void *)board->mapping;
    header->seats = seats;
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
    if (bytes < 2 * page_bytes() || bytes % page_bytes() != 0) return errno = EINVAL, -1;
    if (map(board, fd, bytes) == -1) return -1;
    const struct header *header = (const struct header *)(const void *)board->mapping;
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
    return (struct pando_row *)(void *)(board->mapping + (seat + 1) * board->page);
}

/* The row that a child takes was its forker's before. */
struct pando_row *pando_scoreboard_take(struct pando_scoreboard *board, size_t seat)
{
    struct pando_row *row = pando_scoreboard_row(board, seat);
    if (!row) return errno = EINVAL, NULL;
    if (!board->guarded || row == board->own) return row;
    if (mprotect(row, board->page, PROT_READ | PROT_WRITE) == -1) return NULL;
    if (board->own) mprotect(board->own, board->page, PROT_READ);
    board->own = row;
    return row;
}

uint64_t pando_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

void pando_row_reset(struct pando_row *row)
{
    memset((void *)row, 0, sizeof *row);
}

static void copy_text(char *to, size_t capacity, const char *from, size_t length)
{
    size_t kept = length < capacity ? length : capacity;
    memcpy(to, from, kept);
    if (kept < capacity) to[kept] = '\0';
}

void pando_row_start(struct pando_row *row, const char *verb, size_t verb_length,
                     const char *subject, size_t subject_length, uint64_t soft, uint64_t hard, uint64_t now)
{
    uint64_t job = atomic_load_explicit(&row->job, memory_order_relaxed);
    atomic_store_explicit(&row->job, job | 1, memory_order_release);
    atomic_thread_fence(memory_order_release);
    copy_text(row->verb, PANDO_VERB_MAX, verb, verb_length);
    copy_text(row->subject, PANDO_SUBJECT_MAX, subject, subject_length);
    atomic_store_explicit(&row->soft_deadline, soft, memory_order_relaxed);
    atomic_store_explicit(&row->hard_deadline, hard, memory_order_relaxed);
    atomic_store_explicit(&row->job, (job | 1) + 1, memory_order_release);
    pando_sample_kind(row, verb, verb_length, subject, subject_length);
    pando_measure_begin(row);
    atomic_store_explicit(&row->busy_since, now, memory_order_release);
}

static void become_idle(struct pando_row *row, uint64_t now)
{
    atomic_store_explicit(&row->soft_deadline, 0, memory_order_relaxed);
    atomic_store_explicit(&row->hard_deadline, 0, memory_order_relaxed);
    /* A reader that sees the row idle from here on must not count from before the job. */
    atomic_store_explicit(&row->heartbeat, now, memory_order_relaxed);
    if (atomic_load_explicit(&row->flags, memory_order_relaxed) & PANDO_ROW_STREAMING)
        atomic_fetch_and_explicit(&row->flags, ~(uint32_t)PANDO_ROW_STREAMING, memory_order_relaxed);
    atomic_store_explicit(&row->busy_since, 0, memory_order_release);
}

void pando_row_rest(struct pando_row *row)
{
    become_idle(row, pando_now());
}

int pando_row_finish(struct pando_row *row)
{
    uint64_t requests = atomic_load_explicit(&row->requests, memory_order_relaxed);
    uint64_t now = pando_now();
    pando_measure_end(row, requests, now);
    become_idle(row, now);
    atomic_store_explicit(&row->requests, requests + 1, memory_order_relaxed);
    return pando_sample_due(row, requests + 1, now);
}

uint64_t pando_row_job(const struct pando_row *row, char verb[PANDO_VERB_MAX + 1],
                       char subject[PANDO_SUBJECT_MAX + 1])
{
    uint64_t before = atomic_load_explicit(&row->job, memory_order_acquire);
    memcpy(verb, row->verb, PANDO_VERB_MAX);
    memcpy(subject, row->subject, PANDO_SUBJECT_MAX);
    verb[PANDO_VERB_MAX] = subject[PANDO_SUBJECT_MAX] = '\0';
    atomic_thread_fence(memory_order_acquire);
    uint64_t after = atomic_load_explicit(&row->job, memory_order_relaxed);
    return before == after && (before & 1) == 0 ? before : 0;
}
