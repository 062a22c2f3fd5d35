/* Finds the stretches of a process's memory that have pages of no file. Runs in any process. */
#ifndef PANDO_SYS_PRESENT_H
#define PANDO_SYS_PRESENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_STRETCHES 64

/* In the kernel's layout: struct page_region. */
struct pando_stretch {
    uint64_t from, to, categories;
};

struct pando_present {
    int pagemap;
    uintptr_t from, to; /* the part not yet scanned */
    size_t at, count;
    struct pando_stretch stretches[PANDO_STRETCHES];
};

/* pagemap: /proc/PID/pagemap. */
void pando_present_begin(struct pando_present *present, int pagemap, uintptr_t from, uintptr_t to);
/* The next stretch, in ascending order. 1; 0: there are no more; -1 and errno. Without PAGEMAP_SCAN (Linux 6.7) it
 * returns the whole range asked for, or nothing if that is more than a gibibyte: address space that was only
 * reserved. */
int pando_present_next(struct pando_present *present, uintptr_t *from, uintptr_t *to);

#endif
