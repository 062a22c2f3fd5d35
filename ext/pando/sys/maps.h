/* The mappings of this process, one after another in rising order: /proc/self/maps (proc(5)). Allocates nothing. */
#ifndef PANDO_SYS_MAPS_H
#define PANDO_SYS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_MAPS_LINE 512 /* of a mapping; what is behind is the rest of a long path */

struct pando_maps {
    int fd;
    size_t at, end;
    char bytes[65536];
    char line[PANDO_MAPS_LINE];
};

struct pando_mapping {
    uintptr_t from, to;
    const char *rights; /* four characters, as in "rw-p" */
    const char *name;   /* "/path", "[heap]", "" where it has none; until the next one is asked for */
};

/* 0; -1 and errno. */
int pando_maps_open(struct pando_maps *maps);
/* 1; 0: there are no more; -1 and errno. What is no line of maps is passed over. */
int pando_maps_next(struct pando_maps *maps, struct pando_mapping *mapping);
/* Leaves errno as it is. */
void pando_maps_close(struct pando_maps *maps);

/* Pages of it may be the process's: it can be accessed, is not the kernel's own, nor address space that somebody has
 * set aside (more than 64 GiB). */
bool pando_mapping_used(const struct pando_mapping *mapping);
bool pando_mapping_private(const struct pando_mapping *mapping);
/* Private, and a write makes it a page of no file. */
bool pando_mapping_anonymous(const struct pando_mapping *mapping);
bool pando_mapping_writable(const struct pando_mapping *mapping);

#endif
