/* The scoreboard: one shared mapping, a row for each process, on a page of its
 * own. A process writes its own row with plain atomic stores, everybody else only
 * reads: to all but the monitor the other pages are read-only. */
#ifndef PANDO_SYS_SCOREBOARD_H
#define PANDO_SYS_SCOREBOARD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_VERB_MAX 16
#define PANDO_SUBJECT_MAX 112
#define PANDO_SEATS_MAX 65536
#define PANDO_YOUNG 256  /* a process's first jobs, each of which is measured */
#define PANDO_RECENT 64  /* of later ones that were measured, the last */
#define PANDO_STEPS 9    /* page faults are read at the job 1, 2, 4, ... 256 */

enum pando_row_flag { PANDO_ROW_FORK_UNSAFE = 1, PANDO_ROW_LEAVING = 2, PANDO_ROW_MAJOR_GC_DUE = 4, PANDO_ROW_STREAMING = 8 };

struct pando_row {
    /* line 0: who, written seldom */
    _Alignas(64) _Atomic uint32_t state;
    _Atomic uint32_t role;
    _Atomic uint32_t slot;
    _Atomic uint32_t generation;
    _Atomic int32_t pid;
    _Atomic uint32_t flags;
    _Atomic uint64_t heartbeat;      /* CLOCK_MONOTONIC, nanoseconds, as every time here */
    _Atomic uint64_t started_at;
    _Atomic uint64_t prefault_bytes; /* that it was given before it was ready, and in how many nanoseconds */
    _Atomic uint64_t prefault_time;
    _Atomic uint32_t running;        /* jobs at this moment, of a process that does several at once */
    _Atomic uint32_t lag;            /* jobs that wait for it at a broker, and one; 0: it does not know */
    /* line 1: what it does, written at each job */
    _Alignas(64) _Atomic uint64_t requests;
    _Atomic uint64_t job;            /* odd while verb and subject are being written */
    _Atomic uint64_t busy_since;     /* 0: idle */
    _Atomic uint64_t soft_deadline;  /* 0: none */
    _Atomic uint64_t hard_deadline;
    _Atomic uint64_t failures;       /* jobs that came to nothing by the process's own fault */
    _Atomic uint64_t measured_until; /* jobs below this number are measured */
    _Atomic uint64_t cpu_before;     /* nanoseconds of the process when the running job began; 0: it is not measured */
    /* lines 2 and 3 */
    _Alignas(64) char verb[PANDO_VERB_MAX];
    char subject[PANDO_SUBJECT_MAX];
    /* what jobs have taken, see measure.h; written while a process is young, and when it is asked for */
    _Alignas(64) _Atomic uint8_t cpu[PANDO_YOUNG];
    _Atomic uint8_t wall[PANDO_YOUNG];
    _Atomic uint8_t recent_cpu[PANDO_RECENT];
    _Atomic uint8_t recent_wall[PANDO_RECENT];
    _Atomic uint64_t recents;        /* measured ever: the last is at (recents - 1) % PANDO_RECENT */
    _Atomic uint32_t faults[PANDO_STEPS];
    /* where the spell began that is under way, see sample.h */
    _Atomic uint32_t spell_jobs, spell_faults;
    _Atomic uint64_t spell_cpu;
    /* the last line: what it has become, written now and then between two jobs; blank in the rows of an older Pando */
    _Alignas(64) _Atomic uint64_t sampled_at; /* 0: never, or just being written */
    _Atomic uint64_t sampled_cpu;
    _Atomic uint64_t code_bytes;
    _Atomic uint64_t kinds;          /* of jobs: a bit of each is set when it begins */
    _Atomic uint32_t sampled_jobs, sampled_faults;
    _Atomic uint32_t minor_gcs, major_gcs;
    _Atomic uint32_t lately_jobs, lately_faults, lately_cpu; /* microseconds */
    _Atomic uint32_t connections;    /* that the application has taken over (WebSockets) and not closed yet */
};
_Static_assert(offsetof(struct pando_row, cpu) == 256, "what each job writes is in the first four cache lines");
_Static_assert(offsetof(struct pando_row, sampled_at) == 960, "samples have a line of their own");
_Static_assert(sizeof(struct pando_row) <= 4096, "a row fits into the smallest page there is");

struct pando_scoreboard {
    size_t seats, bytes, page;
    char *mapping;           /* a page of our own, and the rows */
    int guarded;             /* all is read-only but one row */
    struct pando_row *own;   /* that one, or NULL */
    int fd;
};

/* All: 0, or -1 with errno. create makes and seals a memfd; attach maps another's (EINVAL: not a scoreboard). */
int pando_scoreboard_create(struct pando_scoreboard *board, size_t seats);
int pando_scoreboard_attach(struct pando_scoreboard *board, int fd);
void pando_scoreboard_unmap(struct pando_scoreboard *board);
/* From now on no row can be written by this process, nor by its children. */
int pando_scoreboard_guard(struct pando_scoreboard *board);
/* NULL: there is no such seat. */
struct pando_row *pando_scoreboard_row(const struct pando_scoreboard *board, size_t seat);
/* The row that is this process's to write, in place of a former one. NULL with errno (EINVAL: there is no such seat). */
struct pando_row *pando_scoreboard_take(struct pando_scoreboard *board, size_t seat);

uint64_t pando_now(void);
void pando_row_reset(struct pando_row *row);
void pando_row_start(struct pando_row *row, const char *verb, size_t verb_length,
                     const char *subject, size_t subject_length, uint64_t soft, uint64_t hard, uint64_t now);
/* 1: a sample is due, see sample.h. */
int pando_row_finish(struct pando_row *row);
/* It is idle, and no job was finished by that. */
void pando_row_rest(struct pando_row *row);
/* Copies a job's verb and subject; returns its number, 0 when it was being written. Both are terminated. */
uint64_t pando_row_job(const struct pando_row *row, char verb[PANDO_VERB_MAX + 1],
                       char subject[PANDO_SUBJECT_MAX + 1]);

#endif
