/* Iterates over the mappings of this process in ascending order, from /proc/self/maps (proc(5)). Runs in any process.
 * Allocates nothing. */
#ifndef PANDO_SYS_MAPS_H
#define PANDO_SYS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_MAPS_LINE 512 /* of a line; the rest can only be the end of a long path */

struct pando_maps {
    int fd;
    size_t at, end;
    char bytes[65536];
    char line[PANDO_MAPS_LINE];
};

struct pando_mapping {
    uintptr_t from, to;
    const char *rights; /* four characters, as in "rw-p" */
    const char *name;   /* "/path", "[heap]", or "" if it has none; valid until the next call */
};

/* 0; -1 and errno. */
int pando_maps_open(struct pando_maps *maps);
/* 1; 0: there are no more; -1 and errno. Skips lines that it cannot parse. */
int pando_maps_next(struct pando_maps *maps, struct pando_mapping *mapping);
/* Leaves errno unchanged. */
void pando_maps_close(struct pando_maps *maps);

/* Whether pages of it may belong to the process: it is accessible, not the kernel's own, and not merely reserved
 * address space (more than 64 GiB). */
bool pando_mapping_used(const struct pando_mapping *mapping);
bool pando_mapping_private(const struct pando_mapping *mapping);
/* Private, and a write creates a page that belongs to no file. */
bool pando_mapping_anonymous(const struct pando_mapping *mapping);
bool pando_mapping_writable(const struct pando_mapping *mapping);
/* Code of a program or library: private, of a file, readable and executable, not writable. */
bool pando_mapping_code(const struct pando_mapping *mapping);

#endif
