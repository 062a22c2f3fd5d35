#include "channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x70616e646f633033ULL /* "pandoc03": layout version included */
#define QUEUE_MASK (PANDO_CHANNEL_QUEUE - 1)
#define NO_SLOT UINT32_MAX

_Static_assert((PANDO_CHANNEL_QUEUE & QUEUE_MASK) == 0, "a power of two");
_Static_assert(PANDO_CHANNEL_QUEUE >= PANDO_CHANNEL_SLOTS, "every slot can be queued");

/* --- the mapping --- */

static int map(struct pando_channel *channel, int fd)
{
    void *mapping = mmap(NULL, sizeof(struct pando_channel_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapping == MAP_FAILED) return -1;
    channel->shared = mapping;
    channel->turns = 0;
    channel->fd = fd;
    return 0;
}

static int prepare(struct pando_channel *channel, int fd)
{
    /* Sparse: what no worker uses costs nothing. */
    if (ftruncate(fd, (off_t)sizeof(struct pando_channel_shared)) == -1) return -1;
    /* Nobody can shrink it under us (SIGBUS). */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == -1) return -1;
    if (map(channel, fd) == -1) return -1;
    channel->shared->magic = MAGIC;
    return 0;
}

int pando_channel_create(struct pando_channel *channel)
{
    int fd = memfd_create("pando-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd == -1) return -1;
    if (prepare(channel, fd) == 0) return 0;
    int failure = errno;
    close(fd);
    errno = failure;
    return -1;
}

int pando_channel_attach(struct pando_channel *channel, int fd)
{
    struct stat status;
    if (fstat(fd, &status) == -1) return -1;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals == -1 || !(seals & F_SEAL_SHRINK)) return errno = EINVAL, -1;
    if (status.st_size != (off_t)sizeof(struct pando_channel_shared)) return errno = EINVAL, -1;
    if (map(channel, fd) == -1) return -1;
    if (channel->shared->magic == MAGIC) return 0;
    pando_channel_unmap(channel);
    channel->fd = -1; /* still the caller's */
    errno = EINVAL;
    return -1;
}

void pando_channel_unmap(struct pando_channel *channel)
{
    if (channel->shared) munmap(channel->shared, sizeof(struct pando_channel_shared));
    channel->shared = NULL;
}

/* --- the queue ---
 *
 * A cell of the queue is an invitation, the claim in the slot is the fact: who
 * moves a claim from OFFERED to his lane has the request, once and alone. `taken`
 * only says where to begin to look. Everybody moves it past a turn that is no
 * longer offered, so that nobody waits for one who died between claim and step.
 * A claim names its turn: a compare-and-swap that comes late finds another. */

static uint64_t claim_of(uint32_t turn, uint32_t who)
{
    return (uint64_t)turn << 32 | who;
}

/* Only if nobody else did: true or not, it has moved on. */
static void pass(struct pando_channel_shared *shared, uint64_t turn)
{
    atomic_compare_exchange_strong(&shared->taken, &turn, turn + 1);
}

/* The oldest request on offer: its slot and turn, or NO_SLOT. It may be gone by the time the caller looks. */
static uint32_t oldest(struct pando_channel_shared *shared, uint32_t *turn)
{
    for (;;) {
        uint64_t next = atomic_load(&shared->taken), end = atomic_load(&shared->published);
        if (next == end) return NO_SLOT;
        uint64_t cell = atomic_load(&shared->queue[next & QUEUE_MASK]);
        uint32_t slot = (uint32_t)cell;
        if (atomic_load(&shared->taken) != next) continue; /* others were faster, and the cell may be another turn's */
        if (end - next > PANDO_CHANNEL_QUEUE) return NO_SLOT; /* damaged: the reactor will repair it */

        /* Another turn here: only in a queue that was damaged, for this turn was published and is not passed. */
        *turn = (uint32_t)(cell >> 32);
        if (*turn == (uint32_t)next && slot < PANDO_CHANNEL_SLOTS &&
            atomic_load(&shared->slots[slot].claim) == claim_of(*turn, PANDO_CLAIM_OFFERED))
            return slot;
        pass(shared, next);
    }
}

int pando_channel_take(struct pando_channel *channel, uint32_t lane, uint32_t *turn)
{
    struct pando_channel_shared *shared = channel->shared;
    uint32_t slot;
    while ((slot = oldest(shared, turn)) != NO_SLOT) {
        uint64_t offered = claim_of(*turn, PANDO_CLAIM_OFFERED);
        if (!atomic_compare_exchange_strong(&shared->slots[slot].claim, &offered, claim_of(*turn, lane)))
            continue;
        /* The others would do it, at the price of a look each. Its 64 bits are near: taken is never a turn behind. */
        uint64_t next = atomic_load(&shared->taken);
        if ((uint32_t)next == *turn) pass(shared, next);
        return (int)slot;
    }
    return -1;
}

