/* Samples what a process has become: how much it has compiled, collected and been given in pages, and how many kinds
 * of jobs it had. The process takes a sample between two jobs, now and then, into the last line of its row. The
 * monitor decides by it from which worker to fork, and when. */
#ifndef PANDO_SYS_SAMPLE_H
#define PANDO_SYS_SAMPLE_H

#include "scoreboard.h"

#define PANDO_SAMPLE_PAUSE 250000000ULL /* nanoseconds between samples, apart from those at the 1st, 2nd, 4th ... job */
#define PANDO_SAMPLE_SPELL 32           /* minimum number of jobs that "lately" covers */
#define PANDO_SAMPLE_MIX 4096           /* jobs whose kind is recorded: by then a worker's mix is known */

/* Everything since the process was forked, except code_bytes, since inherited code is just as warm. */
struct pando_sample {
    uint64_t at;                        /* like the times of the row */
    uint64_t cpu;                       /* nanoseconds */
    uint64_t code_bytes;                /* made by a JIT */
    uint32_t jobs, faults;              /* faults: pages that it was given without a disk read */
    uint32_t minor_gcs, major_gcs;
    uint32_t gc_time;                   /* milliseconds */
    uint32_t lately_jobs, lately_faults; /* of the last whole spell; 0: none yet */
    uint64_t lately_cpu;
    uint32_t kinds;                     /* of jobs: the set bits of 64, of which each kind sets one by its hash */
};

/* Whether a sample is due, now that so many jobs are done: 1 or 0. */
int pando_sample_due(const struct pando_row *row, uint64_t jobs, uint64_t now);
/* Called by the process itself. */
void pando_sample_take(struct pando_row *row, uint64_t code_bytes, uint32_t minor_gcs, uint32_t major_gcs,
                       uint32_t gc_time);
/* Called by any process: 1; 0: there is no sample, or it is being written. */
int pando_sample_read(const struct pando_row *row, struct pando_sample *sample);
/* A job begins. Its kind: the verb, and the subject without the segments that have a digit. */
void pando_sample_kind(struct pando_row *row, const char *verb, size_t verb_length, const char *subject,
                       size_t subject_length);
/* Starts again from no jobs. */
void pando_sample_restart(struct pando_row *row);

#endif
