/* The buffer pool, see reactor_pool.h. Runs in the reactor. */
#include "reactor_pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define SMALLEST 4096u
#define REGION (256u << 10) /* bytes, and its alignment */
#define SPARES 16u          /* empty regions kept: 4 MiB */

/* At the beginning of each region, in place of its first piece. */
struct pando_pool_region {
    struct pando_node node;             /* in the pool's list, unless all pieces are lent */
    struct pando_pool_region *next;     /* in the spare list */
    struct pando_pool_piece *free;
    uint32_t class, lent;
    uint32_t cut;                       /* pieces ever lent; the ones behind were never touched */
};

struct pando_pool_piece {
    struct pando_pool_piece *next;
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

void pando_reactor_pool_init(struct pando_pool *pool, uint64_t most)
{
    *pool = (struct pando_pool){.most = most};
    for (uint32_t class = 0; class < PANDO_POOL_CUT; class++)
        pando_list_init(&pool->roomy[class]);
}

static void *map(size_t bytes)
{
    void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return place == MAP_FAILED ? NULL : place;
}

/* --- regions --- */

static struct pando_pool_region *map_region(void)
{
    char *place = map(2 * REGION);
    if (!place)
        return NULL;
    char *region = (char *)(((uintptr_t)place + REGION - 1) & ~(uintptr_t)(REGION - 1));
    if (region > place)
        munmap(place, (size_t)(region - place));
    if (region + REGION < place + 2 * REGION)
        munmap(region + REGION, (size_t)(place + REGION - region));
    return (struct pando_pool_region *)(void *)region;
}

static struct pando_pool_region *open_region(struct pando_pool *pool, uint32_t class)
{
    struct pando_pool_region *region = pool->spare;
    if (region) {
        pool->spare = region->next;
        pool->spares--;
    } else {
        region = map_region();
    }
    if (!region)
        return NULL;
    *region = (struct pando_pool_region){.class = class};
    pando_list_append(&pool->roomy[class], &region->node);
    return region;
}

static void close_region(struct pando_pool *pool, struct pando_pool_region *region)
{
    pando_list_remove(&region->node);
    if (pool->spares == SPARES) {
        munmap(region, REGION);
        return;
    }
    region->next = pool->spare;
    pool->spare = region;
    pool->spares++;
}

static uint32_t pieces(uint32_t class)
{
    return REGION / class_bytes(class) - 1;
}

static char *cut(struct pando_pool *pool, uint32_t class)
{
    struct pando_node *roomy = &pool->roomy[class];
    struct pando_pool_region *region = pando_list_empty(roomy)
                                           ? open_region(pool, class)
                                           : pando_owner(roomy->next, struct pando_pool_region, node);
    if (!region)
        return NULL;
    char *piece = (char *)region->free;
    if (piece)
        region->free = region->free->next;
    else
        piece = (char *)region + (size_t)++region->cut * class_bytes(class);
    if (++region->lent == pieces(class))
        pando_list_remove(&region->node);
    return piece;
}

static void put_back(struct pando_pool *pool, char *data)
{
    struct pando_pool_region *region = (struct pando_pool_region *)((uintptr_t)data & ~(uintptr_t)(REGION - 1));
    struct pando_pool_piece *piece = (struct pando_pool_piece *)(void *)data;
    if (region->lent == pieces(region->class))
        pando_list_append(&pool->roomy[region->class], &region->node);
    piece->next = region->free;
    region->free = piece;
    if (--region->lent == 0)
        close_region(pool, region);
}

/* --- buffers --- */

int pando_reactor_pool_insist(struct pando_pool *pool, struct pando_buffer *buffer, uint32_t bytes, uint32_t used)
{
    if (buffer->data && buffer->capacity >= bytes)
        return 0;
    uint32_t class = class_for(bytes);
    if (class == PANDO_POOL_CLASSES)
        return errno = ENOMEM, -1;
    struct pando_buffer larger = {.data = class < PANDO_POOL_CUT ? cut(pool, class) : map(class_bytes(class)),
                                  .capacity = class_bytes(class)};
    if (!larger.data)
        return errno = ENOMEM, -1;
    pool->lent += larger.capacity;
    if (buffer->data) {
        memcpy(larger.data, buffer->data, used);
        pando_reactor_pool_return(pool, buffer);
    }
    *buffer = larger;
    return 0;
}

static int below(const struct pando_pool *pool, uint64_t bytes, uint64_t most)
{
    uint64_t used = pool->lent + pool->elsewhere;
    return used <= most && bytes <= most - used;
}

/* A quarter is kept for small buffers. */
int pando_reactor_pool_allows(const struct pando_pool *pool, uint64_t bytes)
{
    return below(pool, bytes, pool->most - pool->most / 4);
}

int pando_reactor_pool_reserve(struct pando_pool *pool, struct pando_buffer *buffer, uint32_t bytes, uint32_t used)
{
    if (buffer->data && buffer->capacity >= bytes)
        return 0;
    int allowed = bytes <= SMALLEST ? below(pool, SMALLEST, pool->most) : pando_reactor_pool_allows(pool, bytes);
    if (!allowed)
        return errno = ENOBUFS, -1;
    return pando_reactor_pool_insist(pool, buffer, bytes, used);
}

void pando_reactor_pool_return(struct pando_pool *pool, struct pando_buffer *buffer)
{
    if (!buffer->data)
        return;
    pool->lent -= buffer->capacity;
    if (buffer->capacity < class_bytes(PANDO_POOL_CUT))
        put_back(pool, buffer->data);
    else
        munmap(buffer->data, buffer->capacity);
    buffer->data = NULL;
    buffer->capacity = 0;
}

void pando_reactor_pool_drop(struct pando_pool *pool)
{
    while (pool->spare) {
        struct pando_pool_region *region = pool->spare;
        pool->spare = region->next;
        munmap(region, REGION);
    }
    pool->spares = 0;
}
