/* Reads /proc/self/maps, see maps.h. Runs in any process. */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST (UINT64_C(64) << 30)

int pando_maps_open(struct pando_maps *maps)
{
    maps->at = maps->end = 0;
    maps->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    return maps->fd == -1 ? -1 : 0;
}

void pando_maps_close(struct pando_maps *maps)
{
    int saved = errno;
    if (maps->fd != -1) close(maps->fd);
    maps->fd = -1;
    errno = saved;
}

static ssize_t read_again(int fd, void *to, size_t size)
{
    ssize_t got;
    do got = read(fd, to, size);
    while (got == -1 && errno == EINTR);
    return got;
}

/* Reads the next line, truncated if necessary. 1, 0 at the end, -1. */
static int next_line(struct pando_maps *maps)
{
    size_t length = 0;
    for (;;) {
        if (maps->at == maps->end) {
            ssize_t got = read_again(maps->fd, maps->bytes, sizeof(maps->bytes));
            if (got == -1) return -1;
            if (got == 0) return 0;
            maps->at = 0;
            maps->end = (size_t)got;
        }
        char byte = maps->bytes[maps->at++];
        if (byte == '\n') break;
        if (length < sizeof(maps->line) - 1) maps->line[length++] = byte;
    }
    maps->line[length] = '\0';
    return 1;
}

/* "from-to rights offset device inode   name" */
static bool parse(const char *line, struct pando_mapping *mapping)
{
    char *rest;
    mapping->from = (uintptr_t)strtoull(line, &rest, 16);
    if (*rest != '-') return false;
    mapping->to = (uintptr_t)strtoull(rest + 1, &rest, 16);
    if (*rest != ' ' || strlen(rest) < 6) return false;
    mapping->rights = rest + 1;
    const char *name = mapping->rights + 4;
    for (int field = 0; field < 3; field++) {
        name += strspn(name, " ");
        name += strcspn(name, " ");
    }
    mapping->name = name + strspn(name, " ");
    return true;
}

int pando_maps_next(struct pando_maps *maps, struct pando_mapping *mapping)
{
    int more;
    while ((more = next_line(maps)) == 1)
        if (parse(maps->line, mapping)) return 1;
    return more;
}

/* "[vdso]" and the like. */
static bool of_the_kernel(const struct pando_mapping *mapping)
{
    return strncmp(mapping->name, "[v", 2) == 0;
}

bool pando_mapping_used(const struct pando_mapping *mapping)
{
    return memcmp(mapping->rights, "---", 3) != 0 && !of_the_kernel(mapping) && mapping->to - mapping->from <= LARGEST;
}

bool pando_mapping_private(const struct pando_mapping *mapping)
{
    return mapping->rights[3] == 'p';
}

/* No process can write to the kernel's own mappings. */
bool pando_mapping_anonymous(const struct pando_mapping *mapping)
{
    return pando_mapping_private(mapping) && *mapping->name != '/' && !of_the_kernel(mapping);
}

bool pando_mapping_writable(const struct pando_mapping *mapping)
{
    return mapping->rights[1] == 'w';
}

bool pando_mapping_code(const struct pando_mapping *mapping)
{
    return *mapping->name == '/' && memcmp(mapping->rights, "r-xp", 4) == 0;
}
