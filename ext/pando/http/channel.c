/* The channel's shared mapping, see channel.h. Runs in the monitor, the reactor and workers. */
#include "channel.h"

#include "sys/sealed.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC 0x70616e646f633038ULL /* "pandoc08": includes the layout version */
#define BYTES sizeof(struct pando_channel_shared)

static int map(struct pando_channel *channel, int fd, int writable)
{
    struct pando_channel_shared *shared = pando_sealed_map(fd, BYTES, writable);
    if (!shared) return -1;
    if (shared->magic != MAGIC) {
        munmap(shared, BYTES);
        return errno = EINVAL, -1;
    }
    channel->shared = shared;
    channel->fd = fd;
    return 0;
}

int pando_channel_create(struct pando_channel *channel)
{
    const uint64_t magic = MAGIC;
    int fd = pando_sealed_create("pando-channel", BYTES, &magic, sizeof(magic));
    if (fd == -1) return -1;
    if (map(channel, fd, 0) == 0) return 0;
    int failure = errno;
    close(fd);
    errno = failure;
    return -1;
}

int pando_channel_attach(struct pando_channel *channel, int fd, int writable)
{
    return map(channel, fd, writable);
}

void pando_channel_unmap(struct pando_channel *channel)
{
    if (channel->shared) munmap(channel->shared, BYTES);
    channel->shared = NULL;
}

uint64_t pando_channel_new_epoch(struct pando_channel *channel)
{
    struct pando_channel_shared *shared = channel->shared;
    uint64_t sleeps = atomic_load(&shared->sleeps);
    atomic_store(&shared->sleeps, sleeps + (sleeps & 1));
    atomic_store(&shared->draining, 0);
#define RESET(name) pando_stat_set(&stats->name, 0);
    for (uint32_t pool = 0; pool < PANDO_REACTOR_POOLS; pool++) {
        struct pando_pool_stats *stats = &shared->stats.pools[pool];
        atomic_store(&shared->waiting[pool], 0);
        PANDO_STATS_POOL_GAUGES(RESET)
    }
    struct pando_stats *stats = &shared->stats;
    PANDO_STATS_GAUGES(RESET)
#undef RESET
    return atomic_fetch_add(&shared->epoch, 1) + 1;
}

void pando_channel_sleep(struct pando_channel *channel)
{
    atomic_fetch_add(&channel->shared->sleeps, 1);
    atomic_thread_fence(memory_order_seq_cst);
}

void pando_channel_awake(struct pando_channel *channel)
{
    atomic_fetch_add(&channel->shared->sleeps, 1);
}

int pando_channel_rouse_reactor(const struct pando_channel *channel, uint64_t *rung)
{
    uint64_t sleeps = atomic_load(&channel->shared->sleeps);
    if (!(sleeps & 1) || sleeps == *rung) return 0;
    *rung = sleeps;
    return 1;
}
