/* The table of object origins, see origins.h. Runs in processes that `pando doctor` starts. */
#include "origins.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 4096 /* a power of two, like every later size */

struct entry {
    uintptr_t address; /* 0: free */
    struct pando_place place;
};

/* Entries are never removed: a freed object leaves a stale one, which the next object at that address replaces. */
static struct entry *entries;
static size_t size, used;

static char **paths; /* also open addressing */
static size_t paths_size, paths_used;

static size_t scatter(uintptr_t address)
{
    return (size_t)((uint64_t)(address >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 20);
}

static struct entry *entry_of(struct entry *table, size_t table_size, uintptr_t address)
{
    size_t at = scatter(address) & (table_size - 1);
    while (table[at].address != 0 && table[at].address != address) at = (at + 1) & (table_size - 1);
    return &table[at];
}

static bool grow(void)
{
    size_t wider_size = size ? size * 2 : FIRST_SIZE;
    struct entry *wider = calloc(wider_size, sizeof(*wider));
    if (!wider) return false;
    for (size_t at = 0; at < size; at++)
        if (entries[at].address) *entry_of(wider, wider_size, entries[at].address) = entries[at];
    free(entries);
    entries = wider;
    size = wider_size;
    return true;
}

int pando_origins_put(uintptr_t address, struct pando_place place)
{
    if (used * 4 >= size * 3 && !grow()) return -1;
    struct entry *entry = entry_of(entries, size, address);
    if (!entry->address) {
        if (!place.path) return 0;
        used++;
    }
    entry->address = address;
    entry->place = place;
    return 0;
}

struct pando_place pando_origins_get(uintptr_t address)
{
    struct pando_place nowhere = { NULL, 0 };
    if (!size) return nowhere;
    struct entry *entry = entry_of(entries, size, address);
    return entry->address ? entry->place : nowhere;
}

void pando_origins_clear(void)
{
    free(entries);
    entries = NULL;
    size = used = 0;
}

static size_t hash_of(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t at = 0; at < length; at++) hash = (hash ^ (unsigned char)text[at]) * UINT64_C(0x100000001B3);
    return (size_t)hash;
}

static char **path_of(char **table, size_t table_size, const char *path, size_t length)
{
    size_t at = hash_of(path, length) & (table_size - 1);
    while (table[at] && (strlen(table[at]) != length || memcmp(table[at], path, length) != 0))
        at = (at + 1) & (table_size - 1);
    return &table[at];
}

static bool grow_paths(void)
{
    size_t wider_size = paths_size ? paths_size * 2 : FIRST_SIZE;
    char **wider = calloc(wider_size, sizeof(*wider));
    if (!wider) return false;
    for (size_t at = 0; at < paths_size; at++)
        if (paths[at]) *path_of(wider, wider_size, paths[at], strlen(paths[at])) = paths[at];
    free(paths);
    paths = wider;
    paths_size = wider_size;
    return true;
}

const char *pando_origins_intern(const char *path, size_t length)
{
    if (memchr(path, '\0', length)) return NULL;
    if (paths_used * 4 >= paths_size * 3 && !grow_paths()) return NULL;
    char **found = path_of(paths, paths_size, path, length);
    if (!*found) {
        *found = strndup(path, length);
        if (*found) paths_used++;
    }
    return *found;
}
