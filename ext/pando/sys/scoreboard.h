/* The scoreboard: one shared mapping with a row for each process, on pages of its own. A process writes its own row
 * with plain atomic stores and reads the others; except in the monitor, their pages are read-only. Runs in all
 * processes of a cluster. */
#ifndef PANDO_SYS_SCOREBOARD_H
#define PANDO_SYS_SCOREBOARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_VERB_MAX 16
#define PANDO_SUBJECT_MAX 112
#define PANDO_SEATS_MAX 65536
#define PANDO_YOUNG 256  /* a process's first jobs, each of which is measured */
#define PANDO_RECENT 64  /* later measured jobs that are kept, the most recent ones */
#define PANDO_STEPS 9    /* page faults are read at job 1, 2, 4, ... 256 */
#define PANDO_QUEUES 16  /* pools whose waiting requests the header tells */
#define PANDO_JOBS 65    /* jobs at once of one process: job 0 is its main thread's, the others have threads of their own */

enum pando_row_flag {
    PANDO_ROW_FORK_UNSAFE = 1,
    PANDO_ROW_LEAVING = 2,
    PANDO_ROW_MAJOR_GC_DUE = 4,
    PANDO_ROW_STACKS_WANTED = 8, /* the monitor sets it, and the process takes it away */
    PANDO_ROW_PREFAULT_GUESSED = 16 /* its mold did not know its hot set yet, so what it was given is a guess */
};

/* What a thread does with the interpreter lock. */
enum pando_lock_state { PANDO_LOCK_FREE = 0, PANDO_LOCK_WANTED = 1, PANDO_LOCK_HELD = 2 };

/* What is known of a job that runs. */
enum {
    PANDO_JOB_STREAMS = 1, /* the head of its answer is out */
    PANDO_JOB_RETRIED = 2  /* another process died while it had this job */
};

/* A job that a process may have beside others: one line of figures, two of text. */
struct pando_job {
    _Alignas(64) _Atomic uint64_t number; /* counts up by two; odd while verb and subject are being written */
    _Atomic uint64_t busy_since;     /* 0: idle */
    _Atomic uint64_t soft_deadline;  /* 0: none */
    _Atomic uint64_t hard_deadline;
    _Atomic uint64_t cpu_before;     /* CPU nanoseconds of its thread (job 0: of the process) when it began; 0: not
                                      * measured */
    _Atomic uint64_t lock_wait;      /* nanoseconds that it has waited for the interpreter lock since it began */
    _Atomic uint64_t lock_since;     /* since when it has held, wanted or not wanted it */
    _Atomic uint32_t lock;           /* enum pando_lock_state; written by bind_lock.c */
    _Atomic uint32_t notes;          /* PANDO_JOB_* */
    char verb[PANDO_VERB_MAX];
    char subject[PANDO_SUBJECT_MAX];
};

struct pando_row {
    /* line 0: identity, written seldom */
    _Alignas(64) _Atomic uint32_t state; /* an index of Sys::Row::STATES; the monitor writes it */
    _Atomic uint32_t role;
    _Atomic uint32_t slot;
    _Atomic uint32_t generation;
    _Atomic int32_t pid;
    _Atomic uint32_t flags;
    _Atomic uint64_t heartbeat;      /* CLOCK_MONOTONIC, nanoseconds, as every time here */
    _Atomic uint64_t started_at;
    _Atomic uint64_t prefault_bytes; /* bytes populated before it was ready, and nanoseconds that took */
    _Atomic uint64_t prefault_time;
    _Atomic uint32_t running;        /* jobs running now, in a process that does several at once */
    _Atomic uint32_t lag;            /* jobs that wait for it at a broker, plus one; 0: unknown */
    /* line 1: its work, written at each job */
    _Alignas(64) _Atomic uint64_t requests;
    _Atomic uint64_t failures;       /* jobs that failed by the process's own fault */
    _Atomic uint64_t measured_until; /* jobs below this number are measured */
    _Atomic uint32_t jobs_used;      /* entries of `jobs` that have ever been used */
    _Atomic uint32_t pool;           /* its number, and how many jobs it may have at once: the monitor writes both */
    _Atomic uint32_t threads;
    _Atomic uint32_t gc_time;        /* milliseconds, as of the last sample, since it was forked */
    _Atomic uint64_t lock_waited;    /* nanoseconds that its finished jobs have waited for the interpreter lock */
    _Atomic uint32_t latency;        /* milliseconds that the oldest job at the broker has waited, plus one; 0: unknown */
    _Atomic uint32_t timeouts;       /* jobs that have outlived their soft deadline; blank in rows of an older Pando */
    /* what jobs have taken, see measure.h; written while a process is young, and on request */
    _Alignas(64) _Atomic uint8_t cpu[PANDO_YOUNG];
    _Atomic uint8_t wall[PANDO_YOUNG];
    _Atomic uint8_t recent_cpu[PANDO_RECENT];
    _Atomic uint8_t recent_wall[PANDO_RECENT];
    _Atomic uint64_t recents;        /* measured in total: the last is at (recents - 1) % PANDO_RECENT */
    _Atomic uint32_t faults[PANDO_STEPS];
    /* where the current spell began, see sample.h */
    _Atomic uint32_t spell_jobs, spell_faults;
    _Atomic uint64_t spell_cpu;
    /* the last line: what it has become, written now and then between two jobs; blank in rows of an older Pando */
    _Alignas(64) _Atomic uint64_t sampled_at; /* 0: never, or being written */
    _Atomic uint64_t sampled_cpu;
    _Atomic uint64_t code_bytes;
    _Atomic uint64_t kinds;          /* of jobs: each sets a bit when it begins */
    _Atomic uint32_t sampled_jobs, sampled_faults;
    _Atomic uint32_t minor_gcs, major_gcs;
    _Atomic uint32_t lately_jobs, lately_faults, lately_cpu; /* microseconds */
    _Atomic uint32_t connections;    /* taken over by the application (WebSockets) and not yet closed */
    struct pando_job jobs[PANDO_JOBS];
};
_Static_assert(offsetof(struct pando_row, cpu) == 128, "what each job writes is in the first two cache lines");
_Static_assert(offsetof(struct pando_row, sampled_at) == 832, "samples have a line of their own");
_Static_assert(sizeof(struct pando_job) == 192, "a job takes three cache lines");
_Static_assert(offsetof(struct pando_row, jobs) + sizeof(struct pando_job) <= 4096,
               "a process without threads writes to one page");

