/* Observes what a new worker gets at once, see hot_set.h. Runs in molds, and in workers that are about to fork one. */
#include "hot_set.h"

#include "maps.h"
#include "pagemap.h"
#include "present.h"

#include <errno.h>
#include <sys/mman.h>

/* For one observation, mapped on its own, so that observing writes to as little of the observer's memory as
 * possible. */
struct scratch {
    struct pando_maps maps;
    uint64_t theirs[PANDO_PAGEMAP_ENTRIES], ours[PANDO_PAGEMAP_ENTRIES];
    int pagemap, own;
};

static void *map_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bool pando_hot_set_eligible(const struct pando_hot_set *set, const struct pando_mapping *mapping)
{
    return set->kind == PANDO_HOT_CODE ? pando_mapping_code(mapping)
                                       : pando_mapping_anonymous(mapping) && pando_mapping_writable(mapping);
}

static bool add(struct pando_hot_set *set, uintptr_t page)
{
    struct pando_range *last = set->count ? &set->ranges[set->count - 1] : NULL;
    if (last && last->to == page) {
        last->to += PANDO_PAGE;
    } else {
        if (set->count == PANDO_HOT_RANGES) return false;
        set->ranges[set->count++] = (struct pando_range){ page, page + PANDO_PAGE };
    }
    set->bytes += PANDO_PAGE;
    return true;
}

static bool hot(enum pando_hot_kind kind, uint64_t theirs, uint64_t ours)
{
    uint64_t anonymous = ours & (PANDO_PAGE_OWN | PANDO_PAGE_OF_FILE);
    switch (kind) {
    case PANDO_HOT_WRITTEN:
        return (theirs & (PANDO_PAGE_OWN | PANDO_PAGE_OF_FILE)) == PANDO_PAGE_OWN &&
               (anonymous | PANDO_PAGE_EXCLUSIVE) == PANDO_PAGE_OWN;
    case PANDO_HOT_OWN: return anonymous == PANDO_PAGE_OWN;
    case PANDO_HOT_CODE: return ours & PANDO_PAGE_PRESENT;
    }
    return false;
}

/* 1; 0: the set is full, or the other process has ended; -1. */
static int observe_range(struct pando_hot_set *set, struct scratch *scratch, uintptr_t from, uintptr_t to)
{
    while (from < to) {
        uintptr_t until = to;
        if (set->kind == PANDO_HOT_WRITTEN) {
            ssize_t theirs = pando_pagemap_read(scratch->pagemap, scratch->theirs, from, to);
            if (theirs <= 0) return (int)theirs;
            until = from + (uintptr_t)theirs * PANDO_PAGE;
        }
        ssize_t ours = pando_pagemap_read(scratch->own, scratch->ours, from, until);
        if (ours <= 0) return (int)ours;
        for (ssize_t at = 0; at < ours; at++, from += PANDO_PAGE)
            if (hot(set->kind, scratch->theirs[at], scratch->ours[at]) && !add(set, from)) return 0;
    }
    return 1;
}

static int observe_mapping(struct pando_hot_set *set, struct scratch *scratch, const struct pando_mapping *mapping)
{
    if (set->kind == PANDO_HOT_CODE) return observe_range(set, scratch, mapping->from, mapping->to);

    struct pando_present present;
    uintptr_t from, to;
    int pagemap = set->kind == PANDO_HOT_WRITTEN ? scratch->pagemap : scratch->own;
    pando_present_begin(&present, pagemap, mapping->from, mapping->to);
    int more;
    while ((more = pando_present_next(&present, &from, &to)) == 1)
        if ((more = observe_range(set, scratch, from, to)) != 1) return more;
    return more == -1 ? -1 : 1;
}

static int observe_all(struct pando_hot_set *set, struct scratch *scratch)
{
    struct pando_mapping mapping;
    int more;
    while ((more = pando_maps_next(&scratch->maps, &mapping)) == 1) {
        if (!pando_hot_set_eligible(set, &mapping)) continue;
        if ((more = observe_mapping(set, scratch, &mapping)) != 1) break;
    }
    return more;
}

static int observe(struct pando_hot_set *set, struct scratch *scratch)
{
    scratch->own = pando_pagemap_open();
    if (scratch->own == -1) return -1;
    int result = pando_maps_open(&scratch->maps);
    if (result == 0) result = observe_all(set, scratch);
    pando_maps_close(&scratch->maps);
    pando_pagemap_close(scratch->own);
    return result;
}

/* Replaces the set. pagemap: of another process, if the kind needs one. */
static int replace(struct pando_hot_set *set, enum pando_hot_kind kind, int pagemap)
{
    pando_hot_set_clear(set);
    set->kind = kind;
    struct scratch *scratch = map_memory(sizeof(*scratch));
    set->ranges = map_memory(PANDO_HOT_RANGES * sizeof(*set->ranges));
    if (!scratch || !set->ranges) {
        errno = ENOMEM;
    } else {
        scratch->pagemap = pagemap;
    }
    int result = scratch && set->ranges ? observe(set, scratch) : -1;
    int saved = errno;
    if (scratch) munmap(scratch, sizeof(*scratch));
    if (result == -1) pando_hot_set_clear(set);
    errno = saved;
    return result == -1 ? -1 : 0;
}

int pando_hot_set_observe(struct pando_hot_set *set, int pagemap)
{
    return replace(set, PANDO_HOT_WRITTEN, pagemap);
}

int pando_hot_set_observe_own(struct pando_hot_set *set)
{
    return replace(set, PANDO_HOT_OWN, -1);
}

int pando_hot_set_observe_code(struct pando_hot_set *set)
{
    return replace(set, PANDO_HOT_CODE, -1);
}

void pando_hot_set_clear(struct pando_hot_set *set)
{
    if (set->ranges) munmap(set->ranges, PANDO_HOT_RANGES * sizeof(*set->ranges));
    *set = (struct pando_hot_set){ 0 };
}
