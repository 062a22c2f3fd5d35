/* How much of this process's memory is its own, and what for. */
#ifndef PANDO_SYS_PAGES_H
#define PANDO_SYS_PAGES_H

#include <stddef.h>
#include <stdint.h>

enum pando_use {
    PANDO_USE_RUBY_HEAP,
    PANDO_USE_MALLOC, /* and what else is anonymous */
    PANDO_USE_CODE,   /* anonymous and executable: a compiler's */
    PANDO_USE_DATA,   /* of the program and its libraries */
    PANDO_USE_STACK,
    PANDO_USES
};

/* What a page of Ruby's heap is aligned to, and its size. */
#define PANDO_HEAP_PAGE 65536

/* Counts the bytes of pages that no other process maps (pagemap's bit 56; not those of files, nor swapped ones,
 * nor in mappings of more than 64 GiB), from /proc/self/maps and /proc/self/pagemap (proc(5)). Allocates nothing,
 * for that would be counted the next time. heap: addresses of the pages of Ruby's heap, in rising order.
 * -1 and errno. */
int pando_pages_count(const uintptr_t *heap, size_t heap_count, uint64_t bytes[PANDO_USES]);

#endif
