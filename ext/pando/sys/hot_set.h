/* Pages that a process gets at once instead of fault by fault. There are four kinds of sets:
 *
 * - The hot set of a mold: the pages that one of its children has written to, and that the next one will write to.
 *   Observed in the mold, in memory that it shares with its children. A new worker gets copies of its own.
 * - The guess of the next mold: those of these pages that it has, too. Its first workers get copies of their own.
 * - The pages that a mold has of its own after its preparation: those that this has written to. Observed in the mold.
 *   The next mold, which is forked from one of its workers, gets copies of its own before its preparation.
 * - The pages of code that a worker has mapped, of programs and libraries. A fork does not copy the page tables of
 *   these mappings. Observed in a worker that is about to fork a mold. A new worker maps the same pages. */
#ifndef PANDO_SYS_HOT_SET_H
#define PANDO_SYS_HOT_SET_H

#include "maps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_HOT_RANGES 65536 /* at most; pages beyond are left to faults */

struct pando_range {
    uintptr_t from, to;
};

enum pando_hot_kind { PANDO_HOT_WRITTEN, PANDO_HOT_OWN, PANDO_HOT_CODE, PANDO_HOT_GUESSED };

/* Mapped on its own. A process that shares it might write anything to it. */
struct pando_hot_pages {
    _Atomic size_t count;
    struct pando_range ranges[PANDO_HOT_RANGES]; /* in ascending order, not adjacent */
};

/* All zeros: an empty set. */
struct pando_hot_set {
    struct pando_hot_pages *pages;
    enum pando_hot_kind kind;
};

struct pando_populated {
    uint64_t bytes, nanoseconds;
};

/* Whether the kernel knows MADV_POPULATE_WRITE (Linux 5.14). */
bool pando_hot_set_supported(void);

/* Makes an empty set for which children forked from now on share the memory: they see what the caller observes in it
 * next. 0; -1 and errno. */
int pando_hot_set_share(struct pando_hot_set *set);

/* From now on this process cannot write to the memory that it shares. */
void pando_hot_set_protect(struct pando_hot_set *set);

/* Replaces the set by the pages that a child of the caller has of its own where the caller has a page too, in
 * private, anonymous, writable memory. The child is given by its pagemap (proc(5)). "Of its own" means that it alone
 * maps the page (bit 56), so a page that the caller has written to since counts too, if no other process kept the
 * former one. Does not use malloc. 0; -1 and errno, and the set is empty.
 *
 * given: what the child was populated with, or NULL. It has pages of its own there that it has not written to. Such a
 * page counts if it differs from the caller's. memory: the child's /proc/PID/mem; -1: none of them counts. */
int pando_hot_set_observe(struct pando_hot_set *set, int pagemap, const struct pando_hot_set *given, int memory);

/* Replaces the set by the pages in private, anonymous, writable memory that no other process maps. As above. */
int pando_hot_set_observe_own(struct pando_hot_set *set);

/* Replaces the set by the pages of code that the caller itself has mapped. As above. */
int pando_hot_set_observe_code(struct pando_hot_set *set);

/* Replaces the set by those pages of the last mold's hot set that the caller has, too. As above. */
int pando_hot_set_guess(struct pando_hot_set *set, const struct pando_hot_set *last);

/* Ranges, and bytes, of its pages. */
size_t pando_hot_set_count(const struct pando_hot_set *set);
uint64_t pando_hot_set_bytes(const struct pando_hot_set *set);

/* Whether a set of this kind may contain pages of the mapping. */
bool pando_hot_set_eligible(const struct pando_hot_set *set, const struct pando_mapping *mapping);

void pando_hot_set_clear(struct pando_hot_set *set);

/* In a process forked since: populates those pages in ascending order, until so many bytes or nanoseconds of CPU time
 * are used, or ten times as long by the clock. Touches only mappings that are still of the set's kind here, and skips
 * what the kernel refuses. 0; -1 and errno: /proc/self/maps cannot be read. */
int pando_hot_set_populate(const struct pando_hot_set *set, uint64_t bytes, uint64_t nanoseconds,
                           struct pando_populated *done);

#endif
