/* Buffers in a few sizes, with one bound on all of them together. Used by the reactor. The small ones are cut from
 * regions, so that memory goes back to the system when all pieces of a region are returned; each large one is a
 * mapping of its own. */
#ifndef PANDO_HTTP_REACTOR_POOL_H
#define PANDO_HTTP_REACTOR_POOL_H

#include "reactor_list.h"

#include <stdint.h>

#define PANDO_POOL_CLASSES 7u           /* 4 KiB, 16 KiB, and so on by four */
#define PANDO_POOL_CUT 3u               /* the classes cut from regions */

struct pando_pool_region;

struct pando_pool {
    struct pando_node roomy[PANDO_POOL_CUT]; /* regions with a free piece, by class */
    struct pando_pool_region *spare;    /* regions without a lent piece, for any class */
    uint32_t spares;
    uint64_t lent;                      /* bytes */
    uint64_t most;                      /* limit of `lent` and `elsewhere` together */
    uint64_t elsewhere;                 /* bytes held outside the pool that count too */
};

struct pando_buffer {
    char *data;                         /* NULL: none */
    uint32_t capacity;
};

void pando_reactor_pool_init(struct pando_pool *pool, uint64_t most);
/* Makes a buffer of at least so many bytes, and keeps its first `used` bytes. 0, or -1 and the buffer as it was:
 * ENOMEM; ENOBUFS, because the bound is reached. Larger buffers than the smallest have a lower bound. */
int pando_reactor_pool_reserve(struct pando_pool *pool, struct pando_buffer *buffer, uint32_t bytes, uint32_t used);
/* The same without a bound. */
int pando_reactor_pool_insist(struct pando_pool *pool, struct pando_buffer *buffer, uint32_t bytes, uint32_t used);
/* Whether so many bytes more are below the bound for large buffers. */
int pando_reactor_pool_allows(const struct pando_pool *pool, uint64_t bytes);
void pando_reactor_pool_return(struct pando_pool *pool, struct pando_buffer *buffer);
/* When all buffers are returned. */
void pando_reactor_pool_drop(struct pando_pool *pool);

#endif
