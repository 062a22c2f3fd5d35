/* Finds the present pages of a process, see present.h. Runs in any process. */
#include "present.h"

#include <errno.h>
#include <sys/ioctl.h>

#define LARGEST ((uintptr_t)1 << 30)

/* From Linux 6.7 (pagemap.rst); older headers lack it. */
struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define SCAN _IOWR('f', 16, struct scan)
#define CATEGORY_FILE (1 << 2)
#define CATEGORY_PRESENT (1 << 3)

void pando_present_begin(struct pando_present *present, int pagemap, uintptr_t from, uintptr_t to)
{
    present->pagemap = pagemap;
    present->from = from;
    present->to = to;
    present->at = present->count = 0;
}

/* Fills stretches. 0, -1. */
static int scan(struct pando_present *present)
{
    struct scan wanted = {
        .size = sizeof(wanted), .start = present->from, .end = present->to,
        .vec = (uintptr_t)present->stretches, .vec_len = PANDO_STRETCHES,
        .category_inverted = CATEGORY_FILE, .category_mask = CATEGORY_FILE | CATEGORY_PRESENT,
        .return_mask = CATEGORY_PRESENT,
    };
    int found = ioctl(present->pagemap, SCAN, &wanted);
    if (found < 0) return -1;
    present->at = 0;
    present->count = (size_t)found;
    present->from = wanted.walk_end > present->from ? (uintptr_t)wanted.walk_end : present->to;
    return 0;
}

static int take_all(struct pando_present *present, uintptr_t *from, uintptr_t *to)
{
    *from = present->from;
    *to = present->to;
    present->from = present->to;
    return *to - *from <= LARGEST;
}

int pando_present_next(struct pando_present *present, uintptr_t *from, uintptr_t *to)
{
    while (present->at == present->count) {
        if (present->from >= present->to) return 0;
        if (scan(present) == 0) continue;
        if (errno == ENOTTY || errno == EINVAL) return take_all(present, from, to);
        if (errno == ESRCH) return 0; /* the process has ended */
        if (errno != EINTR) return -1;
    }
    *from = (uintptr_t)present->stretches[present->at].from;
    *to = (uintptr_t)present->stretches[present->at++].to;
    return 1;
}
