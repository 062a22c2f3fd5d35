/* Buffers of a few sizes. A buffer that is given back is kept for the next
 * taker, up to a number that depends on its size. */
#include "reactor_pool.h"

#include <stdlib.h>
#include <string.h>

#define SMALLEST 4096u
#define KEPT_BYTES (4u << 20) /* of each size */

struct pando_pool_free {
    struct pando_pool_free *next;
};

static uint32_t class_bytes(uint32_t class)
{
    return SMALLEST << (2 * class);
}

static uint32_t class_for(uint32_t bytes)
{
    uint32_t class = 0;
    while (class < PANDO_POOL_CLASSES && class_bytes(class) < bytes)
        class++;
    return class;
}

static char *take(struct pando_pool *pool, uint32_t class)
{
    struct pando_pool_free *first = pool->free[class];
    char *data = first ? (char *)first : malloc(class_bytes(class));
    if (first) {
        pool->free[class] = first->next;
        pool->kept[class]--;
    }
    if (data)
        pool->lent += class_bytes(class);
    return data;
}

int pando_reactor_pool_reserve(struct pando_pool *pool, struct pando_buffer *buffer, uint32_t bytes, uint32_t used)
{
    if (buffer->data && buffer->capacity >= bytes)
        return 0;
    uint32_t class = class_for(bytes);
    if (class == PANDO_POOL_CLASSES)
        return -1;
    struct pando_buffer larger = {.data = take(pool, class), .capacity = class_bytes(class)};
    if (!larger.data)
        return -1;
    if (buffer->data) {
        memcpy(larger.data, buffer->data, used);
        pando_reactor_pool_return(pool, buffer);
    }
    *buffer = larger;
    return 0;
}

void pando_reactor_pool_return(struct pando_pool *pool, struct pando_buffer *buffer)
{
    if (!buffer->data)
        return;
    uint32_t class = class_for(buffer->capacity);
    pool->lent -= class_bytes(class);
    if (pool->kept[class] < KEPT_BYTES / class_bytes(class)) {
        struct pando_pool_free *first = (struct pando_pool_free *)(void *)buffer->data;
        first->next = pool->free[class];
        pool->free[class] = first;
        pool->kept[class]++;
    } else {
        free(buffer->data);
    }
    buffer->data = NULL;
    buffer->capacity = 0;
}

void pando_reactor_pool_drop(struct pando_pool *pool)
{
    for (uint32_t class = 0; class < PANDO_POOL_CLASSES; class++)
        while (pool->free[class]) {
            struct pando_pool_free *first = pool->free[class];
            pool->free[class] = first->next;
            free(first);
        }
}
