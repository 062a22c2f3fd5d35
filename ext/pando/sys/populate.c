/* Populates a set of pages, see hot_set.h. Runs in new workers and molds. */
#include "hot_set.h"

#include "maps.h"
#include "pagemap.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define CHUNK ((uint64_t)64 * PANDO_PAGE) /* populated between two checks of the clock */

/* By the clock it may take so many times the CPU time, since others may have the CPU, or the kernel may search for
 * memory. */
#define PATIENCE 10

/* What is left to use. */
struct budget {
    uint64_t bytes, cpu_until, until;
    int advice;
    bool touch;
};

static uint64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000ULL + (uint64_t)time.tv_nsec;
}

static bool used_up(const struct budget *budget)
{
    return budget->bytes == 0 || now(CLOCK_MONOTONIC) >= budget->until ||
           now(CLOCK_THREAD_CPUTIME_ID) >= budget->cpu_until;
}

/* A kernel that does not know the advice says so before it checks the range. */
bool pando_hot_set_supported(void)
{
    return madvise(NULL, 0, MADV_POPULATE_WRITE) == 0;
}

/* Where a hypervisor keeps page tables of its own, it fills them at the first access only: some ten microseconds a
 * page. Elsewhere this takes next to nothing. A new worker has one thread. In a mold others might unmap what is read
 * here, and a file of code may have become shorter, so only the former does it. Other processors may have memory that
 * only a tagged pointer may read. The pages may be a sanitizer's own. */
__attribute__((no_sanitize("address"))) static void touch(uintptr_t from, uint64_t size)
{
#ifdef __x86_64__
    for (uintptr_t page = from; page < from + size; page += PANDO_PAGE) (void)*(const volatile char *)page;
#else
    (void)from, (void)size;
#endif
}

/* False when the budget is used up. */
static bool populate(uintptr_t from, uintptr_t to, struct budget *budget, struct pando_populated *done)
{
    while (from < to) {
        uint64_t size = to - from < CHUNK ? to - from : CHUNK;
        if (size > budget->bytes) size = budget->bytes;
        if (used_up(budget)) return false;
        if (madvise((void *)from, (size_t)size, budget->advice) == 0) {
            if (budget->touch) touch(from, size);
            done->bytes += size;
            budget->bytes -= size;
        } else if (errno == EINTR) {
            continue;
        }
        from += size;
    }
    return true;
}

/* Populates the parts of the ranges that lie in the mapping. at: the first range that may reach into it or lies
 * behind it. */
static bool populate_mapping(const struct pando_hot_set *set, size_t *at, const struct pando_mapping *mapping,
                             struct budget *budget, struct pando_populated *done)
{
    for (size_t count = pando_hot_set_count(set); *at < count && set->pages->ranges[*at].from < mapping->to; ++*at) {
        struct pando_range range = set->pages->ranges[*at];
        uintptr_t from = range.from > mapping->from ? range.from : mapping->from;
        uintptr_t to = range.to < mapping->to ? range.to : mapping->to;
        if (!populate(from, to, budget, done)) return false;
        if (range.to > mapping->to) break; /* the next mapping has the rest */
    }
    return true;
}

static int populate_all(const struct pando_hot_set *set, struct pando_maps *maps, struct budget budget,
                        struct pando_populated *done)
{
    struct pando_mapping mapping;
    size_t at = 0, count = pando_hot_set_count(set);
    int more;
    while ((more = pando_maps_next(maps, &mapping)) == 1 && at < count) {
        while (at < count && set->pages->ranges[at].to <= mapping.from) at++;
        if (!pando_hot_set_eligible(set, &mapping)) continue;
        if (!populate_mapping(set, &at, &mapping, &budget, done)) return 0;
    }
    return more == -1 ? -1 : 0;
}

int pando_hot_set_populate(const struct pando_hot_set *set, uint64_t bytes, uint64_t nanoseconds,
                           struct pando_populated *done)
{
    uint64_t began = now(CLOCK_THREAD_CPUTIME_ID);
    struct budget budget = { .bytes = bytes / PANDO_PAGE * PANDO_PAGE, .cpu_until = began + nanoseconds,
                             .until = now(CLOCK_MONOTONIC) + PATIENCE * nanoseconds,
                             .touch = set->kind == PANDO_HOT_WRITTEN || set->kind == PANDO_HOT_GUESSED,
                             .advice = set->kind == PANDO_HOT_CODE ? MADV_POPULATE_READ : MADV_POPULATE_WRITE };
    *done = (struct pando_populated){ 0 };
    if (pando_hot_set_count(set) == 0) return 0;
    struct pando_maps *maps = mmap(NULL, sizeof(*maps), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (maps == MAP_FAILED) return -1;
    int result = pando_maps_open(maps);
    if (result == 0) result = populate_all(set, maps, budget, done);
    pando_maps_close(maps);
    int saved = errno;
    munmap(maps, sizeof(*maps));
    errno = saved;
    done->nanoseconds = now(CLOCK_THREAD_CPUTIME_ID) - began;
    return result;
}
