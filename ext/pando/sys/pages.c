#include "pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096
#define ENTRIES 8192
#define LARGEST (UINT64_C(64) << 30) /* a mapping beyond is address space that somebody has set aside */
#define LINE 512 /* of a mapping; what is behind is the rest of a long path */
#define PRESENT (UINT64_C(1) << 63)
#define OF_FILE (UINT64_C(1) << 61)
#define EXCLUSIVE (UINT64_C(1) << 56)

struct reader {
    int fd;
    size_t at, end;
    char bytes[65536];
};

struct count {
    int pagemap;
    const uintptr_t *heap;
    size_t heap_count;
    uint64_t *bytes;
};

static struct reader maps; /* one at a time: callers hold the GVL */
static uint64_t entries[ENTRIES];

static ssize_t read_again(int fd, void *to, size_t size)
{
    ssize_t got;
    do got = read(fd, to, size);
    while (got == -1 && errno == EINTR);
    return got;
}

/* The next line, cut short if need be. 1, 0 at the end, -1. */
static int next_line(struct reader *reader, char line[LINE])
{
    size_t length = 0;
    for (;;) {
        if (reader->at == reader->end) {
            ssize_t got = read_again(reader->fd, reader->bytes, sizeof(reader->bytes));
            if (got == -1) return -1;
            if (got == 0) return 0;
            reader->at = 0;
            reader->end = (size_t)got;
        }
        char byte = reader->bytes[reader->at++];
        if (byte == '\n') break;
        if (length < LINE - 1) line[length++] = byte;
    }
    line[length] = '\0';
    return 1;
}

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

/* "from-to rights offset device inode   name" */
static int count_line(struct count *count, const char *line)
{
    char *rest;
    uintptr_t from = (uintptr_t)strtoull(line, &rest, 16);
    if (*rest != '-') return 0;
    uintptr_t to = (uintptr_t)strtoull(rest + 1, &rest, 16);
    if (*rest != ' ' || strlen(rest) < 6) return 0;
    const char *rights = rest + 1;
    const char *name = rights + 4;
    for (int field = 0; field < 3; field++) {
        name += strspn(name, " ");
        name += strcspn(name, " ");
    }
    name += strspn(name, " ");
    if (rights[3] != 'p' || memcmp(rights, "---", 3) == 0 || strncmp(name, "[v", 2) == 0) return 0;
    return to - from > LARGEST ? 0 : count_mapping(count, from, to, use_of(rights, name));
}

static int count_all(struct count *count)
{
    char line[LINE];
    int more;
    while ((more = next_line(&maps, line)) == 1)
        if (count_line(count, line) == -1) return -1;
    return more;
}

int pando_pages_count(const uintptr_t *heap, size_t heap_count, uint64_t bytes[PANDO_USES])
{
    memset(bytes, 0, sizeof(*bytes) * PANDO_USES);
    struct count count = { .heap = heap, .heap_count = heap_count, .bytes = bytes };
    count.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (count.pagemap == -1) return -1;
    maps = (struct reader){ .fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };
    int result = maps.fd == -1 ? -1 : count_all(&count);
    int saved = errno;
    if (maps.fd != -1) close(maps.fd);
    close(count.pagemap);
    errno = saved;
    return result;
}
