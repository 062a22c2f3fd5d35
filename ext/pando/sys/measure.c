/* Measures single jobs, see measure.h. Runs in workers. */
#include "measure.h"

#include "sample.h"

#include <sys/resource.h>
#include <time.h>

#define RELAXED memory_order_relaxed

static uint64_t spent_by(clockid_t clock)
{
    struct timespec spent;
    if (clock_gettime(clock, &spent) == -1) return 0;
    return (uint64_t)spent.tv_sec * 1000000000ULL + (uint64_t)spent.tv_nsec;
}

uint64_t pando_cpu_time(void)
{
    return spent_by(CLOCK_PROCESS_CPUTIME_ID);
}

static uint64_t cpu_time_of(uint32_t index)
{
    return spent_by(index == 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_THREAD_CPUTIME_ID);
}

/* The octave, and three bits for the position in it. */
uint8_t pando_duration_code(uint64_t nanoseconds)
{
    uint64_t eighths = nanoseconds / 125; /* of a microsecond */
    if (eighths < 8) return 1;
    unsigned octave = 63u - (unsigned)__builtin_clzll(eighths);
    unsigned code = (octave - 3) * 8 + (unsigned)((eighths >> (octave - 3)) & 7) + 1;
    return code > 255 ? 255 : (uint8_t)code;
}

void pando_measure_begin(struct pando_row *row, uint32_t index)
{
    uint64_t number = atomic_load_explicit(&row->requests, RELAXED);
    uint64_t until = atomic_load_explicit(&row->measured_until, RELAXED);
    uint64_t before = number < until ? cpu_time_of(index) : 0;
    atomic_store_explicit(&row->jobs[index].cpu_before, before, RELAXED);
}

uint32_t pando_minor_faults(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == -1 || usage.ru_minflt < 0) return 0;
    return (uint32_t)usage.ru_minflt;
}

/* At its 1st, 2nd, 4th, ... job. */
static void read_faults(struct pando_row *row, uint64_t age)
{
    unsigned step = (unsigned)__builtin_ctzll(age);
    if ((age & (age - 1)) == 0 && step < PANDO_STEPS)
        atomic_store_explicit(&row->faults[step], pando_minor_faults(), RELAXED);
}

void pando_measure_end(struct pando_row *row, uint32_t index, uint64_t number, uint64_t now)
{
    struct pando_job *job = &row->jobs[index];
    uint64_t before = atomic_load_explicit(&job->cpu_before, RELAXED);
    if (before == 0) return;
    uint64_t since = atomic_load_explicit(&job->busy_since, RELAXED);
    uint64_t spent = cpu_time_of(index);
    uint8_t cpu = pando_duration_code(spent > before ? spent - before : 0);
    uint8_t wall = pando_duration_code(since && now > since ? now - since : 0);
    uint64_t recents = atomic_load_explicit(&row->recents, RELAXED);

    if (number < PANDO_YOUNG) {
        atomic_store_explicit(&row->cpu[number], cpu, RELAXED);
        atomic_store_explicit(&row->wall[number], wall, RELAXED);
        read_faults(row, number + 1);
    }
    atomic_store_explicit(&row->recent_cpu[recents % PANDO_RECENT], cpu, RELAXED);
    atomic_store_explicit(&row->recent_wall[recents % PANDO_RECENT], wall, RELAXED);
    atomic_store_explicit(&row->recents, recents + 1, memory_order_release);
    atomic_store_explicit(&job->cpu_before, 0, RELAXED);
}

static void count_recent(struct pando_row *row, uint8_t cpu)
{
    uint64_t recents = atomic_load_explicit(&row->recents, RELAXED);
    atomic_store_explicit(&row->recent_cpu[recents % PANDO_RECENT], cpu, RELAXED);
    atomic_store_explicit(&row->recent_wall[recents % PANDO_RECENT], 0, RELAXED);
    atomic_store_explicit(&row->recents, recents + 1, memory_order_release);
}

/* Their mean is one measurement and counts once: a comparison treats each measurement as independent. */
int pando_measure_count(struct pando_row *row, uint64_t jobs, uint64_t failures)
{
    uint64_t number = atomic_load_explicit(&row->requests, RELAXED);
    uint64_t before = atomic_load_explicit(&row->jobs[0].cpu_before, RELAXED);
    uint64_t spent = pando_cpu_time();
    atomic_store_explicit(&row->jobs[0].cpu_before, spent, RELAXED);
    if (jobs == 0) return 0;
    uint8_t cpu = before ? pando_duration_code(spent > before ? (spent - before) / jobs : 0) : 0;
    for (uint64_t i = number; i < number + jobs && i < PANDO_YOUNG; i++) {
        atomic_store_explicit(&row->cpu[i], i == number ? cpu : 0, RELAXED);
        atomic_store_explicit(&row->wall[i], 0, RELAXED);
        read_faults(row, i + 1);
    }
    count_recent(row, cpu);
    uint64_t failed = atomic_load_explicit(&row->failures, RELAXED);
    atomic_store_explicit(&row->failures, failed + failures, RELAXED);
    atomic_store_explicit(&row->requests, number + jobs, RELAXED);
    return pando_sample_due(row, number + jobs, pando_now());
}

void pando_measure_more(struct pando_row *row, uint64_t jobs)
{
    uint64_t until = atomic_load_explicit(&row->requests, RELAXED) + jobs;
    if (until > atomic_load_explicit(&row->measured_until, RELAXED))
        atomic_store_explicit(&row->measured_until, until, RELAXED);
}

void pando_measure_restart(struct pando_row *row)
{
    atomic_store_explicit(&row->requests, 0, RELAXED);
    atomic_store_explicit(&row->failures, 0, RELAXED);
    atomic_store_explicit(&row->timeouts, 0, RELAXED);
    for (uint32_t i = 0; i < pando_row_jobs_used(row); i++) atomic_store_explicit(&row->jobs[i].number, 0, RELAXED);
    atomic_store_explicit(&row->recents, 0, RELAXED);
    atomic_store_explicit(&row->measured_until, PANDO_YOUNG, RELAXED);
    for (unsigned i = 0; i < PANDO_STEPS; i++) atomic_store_explicit(&row->faults[i], 0, RELAXED);
    pando_sample_restart(row);
}
