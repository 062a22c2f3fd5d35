/* Which line of the application an object was made for: a table from addresses to places. No Ruby in it. */
#ifndef PANDO_ORIGINS_H
#define PANDO_ORIGINS_H

#include <stddef.h>
#include <stdint.h>

struct pando_place {
    const char *path; /* lives as long as the process */
    int line;
};

/* A copy of this path that stays. NULL: out of memory. */
const char *pando_origins_intern(const char *path, size_t length);

/* Remembers the place of what is at this address now; a NULL path: it has none. -1: out of memory. */
int pando_origins_put(uintptr_t address, struct pando_place place);

/* Its place; the path is NULL where there is none. */
struct pando_place pando_origins_get(uintptr_t address);

/* Forgets every address, but no path. */
void pando_origins_clear(void);

#endif
