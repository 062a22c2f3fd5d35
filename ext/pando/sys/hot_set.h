/* The hot set of a mold: the pages that one of its children has written to, and the next one is going to. It gets its
 * own copies of them at once and not fault by fault. */
#ifndef PANDO_SYS_HOT_SET_H
#define PANDO_SYS_HOT_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_HOT_RANGES 65536 /* at most; what is behind is left to faults */

struct pando_range {
    uintptr_t from, to;
};

/* All zeros: an empty one. */
struct pando_hot_set {
    struct pando_range *ranges; /* in rising order, apart from each other */
    size_t count;
    uint64_t bytes;
};

struct pando_populated {
    uint64_t bytes, nanoseconds;
};

/* Whether the kernel knows MADV_POPULATE_WRITE (Linux 5.14). */
bool pando_hot_set_supported(void);

/* Replaces the set by what the process with this pagemap (proc(5)), a child of the calling one, has of its own where the
 * caller has a page too: in private, anonymous, writable memory. "Of its own": it alone maps the page (bit 56). So a
 * page that the caller has written to since is taken for one as well, if nobody else has kept the former one.
 * Allocates nothing of malloc's. 0; -1 and errno, and the set is empty. */
int pando_hot_set_observe(struct pando_hot_set *set, int pagemap);

void pando_hot_set_clear(struct pando_hot_set *set);

/* In a child that was forked since: populates those pages, in rising order, until so many bytes, or nanoseconds of CPU
 * time, are used up; ten times as long by the clock. Only what is private, anonymous and writable in the caller too is touched. What the kernel refuses is left out.
 * 0; -1 and errno: /proc/self/maps cannot be read. */
int pando_hot_set_populate(const struct pando_hot_set *set, uint64_t bytes, uint64_t nanoseconds,
                           struct pando_populated *done);

#endif
