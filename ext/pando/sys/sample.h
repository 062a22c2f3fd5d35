/* What a process has become: how much it has compiled, collected, been given in pages, and of how many kinds its jobs
 * were. Sampled between two jobs, now and then, and kept in the last line of its row for whoever decides by it: from
 * which worker to fork, and when. */
#ifndef PANDO_SYS_SAMPLE_H
#define PANDO_SYS_SAMPLE_H

#include "scoreboard.h"

#define PANDO_SAMPLE_PAUSE 250000000ULL /* nanoseconds from one to the next, but for those at its 1st, 2nd, 4th ... job */
#define PANDO_SAMPLE_SPELL 32           /* jobs that "lately" means at the least */
#define PANDO_SAMPLE_MIX 4096           /* jobs whose kind is looked at: who serves what shows by then */

/* All since the process was forked, but for code_bytes: what it has inherited is as warm. */
struct pando_sample {
    uint64_t at;                        /* as the times of the row */
    uint64_t cpu;                       /* nanoseconds */
    uint64_t code_bytes;                /* made by a JIT */
    uint32_t jobs, faults;              /* faults: pages that it was given without a disk being read */
    uint32_t minor_gcs, major_gcs;
    uint32_t lately_jobs, lately_faults; /* of the last whole spell; 0: there was none yet */
    uint64_t lately_cpu;
    uint32_t kinds;                     /* of jobs: of 64 bits, each of which stands for a kind by chance, those set */
};

/* Whether one is due, now that so many jobs are done: 1 or 0. */
int pando_sample_due(const struct pando_row *row, uint64_t jobs, uint64_t now);
/* By the process itself. */
void pando_sample_take(struct pando_row *row, uint64_t code_bytes, uint32_t minor_gcs, uint32_t major_gcs);
/* By anybody: 1, or 0 if there is none, or it is being written. */
int pando_sample_read(const struct pando_row *row, struct pando_sample *sample);
/* A job begins. Of what kind it is: its verb, and its subject without the parts that have a digit. */
void pando_sample_kind(struct pando_row *row, const char *verb, size_t verb_length, const char *subject,
                       size_t subject_length);
/* Nothing has been done yet. */
void pando_sample_restart(struct pando_row *row);

#endif
