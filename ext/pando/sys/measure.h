/* Measures what single jobs take: CPU time, elapsed time, page faults. A worker keeps the results in its row, so that
 * young processes of two generations can be compared job by job. A duration is one byte: eight steps per octave of
 * microseconds, 1 for the shortest, 255 for more than an hour; 0: not measured. */
#ifndef PANDO_SYS_MEASURE_H
#define PANDO_SYS_MEASURE_H

#include "scoreboard.h"

/* Measures the process's first PANDO_YOUNG jobs, and later ones as far as pando_measure_more asks. Costs two
 * calls of clock_gettime for a measured job, and one comparison for any other. Job 0 is measured by the CPU time of the
 * process, a job beside others by that of its thread. `number`: how many were finished before. */
void pando_measure_begin(struct pando_row *row, uint32_t index);
void pando_measure_end(struct pando_row *row, uint32_t index, uint64_t number, uint64_t now);
/* For jobs done side by side: so many more are done, so many of them failed. Each gets an equal share of the CPU time
 * since the last count, as one measurement; the time each took is unknown. 1: a sample is due, see sample.h. */
int pando_measure_count(struct pando_row *row, uint64_t jobs, uint64_t failures);
/* Measures the next so many jobs too. */
void pando_measure_more(struct pando_row *row, uint64_t jobs);
/* Starts again from no jobs. */
void pando_measure_restart(struct pando_row *row);
/* Of this process since it was forked: nanoseconds, pages. */
uint64_t pando_cpu_time(void);
uint32_t pando_minor_faults(void);
uint8_t pando_duration_code(uint64_t nanoseconds);

#endif
