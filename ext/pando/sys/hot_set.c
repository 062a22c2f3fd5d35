/* Observes what a new worker gets at once, see hot_set.h. Runs in molds, and in workers that are about to fork one. */
#include "hot_set.h"

#include "maps.h"
#include "pagemap.h"
#include "present.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What an observation needs apart from this process. */
struct sources {
    int pagemap, memory;               /* of the other process */
    const struct pando_hot_set *other; /* WRITTEN: what that process was populated with; GUESSED: the last hot set */
};

/* For one observation, mapped on its own, so that observing writes to as little of the observer's memory as
 * possible. Pages are looked at in ascending order, so `other_at` only moves forward. */
struct scratch {
    struct sources from;
    struct pando_maps maps;
    uint64_t theirs[PANDO_PAGEMAP_ENTRIES], ours[PANDO_PAGEMAP_ENTRIES];
    int own, own_memory;
    size_t other_at;
    char pages[2][PANDO_PAGE_MAX];
};

static void *map_memory(size_t bytes, int sharing)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

size_t pando_hot_set_count(const struct pando_hot_set *set)
{
    size_t count = set->pages ? atomic_load_explicit(&set->pages->count, memory_order_acquire) : 0;
    return count < PANDO_HOT_RANGES ? count : PANDO_HOT_RANGES;
}

uint64_t pando_hot_set_bytes(const struct pando_hot_set *set)
{
    uint64_t bytes = 0;
    for (size_t at = 0, count = pando_hot_set_count(set); at < count; at++)
        bytes += set->pages->ranges[at].to - set->pages->ranges[at].from;
    return bytes;
}

bool pando_hot_set_eligible(const struct pando_hot_set *set, const struct pando_mapping *mapping)
{
    return set->kind == PANDO_HOT_CODE ? pando_mapping_code(mapping)
                                       : pando_mapping_anonymous(mapping) && pando_mapping_writable(mapping);
}

static bool add(struct pando_hot_set *set, uintptr_t page)
{
    size_t count = pando_hot_set_count(set);
    struct pando_range *ranges = set->pages->ranges;
    if (count && ranges[count - 1].to == page) {
        ranges[count - 1].to += PANDO_PAGE;
        return true;
    }
    if (count == PANDO_HOT_RANGES) return false;
    ranges[count] = (struct pando_range){ page, page + PANDO_PAGE };
    atomic_store_explicit(&set->pages->count, count + 1, memory_order_release);
    return true;
}

static bool in_other(struct scratch *scratch, uintptr_t page)
{
    size_t count = scratch->from.other ? pando_hot_set_count(scratch->from.other) : 0;
    const struct pando_range *ranges = count ? scratch->from.other->pages->ranges : NULL;
    while (scratch->other_at < count && ranges[scratch->other_at].to <= page) scratch->other_at++;
    return scratch->other_at < count && ranges[scratch->other_at].from <= page;
}

/* The caller's page is read as the other one is: another thread might unmap it. */
static bool differs(struct scratch *scratch, uintptr_t page)
{
    ssize_t size = (ssize_t)PANDO_PAGE;
    return size <= PANDO_PAGE_MAX && pread(scratch->from.memory, scratch->pages[0], PANDO_PAGE, (off_t)page) == size &&
           pread(scratch->own_memory, scratch->pages[1], PANDO_PAGE, (off_t)page) == size &&
           memcmp(scratch->pages[0], scratch->pages[1], PANDO_PAGE) != 0;
}

