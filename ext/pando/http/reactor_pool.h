/* Buffers in a few sizes. The small ones are cut from regions, so that memory
 * goes back to the system when nobody has a piece of one any more; each large
 * one is a mapping of its own. All of them together have a bound. */
#ifndef PANDO_HTTP_REACTOR_POOL_H
#define PANDO_HTTP_REACTOR_POOL_H

#include "reactor_list.h"

#include <stdint.h>

#define PANDO_POOL_CLASSES 7u           /* 4 KiB, and four times that, and so on */
#define PANDO_POOL_CUT 3u               /* those that are cut from regions */

struct pando_pool_region;

struct pando_pool {
    struct pando_node roomy[PANDO_POOL_CUT]; /* regions that have a piece left, by class */
    struct pando_pool_region *spare;    /* of which nobody has a piece, for any class */
    uint32_t spares;
    uint64_t lent;                      /* bytes */
    uint64_t most;                      /* that may be lent, with those elsewhere */
    uint64_t elsewhere;                 /* bytes that others have and that count, too */
};

struct pando_buffer {
    char *data;                         /* NULL: none */
    uint32_t capacity;
};

void pando_reactor_pool_init(struct pando_pool *pool, uint64_t most);
/* At least so many bytes; what was in it (the first `used` bytes) is kept. 0, or -1, buffer as it was: ENOMEM, or
 * ENOBUFS, for there would be too many. What is larger than the smallest meets its bound earlier. */
int pando_reactor_pool_reserve(struct pando_pool *pool, struct pando_buffer *buffer, uint32_t bytes, uint32_t used);
/* The same without a bound. */
int pando_reactor_pool_insist(struct pando_pool *pool, struct pando_buffer *buffer, uint32_t bytes, uint32_t used);
/* Whether so many bytes more are below the bound of what is large. */
int pando_reactor_pool_allows(const struct pando_pool *pool, uint64_t bytes);
void pando_reactor_pool_return(struct pando_pool *pool, struct pando_buffer *buffer);
/* When all buffers are back. */
void pando_reactor_pool_drop(struct pando_pool *pool);

#endif