int pando_channel_offers(struct pando_channel *channel)
{
    uint32_t turn;
    return oldest(channel->shared, &turn) != NO_SLOT;
}

uint32_t pando_channel_waiting(const struct pando_channel *channel)
{
    uint64_t taken = atomic_load(&channel->shared->taken), published = atomic_load(&channel->shared->published);
    return published - taken <= PANDO_CHANNEL_QUEUE ? (uint32_t)(published - taken) : 0;
}

int pando_channel_holds(const struct pando_channel *channel, uint32_t slot, uint32_t turn, uint32_t lane)
{
    return atomic_load(&channel->shared->slots[slot].claim) == claim_of(turn, lane);
}

/* --- the reactor's side of it --- */

uint64_t pando_channel_new_epoch(struct pando_channel *channel)
{
    struct pando_channel_shared *shared = channel->shared;
    channel->turns = atomic_load(&shared->published);
    if (channel->turns > 0) /* else no slot's page exists yet, and to read one would make it */
        for (uint32_t slot = 0; slot < PANDO_CHANNEL_SLOTS; slot++)
            pando_channel_release(channel, slot);
    atomic_store(&shared->taken, channel->turns);
    atomic_store(&shared->draining, 0);
#define RESET(name) pando_stat_set(&shared->stats.name, 0);
    PANDO_STATS_GAUGES(RESET)
#undef RESET
    return atomic_fetch_add(&shared->epoch, 1) + 1;
}

/* A worker may have written anything there. Behind is safe: claims decide, and what is not on offer is passed. */
static uint64_t believable_taken(const struct pando_channel *channel)
{
    struct pando_channel_shared *shared = channel->shared;
    if (atomic_load(&shared->published) != channel->turns) atomic_store(&shared->published, channel->turns);
    uint64_t taken = atomic_load(&shared->taken);
    if (channel->turns - taken <= PANDO_CHANNEL_QUEUE) return taken; /* beyond turns: a huge difference */
    uint64_t first = channel->turns > PANDO_CHANNEL_QUEUE ? channel->turns - PANDO_CHANNEL_QUEUE : 0;
    atomic_store(&shared->taken, first);
    return first;
}

uint32_t pando_channel_depth(const struct pando_channel *channel)
{
    uint32_t turn;
    believable_taken(channel);
    oldest(channel->shared, &turn); /* passes what was withdrawn */
    return (uint32_t)(channel->turns - believable_taken(channel));
}

/* The cell first, the claim next, the count last: what is counted can be taken. */
static void put_in_queue(struct pando_channel *channel, uint32_t slot)
{
    struct pando_channel_shared *shared = channel->shared;
    uint32_t turn = (uint32_t)channel->turns;
    atomic_store(&shared->queue[channel->turns & QUEUE_MASK], claim_of(turn, slot));
    if (slot != NO_SLOT) atomic_store(&shared->slots[slot].claim, claim_of(turn, PANDO_CLAIM_OFFERED));
    atomic_store(&shared->published, ++channel->turns);
}

uint32_t pando_channel_publish(struct pando_channel *channel, uint32_t slot)
{
    /* Only withdrawn turns behind one that nobody takes fill it: there are fewer slots. */
    if (channel->turns - believable_taken(channel) >= PANDO_CHANNEL_QUEUE - 1 &&
        pando_channel_depth(channel) >= PANDO_CHANNEL_QUEUE - 1)
        return 0;
    if ((uint32_t)channel->turns == 0) put_in_queue(channel, NO_SLOT); /* no turn is 0: nobody's claim in a new slot */
    uint32_t turn = (uint32_t)channel->turns;
    put_in_queue(channel, slot);
    return turn;
}

int pando_channel_withdraw(struct pando_channel *channel, uint32_t slot, uint32_t turn)
{
    uint64_t offered = claim_of(turn, PANDO_CLAIM_OFFERED);
    return atomic_compare_exchange_strong(&channel->shared->slots[slot].claim, &offered,
                                          claim_of(turn, PANDO_CLAIM_FREE));
}

uint32_t pando_channel_claimant(const struct pando_channel *channel, uint32_t slot, uint32_t turn)
{
    uint64_t claim = atomic_load(&channel->shared->slots[slot].claim);
    uint32_t who = (uint32_t)claim;
    if ((uint32_t)(claim >> 32) != turn) return PANDO_CLAIM_FREE;
    return who < PANDO_CHANNEL_LANES || who == PANDO_CLAIM_OFFERED ? who : PANDO_CLAIM_FREE;
}

void pando_channel_release(struct pando_channel *channel, uint32_t slot)
{
    _Atomic uint64_t *claim = &channel->shared->slots[slot].claim;
    atomic_store(claim, claim_of((uint32_t)(atomic_load(claim) >> 32), PANDO_CLAIM_FREE));
}
