/* Finds out which pages of this process have become its own, and why. Runs in workers. At each mark it scans all
 * pages (pagemap's bit 56); the pages that are new since the last mark belong to what happened in between. */
#ifndef PANDO_SYS_PAGE_WATCH_H
#define PANDO_SYS_PAGE_WATCH_H

#include <stddef.h>
#include <stdint.h>

enum pando_page_cause {
    PANDO_CAUSE_BEFORE, /* the watch */
    PANDO_CAUSE_JOB,
    PANDO_CAUSE_MINOR_GC,
    PANDO_CAUSE_MAJOR_GC,
    PANDO_CAUSE_MIXED /* a job and collections within it: separating them would have taken too long */
};

struct pando_page_step {
    uint32_t job, cause;
    uint32_t faults;       /* minor ones: pages that the process wrote, or used for the first time */
    uint32_t fresh, gone;  /* pages that became its own; pages that no longer are, or are unmapped */
    uint32_t microseconds; /* spent on the scan */
};

/* A page of our own: its number, whether it belongs to a file, and the index of the step in which it became ours. */
#define PANDO_WATCH_STEP_BITS 18
#define PANDO_WATCH_STEPS (1 << PANDO_WATCH_STEP_BITS)

struct pando_page_watch {
    const struct pando_page_step *steps;
    size_t step_count;
    const uint64_t *pages; /* number << 19 | of a file << 18 | step; ascending */
    size_t page_count;
    int cut; /* there are more pages or steps than were kept */
};

/* Begins with job 0. One watch at a time in a process; -1 and errno (EBUSY: there is one). The watch does not see its
 * own memory, which is mapped apart. */
int pando_page_watch_begin(void);
/* What has become our own since the last mark has this cause. Allocates nothing; does nothing without page faults
 * since the last mark. -1 and errno. */
int pando_page_watch_mark(enum pando_page_cause cause);
/* The same, for the job; the next job begins. */
int pando_page_watch_end_job(void);
/* What has been found so far; valid until the next mark. */
void pando_page_watch_read(struct pando_page_watch *found);
void pando_page_watch_end(void);

#endif
