/*
 * Records what malloc has handed out, and by which calls, for writers.rb. Preloaded into a process and all that it forks:
 *
 *     cc -O2 -shared -fPIC -Wall -Wextra -D_GNU_SOURCE -o blocks.so blocks.c
 *     LD_PRELOAD=$PWD/blocks.so:/usr/lib/x86_64-linux-gnu/libjemalloc.so.2 ...
 *
 * Two tables at fixed addresses, read from outside through /proc/PID/mem: the blocks that are in use, by address, and
 * the callers, each once. A program runs at half its speed and takes more memory: for who writes, not for how much
 * there is.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCKS ((struct block *)0x600000000000)
#define CALLERS ((struct callers *)0x610000000000)
#define BLOCKS_AT_MOST (1u << 23)
#define CALLERS_AT_MOST (1u << 17)
#define DEPTH 10
#define OWN_FRAMES 2
#define GONE 1 /* the address of a block that was freed: a search goes on behind it */

struct block {
    uint64_t address;
    uint32_t size;
    uint32_t callers;
};

struct callers {
    uint64_t hash;
    uint64_t addresses[DEPTH];
    uint64_t unused;
};

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);

static int ready;
static int lock;
static __thread int recording __attribute__((tls_model("initial-exec")));

/* What dlsym asks for while it looks for the real one. */
static char early[65536];
static size_t early_used;

static void *early_block(size_t size)
{
    void *block = early + early_used;

    early_used += (size + 15) & ~(size_t)15;
    return early_used <= sizeof early ? block : NULL;
}

static int is_early(const void *block)
{
    return (const char *)block >= early && (const char *)block < early + sizeof early;
}

static int map(void *place, size_t size)
{
    return mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                -1, 0) == place;
}

static void begin(void)
{
    static int begun;

    if (begun)
        return;
    begun = 1;
    next_calloc = dlsym(RTLD_NEXT, "calloc");
    next_malloc = dlsym(RTLD_NEXT, "malloc");
    next_realloc = dlsym(RTLD_NEXT, "realloc");
    next_free = dlsym(RTLD_NEXT, "free");
    next_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    next_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    ready = map(BLOCKS, BLOCKS_AT_MOST * sizeof(struct block)) && map(CALLERS, CALLERS_AT_MOST * sizeof(struct callers));
}

static void take(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        ;
}

static void give(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static uint32_t caller(void *const *frames, int depth)
{
    uint64_t hash = 1469598103934665603ull;
    uint32_t at;

    for (int frame = OWN_FRAMES; frame < depth; frame++)
        hash = (hash ^ (uint64_t)(uintptr_t)frames[frame]) * 1099511628211ull;
    hash |= 1;
    at = (uint32_t)(hash >> 40) & (CALLERS_AT_MOST - 1);
    for (int tries = 0; CALLERS[at].hash && CALLERS[at].hash != hash && tries < 4096; tries++)
        at = (at + 1) & (CALLERS_AT_MOST - 1);
    if (!CALLERS[at].hash) {
        CALLERS[at].hash = hash;
        for (int frame = OWN_FRAMES; frame < depth; frame++)
            CALLERS[at].addresses[frame - OWN_FRAMES] = (uint64_t)(uintptr_t)frames[frame];
    }
    return at;
}

static uint32_t slot(uint64_t address)
{
    return (uint32_t)(((address >> 4) * 0x9E3779B97F4A7C15ull) >> 41) & (BLOCKS_AT_MOST - 1);
}

static void put(uint64_t address, size_t size, uint32_t callers)
{
    uint32_t at = slot(address), free_one = BLOCKS_AT_MOST;

    for (uint32_t tries = 0; tries < BLOCKS_AT_MOST; tries++, at = (at + 1) & (BLOCKS_AT_MOST - 1)) {
        if (BLOCKS[at].address == GONE && free_one == BLOCKS_AT_MOST)
            free_one = at;
        if (BLOCKS[at].address == address || !BLOCKS[at].address)
            break;
    }
    if (BLOCKS[at].address != address && free_one != BLOCKS_AT_MOST)
        at = free_one;
    BLOCKS[at] = (struct block){address, size > UINT32_MAX ? UINT32_MAX : (uint32_t)size, callers};
}

static void *record(void *block, size_t size)
{
    void *frames[DEPTH + OWN_FRAMES];
    int depth;

    if (!block || !ready || recording)
        return block;
    recording = 1;
    depth = backtrace(frames, DEPTH + OWN_FRAMES);
    take();
    put((uint64_t)(uintptr_t)block, size, caller(frames, depth));
    give();
    recording = 0;
    return block;
}

static void forget(const void *block)
{
    uint64_t address = (uint64_t)(uintptr_t)block;
    uint32_t at = slot(address);

    if (!block || !ready || recording)
        return;
    take();
    for (uint32_t tries = 0; tries < BLOCKS_AT_MOST; tries++, at = (at + 1) & (BLOCKS_AT_MOST - 1)) {
        if (BLOCKS[at].address == address)
            BLOCKS[at].address = GONE;
        else if (BLOCKS[at].address)
            continue;
        break;
    }
    give();
}

void *malloc(size_t size)
{
    begin();
    return next_malloc ? record(next_malloc(size), size) : early_block(size);
}

void *calloc(size_t count, size_t size)
{
    begin();
    return next_calloc ? record(next_calloc(count, size), count * size) : early_block(count * size);
}

void *realloc(void *block, size_t size)
{
    void *moved;

    begin();
    if (is_early(block)) {
        size_t left = (size_t)(early + sizeof early - (char *)block);

        moved = malloc(size);
        return moved ? memcpy(moved, block, size < left ? size : left) : NULL;
    }
    forget(block);
    return record(next_realloc(block, size), size);
}

void free(void *block)
{
    begin();
    if (!block || is_early(block))
        return;
    forget(block);
    next_free(block);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    int error;

    begin();
    error = next_posix_memalign(block, alignment, size);
    if (!error)
        record(*block, size);
    return error;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    begin();
    return record(next_aligned_alloc(alignment, size), size);
}

/* The unwinder allocates when it is first used. */
__attribute__((constructor)) static void start(void)
{
    void *frames[1];

    begin();
    recording = 1;
    backtrace(frames, 1);
    recording = 0;
}