static bool wanted(enum pando_hot_kind kind, struct scratch *scratch, ssize_t at, uintptr_t page)
{
    uint64_t theirs = scratch->theirs[at] & (PANDO_PAGE_OWN | PANDO_PAGE_OF_FILE);
    uint64_t ours = scratch->ours[at] & (PANDO_PAGE_OWN | PANDO_PAGE_OF_FILE);
    bool anonymous = (ours | PANDO_PAGE_EXCLUSIVE) == PANDO_PAGE_OWN; /* and present, shared or not */
    switch (kind) {
    case PANDO_HOT_WRITTEN:
        return theirs == PANDO_PAGE_OWN && anonymous &&
               (!in_other(scratch, page) || (scratch->from.memory != -1 && differs(scratch, page)));
    case PANDO_HOT_OWN: return ours == PANDO_PAGE_OWN;
    case PANDO_HOT_GUESSED: return anonymous && in_other(scratch, page);
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
            ssize_t theirs = pando_pagemap_read(scratch->from.pagemap, scratch->theirs, from, to);
            if (theirs <= 0) return (int)theirs;
            until = from + (uintptr_t)theirs * PANDO_PAGE;
        }
        ssize_t ours = pando_pagemap_read(scratch->own, scratch->ours, from, until);
        if (ours <= 0) return (int)ours;
        for (ssize_t at = 0; at < ours; at++, from += PANDO_PAGE)
            if (wanted(set->kind, scratch, at, from) && !add(set, from)) return 0;
    }
    return 1;
}

static int observe_mapping(struct pando_hot_set *set, struct scratch *scratch, const struct pando_mapping *mapping)
{
    if (set->kind == PANDO_HOT_CODE) return observe_range(set, scratch, mapping->from, mapping->to);

    struct pando_present present;
    uintptr_t from, to;
    int pagemap = set->kind == PANDO_HOT_WRITTEN ? scratch->from.pagemap : scratch->own;
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
    scratch->own_memory = scratch->from.memory == -1 ? -1 : open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    int result = pando_maps_open(&scratch->maps);
    if (result == 0) result = observe_all(set, scratch);
    pando_maps_close(&scratch->maps);
    pando_pagemap_close(scratch->own);
    if (scratch->own_memory != -1) close(scratch->own_memory);
    return result;
}

/* Does not empty memory that is shared: another process may still need those pages. Maps new memory instead. */
static int make_room(struct pando_hot_set *set, enum pando_hot_kind kind, int sharing)
{
    if (pando_hot_set_count(set)) pando_hot_set_clear(set);
    set->kind = kind;
    if (!set->pages) set->pages = map_memory(sizeof(*set->pages), sharing);
    return set->pages ? 0 : -1;
}

int pando_hot_set_share(struct pando_hot_set *set)
{
    pando_hot_set_clear(set);
    return make_room(set, PANDO_HOT_WRITTEN, MAP_SHARED);
}

void pando_hot_set_protect(struct pando_hot_set *set)
{
    if (set->pages) mprotect(set->pages, sizeof(*set->pages), PROT_READ);
}

/* Replaces the set. */
static int replace(struct pando_hot_set *set, enum pando_hot_kind kind, struct sources sources)
{
    struct scratch *scratch = map_memory(sizeof(*scratch), MAP_PRIVATE);
    if (scratch) scratch->from = sources;
    int result = make_room(set, kind, MAP_PRIVATE) == 0 && scratch ? observe(set, scratch) : -1;
    int saved = errno;
    if (scratch) munmap(scratch, sizeof(*scratch));
    if (result == -1) {
        if (set->pages) atomic_store_explicit(&set->pages->count, 0, memory_order_release); /* for those who share it */
        pando_hot_set_clear(set);
    }
    errno = saved;
    return result == -1 ? -1 : 0;
}

int pando_hot_set_observe(struct pando_hot_set *set, int pagemap, const struct pando_hot_set *given, int memory)
{
    return replace(set, PANDO_HOT_WRITTEN, (struct sources){ .pagemap = pagemap, .memory = memory, .other = given });
}

int pando_hot_set_observe_own(struct pando_hot_set *set)
{
    return replace(set, PANDO_HOT_OWN, (struct sources){ .memory = -1 });
}

int pando_hot_set_observe_code(struct pando_hot_set *set)
{
    return replace(set, PANDO_HOT_CODE, (struct sources){ .memory = -1 });
}

int pando_hot_set_guess(struct pando_hot_set *set, const struct pando_hot_set *last)
{
    return replace(set, PANDO_HOT_GUESSED, (struct sources){ .memory = -1, .other = last });
}

void pando_hot_set_clear(struct pando_hot_set *set)
{
    if (set->pages) munmap(set->pages, sizeof(*set->pages));
    *set = (struct pando_hot_set){ 0 };
}
