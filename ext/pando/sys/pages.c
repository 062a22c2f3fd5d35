/* Counts private memory by use, see pages.h. Runs in any process. */
#include "pages.h"

#include "maps.h"
#include "pagemap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct count {
    int pagemap;
    const uintptr_t *heap;
    size_t heap_count;
    uint64_t *bytes;
};

static struct pando_maps maps; /* one count at a time: callers hold the GVL */
static uint64_t entries[PANDO_PAGEMAP_ENTRIES];

static int compare(const void *left, const void *right)
{
    uintptr_t one = *(const uintptr_t *)left, other = *(const uintptr_t *)right;
    return one < other ? -1 : one > other;
}

static bool in_heap(const struct count *count, uintptr_t address)
{
    uintptr_t page = address & ~(uintptr_t)(PANDO_HEAP_PAGE - 1);
    return bsearch(&page, count->heap, count->heap_count, sizeof(page), compare) != NULL;
}

static int count_mapping(struct count *count, uintptr_t from, uintptr_t to, enum pando_use use)
{
    while (from < to) {
        ssize_t got = pando_pagemap_read(count->pagemap, entries, from, to);
        if (got <= 0) return (int)got;
        for (ssize_t at = 0; at < got; at++, from += PANDO_PAGE) {
            if ((entries[at] & (PANDO_PAGE_OWN | PANDO_PAGE_OF_FILE)) != PANDO_PAGE_OWN) continue;
            bool ruby = use == PANDO_USE_MALLOC && in_heap(count, from);
            count->bytes[ruby ? PANDO_USE_RUBY_HEAP : use] += PANDO_PAGE;
        }
    }
    return 0;
}

static enum pando_use use_of(const char *rights, const char *name)
{
    if (strncmp(name, "[stack", 6) == 0) return PANDO_USE_STACK;
    if (*name == '/') return PANDO_USE_DATA;
    return rights[2] == 'x' ? PANDO_USE_CODE : PANDO_USE_MALLOC;
}

static int count_all(struct count *count)
{
    struct pando_mapping mapping;
    int more;
    while ((more = pando_maps_next(&maps, &mapping)) == 1)
        if (pando_mapping_private(&mapping) && pando_mapping_used(&mapping) &&
            count_mapping(count, mapping.from, mapping.to, use_of(mapping.rights, mapping.name)) == -1)
            return -1;
    return more;
}

int pando_pages_count(const uintptr_t *heap, size_t heap_count, uint64_t bytes[PANDO_USES])
{
    memset(bytes, 0, sizeof(*bytes) * PANDO_USES);
    struct count count = { .heap = heap, .heap_count = heap_count, .bytes = bytes };
    count.pagemap = pando_pagemap_open();
    if (count.pagemap == -1) return -1;
    int result = pando_maps_open(&maps);
    if (result == 0) result = count_all(&count);
    pando_maps_close(&maps);
    pando_pagemap_close(count.pagemap);
    return result;
}
