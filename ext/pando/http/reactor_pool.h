/* Buffers in a few sizes, kept on free lists. */
#ifndef PANDO_HTTP_REACTOR_POOL_H
#define PANDO_HTTP_REACTOR_POOL_H

#include <stdint.h>

#define PANDO_POOL_CLASSES 7u           /* 4 KiB, and four times that, and so on */

struct pando_pool {
    struct pando_pool_free *free[PANDO_POOL_CLASSES];
    uint32_t kept[PANDO_POOL_CLASSES];
    uint64_t lent;                      /* bytes */
};

struct pando_buffer {
    char *data;                         /* NULL: none */
    uint32_t capacity;
};

/* At least so many bytes; what was in it (the first `used` bytes) is kept. 0, or -1: no memory, buffer as it was. */
int pando_reactor_pool_reserve(struct pando_pool *pool, struct pando_buffer *buffer, uint32_t bytes, uint32_t used);
void pando_reactor_pool_return(struct pando_pool *pool, struct pando_buffer *buffer);
void pando_reactor_pool_drop(struct pando_pool *pool);

#endif
