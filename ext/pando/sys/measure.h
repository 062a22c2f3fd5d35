/* What single jobs take: CPU time, time, page faults; kept in the row of the process that does them, so that
 * young processes of two generations can be compared job by job. A duration is a byte: eight steps an octave of
 * microseconds, 1 for the shortest, 255 for more than an hour; 0: not measured. */
#ifndef PANDO_SYS_MEASURE_H
#define PANDO_SYS_MEASURE_H

#include "scoreboard.h"

/* Of the process's first PANDO_YOUNG jobs, and of later ones as far as pando_measure_more says. Costs two
 * clock_gettime(CLOCK_PROCESS_CPUTIME_ID) for a job that is measured, one comparison for another. */
void pando_measure_begin(struct pando_row *row);
void pando_measure_end(struct pando_row *row, uint64_t number, uint64_t now);
/* So many jobs more are done, side by side, and so many of them failed: each has taken its share of the CPU time since
 * the last count, which is measured once, and how long it took nobody knows. 1: a sample is due, see sample.h. */
int pando_measure_count(struct pando_row *row, uint64_t jobs, uint64_t failures);
/* The next so many jobs too. */
void pando_measure_more(struct pando_row *row, uint64_t jobs);
/* Nothing has been done yet. */
void pando_measure_restart(struct pando_row *row);
/* Of this process since it was forked: nanoseconds, pages. */
uint64_t pando_cpu_time(void);
uint32_t pando_minor_faults(void);
uint8_t pando_duration_code(uint64_t nanoseconds);

#endif
