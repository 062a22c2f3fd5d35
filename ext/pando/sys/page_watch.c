/* Watches which pages become this process's own, see page_watch.h. Runs in workers. */
#include "page_watch.h"

#include "maps.h"
#include "measure.h"
#include "pagemap.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES ((size_t)4 << 20) /* 16 GiB */
#define OF_FILE (UINT64_C(1) << PANDO_WATCH_STEP_BITS)
#define NUMBER_SHIFT (PANDO_WATCH_STEP_BITS + 1)
#define RECENT 8       /* recent steps, searched for one of the same job and cause */
#define PATIENCE 250000 /* microseconds per job spent on collections */

static struct {
    void *memory;
    size_t size;
    uint64_t *pages, *next; /* of the last scan, and of the current one */
    size_t page_count, next_count, at;
    struct pando_page_step *steps;
    size_t step_count;
    uint64_t *entries;
    uint32_t faults, job, spent;
    int pagemap;
    pid_t pid;
    bool mixed, cut;
} watch = { .pagemap = -1 };

static struct pando_maps maps; /* one scan at a time: callers hold the GVL */

static struct pando_page_step *step_of(uint32_t job, enum pando_page_cause cause)
{
    for (size_t at = watch.step_count; at-- > 0 && watch.step_count - at <= RECENT;)
        if (watch.steps[at].job == job && watch.steps[at].cause == cause) return &watch.steps[at];
    if (watch.step_count == PANDO_WATCH_STEPS) {
        watch.cut = true;
        return &watch.steps[watch.step_count - 1];
    }
    watch.steps[watch.step_count] = (struct pando_page_step){ .job = job, .cause = cause };
    return &watch.steps[watch.step_count++];
}

/* Records a page that is now our own. Pages come in ascending order, like the ones already recorded. */
static void take(uint64_t number, bool of_file, struct pando_page_step *step)
{
    while (watch.at < watch.page_count && watch.pages[watch.at] >> NUMBER_SHIFT < number) {
        watch.at++;
        step->gone++;
    }
    if (watch.next_count == PAGES) {
        watch.cut = true;
        return;
    }
    uint64_t since = (uint64_t)(step - watch.steps);
    if (watch.at < watch.page_count && watch.pages[watch.at] >> NUMBER_SHIFT == number)
        since = watch.pages[watch.at++] & (PANDO_WATCH_STEPS - 1);
    else
        step->fresh++;
    watch.next[watch.next_count++] = number << NUMBER_SHIFT | (of_file ? OF_FILE : 0) | since;
}

static bool looked_at(const struct pando_mapping *mapping)
{
    return pando_mapping_used(mapping) && mapping->from != (uintptr_t)watch.memory;
}

static int look_at(const struct pando_mapping *mapping, struct pando_page_step *step)
{
    for (uintptr_t from = mapping->from; from < mapping->to;) {
        ssize_t got = pando_pagemap_read(watch.pagemap, watch.entries, from, mapping->to);
        if (got <= 0) return (int)got;
        for (ssize_t at = 0; at < got; at++, from += PANDO_PAGE) {
            uint64_t entry = watch.entries[at];
            if ((entry & PANDO_PAGE_OWN) == PANDO_PAGE_OWN) take(from / PANDO_PAGE, entry & PANDO_PAGE_OF_FILE, step);
        }
    }
    return 0;
}

static int look_at_all(struct pando_page_step *step)
{
    struct pando_mapping mapping;
    int more = pando_maps_open(&maps);
    if (more == -1) return -1;
    while ((more = pando_maps_next(&maps, &mapping)) == 1)
        if (looked_at(&mapping) && look_at(&mapping, step) == -1) {
            more = -1;
            break;
        }
    pando_maps_close(&maps);
    return more;
}

static int look(struct pando_page_step *step)
{
    uint64_t began = pando_now();
    watch.next_count = watch.at = 0;
    if (look_at_all(step) == -1) return -1;
    step->gone += (uint32_t)(watch.page_count - watch.at);
    uint64_t *pages = watch.pages;
    watch.pages = watch.next;
    watch.next = pages;
    watch.page_count = watch.next_count;
    uint32_t took = (uint32_t)((pando_now() - began) / 1000);
    step->microseconds += took;
    watch.spent += took;
    return 0;
}

/* Shared, so that the kernel does not merge it with a neighbour. */
static int map_memory(void)
{
    size_t tables = PAGES * sizeof(uint64_t);
    size_t steps = PANDO_WATCH_STEPS * sizeof(*watch.steps);
    watch.size = 2 * tables + steps + PANDO_PAGEMAP_ENTRIES * sizeof(*watch.entries);
    watch.memory = mmap(NULL, watch.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (watch.memory == MAP_FAILED) {
        watch.memory = NULL;
        return -1;
    }
    madvise(watch.memory, watch.size, MADV_DONTFORK); /* for this process only; if refused, children do not use it
                                                       * anyway */
    watch.pages = watch.memory;
    watch.next = watch.pages + PAGES;
    watch.entries = watch.next + PAGES;
    watch.steps = (struct pando_page_step *)(watch.entries + PANDO_PAGEMAP_ENTRIES);
    return 0;
}

/* A forked process inherits a watch that is not its own. */
static bool watching(void)
{
    return watch.memory && watch.pid == getpid();
}

int pando_page_watch_begin(void)
{
    if (watching()) return errno = EBUSY, -1;
    watch.page_count = watch.step_count = 0;
    watch.job = watch.spent = 0;
    watch.mixed = watch.cut = false;
    watch.pid = getpid();
    watch.pagemap = pando_pagemap_open();
    if (watch.pagemap == -1) return -1;
    if (map_memory() == 0 && look(step_of(0, PANDO_CAUSE_BEFORE)) == 0) {
        watch.faults = pando_minor_faults();
        watch.spent = 0;
        watch.job = 1;
        return 0;
    }
    int saved = errno;
    pando_page_watch_end();
    errno = saved;
    return -1;
}

static int attribute_to(enum pando_page_cause cause)
{
    uint32_t new = pando_minor_faults() - watch.faults;
    if (new == 0) return 0;
    struct pando_page_step *step = step_of(watch.job, watch.mixed ? PANDO_CAUSE_MIXED : cause);
    step->faults += new;
    int result = look(step);
    watch.faults = pando_minor_faults();
    return result;
}

int pando_page_watch_mark(enum pando_page_cause cause)
{
    if (!watching() || watch.mixed) return 0;
    watch.mixed = watch.spent > PATIENCE;
    return watch.mixed ? 0 : attribute_to(cause);
}

int pando_page_watch_end_job(void)
{
    if (!watching()) return 0;
    int result = attribute_to(PANDO_CAUSE_JOB);
    watch.job++;
    watch.spent = 0;
    watch.mixed = false;
    return result;
}

void pando_page_watch_read(struct pando_page_watch *found)
{
    *found = (struct pando_page_watch){ 0 };
    if (!watching()) return;
    found->steps = watch.steps;
    found->step_count = watch.step_count;
    found->pages = watch.pages;
    found->page_count = watch.page_count;
    found->cut = watch.cut;
}

void pando_page_watch_end(void)
{
    if (watch.pid != getpid()) return;
    if (watch.memory) munmap(watch.memory, watch.size);
    if (watch.pagemap != -1) close(watch.pagemap);
    watch.memory = NULL;
    watch.pagemap = -1;
}
