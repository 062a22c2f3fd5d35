/* Which line of the application created an object: a table from addresses to places. Used in processes that `pando
 * doctor` starts. No Ruby in it. */
#ifndef PANDO_ORIGINS_H
#define PANDO_ORIGINS_H

#include <stddef.h>
#include <stdint.h>

struct pando_place {
    const char *path; /* lives as long as the process */
    int line;
};

/* A permanent copy of this path. NULL: out of memory. */
const char *pando_origins_intern(const char *path, size_t length);

/* Records the place of the object now at this address; a NULL path: it has none. -1: out of memory. */
int pando_origins_put(uintptr_t address, struct pando_place place);

/* Its place; the path is NULL if it has none. */
struct pando_place pando_origins_get(uintptr_t address);

/* Forgets every address, but keeps the paths. */
void pando_origins_clear(void);

#endif