struct pando_scoreboard {
    size_t seats, bytes;
    size_t stride;           /* bytes from one row to the next: whole pages */
    char *mapping;           /* the header in place of a row, then the rows */
    int guarded;             /* all but one row are read-only */
    struct pando_row *own;   /* that row, or NULL */
    int fd;
};

/* All of them: 0, or -1 with errno. create makes and seals a memfd; attach maps an existing one (EINVAL: not a
 * scoreboard). */
int pando_scoreboard_create(struct pando_scoreboard *board, size_t seats);
int pando_scoreboard_attach(struct pando_scoreboard *board, int fd);
void pando_scoreboard_unmap(struct pando_scoreboard *board);
/* From now on neither this process nor its children can write any row. */
int pando_scoreboard_guard(struct pando_scoreboard *board);
/* NULL: no such seat. */
struct pando_row *pando_scoreboard_row(const struct pando_scoreboard *board, size_t seat);
/* The row that this process writes from now on, in place of a former one. NULL with errno (EINVAL: no such seat). */
struct pando_row *pando_scoreboard_take(struct pando_scoreboard *board, size_t seat);

/* The header: the monitor writes it, and every process reads it. */
uint64_t pando_scoreboard_started_at(const struct pando_scoreboard *board);
/* Seats that have ever been taken are below this number. */
uint32_t pando_scoreboard_used(const struct pando_scoreboard *board);
void pando_scoreboard_use(struct pando_scoreboard *board, size_t seat);
/* Requests of a pool that wait for its workers; 0 if there is no such pool. */
uint32_t pando_scoreboard_waiting(const struct pando_scoreboard *board, size_t pool);
void pando_scoreboard_tell_waiting(struct pando_scoreboard *board, size_t pool, uint32_t count);

uint64_t pando_now(void);
void pando_row_reset(struct pando_row *row);
/* Everywhere `index` is that of one of the jobs, below PANDO_JOBS. */
void pando_row_start(struct pando_row *row, uint32_t index, const char *verb, size_t verb_length,
                     const char *subject, size_t subject_length, uint64_t soft, uint64_t hard, uint64_t now);
/* 1: a sample is due, see sample.h. */
int pando_row_finish(struct pando_row *row, uint32_t index);
/* The job is over, but not finished. */
void pando_row_rest(struct pando_row *row, uint32_t index);
/* Entries of `jobs` to look at: what another process has written there is checked. */
uint32_t pando_row_jobs_used(const struct pando_row *row);
/* Since when it has had a job without a pause; 0: it is idle. */
uint64_t pando_row_busy_since(const struct pando_row *row);
/* Copies a job's verb and subject, both terminated. Returns the job's number, 0 if it was being written. */
uint64_t pando_row_job(const struct pando_row *row, uint32_t index, char verb[PANDO_VERB_MAX + 1],
                       char subject[PANDO_SUBJECT_MAX + 1]);

#endif
