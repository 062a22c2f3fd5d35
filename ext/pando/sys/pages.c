#include "pages.h"

#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096
#define ENTRIES 8192
#define LARGEST (UINT64_C(64) << 30) /* a mapping beyond is address space that somebody has set aside */
#define PRESENT (UINT64_C(1) << 63)
#define OF_FILE (UINT64_C(1) << 61)
#define EXCLUSIVE (UINT64_C(1) << 56)

struct count {
    int pagemap;
    const uintptr_t *heap;
    size_t heap_count;
    uint64_t *bytes;
};

static struct pando_maps maps; /* one at a time: callers hold the GVL */
static uint64_t entries[ENTRIES];

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
        size_t wanted = (to - from) / PAGE < ENTRIES ? (to - from) / PAGE : ENTRIES;
        ssize_t got = pread(count->pagemap, entries, wanted * sizeof(*entries), (off_t)(from / PAGE * sizeof(*entries)));
        if (got == -1 && errno == EINTR) continue;
        if (got == -1) return -1;
        if (got < (ssize_t)sizeof(*entries)) return 0; /* it has gone */
        for (size_t at = 0; at < (size_t)got / sizeof(*entries); at++, from += PAGE) {
            if ((entries[at] & (PRESENT | OF_FILE | EXCLUSIVE)) != (PRESENT | EXCLUSIVE)) continue;
            bool ruby = use == PANDO_USE_MALLOC && in_heap(count, from);
            count->bytes[ruby ? PANDO_USE_RUBY_HEAP : use] += PAGE;
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

static bool counts(const struct pando_mapping *mapping)
{
    return pando_mapping_private(mapping) && memcmp(mapping->rights, "---", 3) != 0 &&
           strncmp(mapping->name, "[v", 2) != 0 && mapping->to - mapping->from <= LARGEST;
}

static int count_all(struct count *count)
{
    struct pando_mapping mapping;
    int more;
    while ((more = pando_maps_next(&maps, &mapping)) == 1)
        if (counts(&mapping) &&
            count_mapping(count, mapping.from, mapping.to, use_of(mapping.rights, mapping.name)) == -1)
            return -1;
    return more;
}

int pando_pages_count(const uintptr_t *heap, size_t heap_count, uint64_t bytes[PANDO_USES])
{
    memset(bytes, 0, sizeof(*bytes) * PANDO_USES);
    struct count count = { .heap = heap, .heap_count = heap_count, .bytes = bytes };
    count.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (count.pagemap == -1) return -1;
    int result = pando_maps_open(&maps);
    if (result == 0) result = count_all(&count);
    pando_maps_close(&maps);
    int saved = errno;
    close(count.pagemap);
    errno = saved;
    return result;
}
