#include "page_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "maps.h"

#define PAGE 4096
#define ENTRIES 8192
#define LARGEST (UINT64_C(64) << 30) /* a mapping beyond is address space that somebody has set aside */
#define OWN (UINT64_C(1) << 63 | UINT64_C(1) << 56) /* present, and mapped by nobody else */
#define FILE_BIT 61
#define PAGES ((size_t)4 << 20) /* 16 GiB */
#define OF_FILE (UINT64_C(1) << PANDO_WATCH_STEP_BITS)
#define NUMBER_SHIFT (PANDO_WATCH_STEP_BITS + 1)
#define RECENT 8       /* steps, among which one of the same job and cause is looked for */
#define PATIENCE 250000 /* microseconds a job for looking at collections */

static struct {
    void *memory;
    size_t size;
    uint64_t *pages, *next; /* of the last look, and of the one that is under way */
    size_t page_count, next_count, at;
    struct pando_page_step *steps;
    size_t step_count;
    uint64_t *entries;
    uint64_t faults;
    uint32_t job, spent;
    size_t step;
    int pagemap;
    pid_t pid;
    bool mixed, cut;
} watch = { .pagemap = -1 };

static struct pando_maps maps; /* one at a time: callers hold the GVL */

static uint64_t minor_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == -1 ? 0 : (uint64_t)usage.ru_minflt;
}

static uint64_t microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

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

/* A page that is our own now. They come in rising order, as those that are known are kept. */
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
    return memcmp(mapping->rights, "---", 3) != 0 && strncmp(mapping->name, "[v", 2) != 0 &&
           mapping->from != (uintptr_t)watch.memory && mapping->to - mapping->from <= LARGEST;
}

/* How many entries there are now of those from this page on; 0: the mapping has gone. -1 and errno. */
static ssize_t read_entries(uintptr_t from, uintptr_t to)
{
    size_t left = (to - from) / PAGE, wanted = left < ENTRIES ? left : ENTRIES, size = sizeof(*watch.entries);
    ssize_t got;
    do got = pread(watch.pagemap, watch.entries, wanted * size, (off_t)(from / PAGE * size));
    while (got == -1 && errno == EINTR);
    return got == -1 ? -1 : got / (ssize_t)size;
}

static int look_at(const struct pando_mapping *mapping, struct pando_page_step *step)
{
    for (uintptr_t from = mapping->from; from < mapping->to;) {
        ssize_t got = read_entries(from, mapping->to);
        if (got <= 0) return (int)got;
        for (ssize_t at = 0; at < got; at++, from += PAGE) {
            uint64_t entry = watch.entries[at];
            if ((entry & OWN) == OWN) take(from / PAGE, entry >> FILE_BIT & 1, step);
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
    uint64_t began = microseconds();
    watch.next_count = watch.at = 0;
    if (look_at_all(step) == -1) return -1;
    step->gone += (uint32_t)(watch.page_count - watch.at);
    uint64_t *pages = watch.pages;
    watch.pages = watch.next;
    watch.next = pages;
    watch.page_count = watch.next_count;
    uint32_t took = (uint32_t)(microseconds() - began);
    step->microseconds += took;
    watch.spent += took;
    return 0;
}

/* Shared, so that the kernel does not make it one with a neighbour. */
static int map_memory(void)
{
    size_t tables = PAGES * sizeof(uint64_t);
    watch.size = 2 * tables + PANDO_WATCH_STEPS * sizeof(struct pando_page_step) + ENTRIES * sizeof(uint64_t);
    watch.memory = mmap(NULL, watch.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (watch.memory == MAP_FAILED) {
        watch.memory = NULL;
        return -1;
    }
    madvise(watch.memory, watch.size, MADV_DONTFORK); /* nobody else's; if refused, it is not used there either */
    watch.pages = watch.memory;
    watch.next = watch.pages + PAGES;
    watch.entries = watch.next + PAGES;
    watch.steps = (struct pando_page_step *)(watch.entries + ENTRIES);
    return 0;
}

/* A process that was forked off ours inherits a watch that is none of its own. */
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
    watch.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (watch.pagemap == -1) return -1;
    if (map_memory() == 0 && look(step_of(0, PANDO_CAUSE_BEFORE)) == 0) {
        watch.faults = minor_faults();
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
    uint64_t new = minor_faults() - watch.faults;
    if (new == 0) return 0;
    struct pando_page_step *step = step_of(watch.job, watch.mixed ? PANDO_CAUSE_MIXED : cause);
    step->faults += (uint32_t)new;
    int result = look(step);
    watch.faults = minor_faults();
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
