/* How much of this process's memory is private to it, and what it is used for. Runs in any process. */
#ifndef PANDO_SYS_PAGES_H
#define PANDO_SYS_PAGES_H

#include <stddef.h>
#include <stdint.h>

enum pando_use {
    PANDO_USE_RUBY_HEAP,
    PANDO_USE_MALLOC, /* and everything else anonymous */
    PANDO_USE_CODE,   /* anonymous and executable: compiled code */
    PANDO_USE_DATA,   /* of the program and its libraries */
    PANDO_USE_STACK,
    PANDO_USES
};

/* Size and alignment of a page of Ruby's heap. */
#define PANDO_HEAP_PAGE 65536

/* Counts the bytes of pages that no other process maps (pagemap's bit 56), from /proc/self/maps and
 * /proc/self/pagemap (proc(5)). Leaves out pages of files, swapped pages, and mappings of more than 64 GiB. Allocates
 * nothing, since that would count the next time. heap: addresses of the pages of Ruby's heap, ascending. -1 and
 * errno. */
int pando_pages_count(const uintptr_t *heap, size_t heap_count, uint64_t bytes[PANDO_USES]);

#endif
