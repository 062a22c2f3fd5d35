/* A lane's memory and the offers on it, see lane.h. lane_frames.c has the frames of answers. Runs in the monitor
 * (which creates the memory), the reactor and workers. */
#include "lane.h"

#include "sys/sealed.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define MAGIC 0x70616e646f6c3032ULL /* "pandol02": includes the layout version */

/* --- the memory --- */

int pando_lane_create(void)
{
    const uint64_t magic = MAGIC;
    return pando_sealed_create("pando-lane", sizeof(struct pando_lane), &magic, sizeof(magic));
}

/* A child of the worker must not answer in its place, and no other process may read along. */
static int keep_from_children(struct pando_lane *lane)
{
    if (lane->magic != MAGIC) return errno = EINVAL, -1;
    return madvise(lane, sizeof(*lane), MADV_DONTFORK);
}

struct pando_lane *pando_lane_map(int fd)
{
    struct pando_lane *lane = pando_sealed_map(fd, sizeof(*lane), 1);
    if (!lane || keep_from_children(lane) == 0) return lane;
    int failure = errno;
    pando_lane_unmap(lane);
    errno = failure;
    return NULL;
}

int pando_lane_guard(struct pando_lane *lane)
{
    return mprotect(lane, offsetof(struct pando_lane, offers), PROT_READ);
}

void pando_lane_unmap(struct pando_lane *lane)
{
    munmap(lane, sizeof(*lane));
}

/* --- offers ---
 *
 * A request belongs to the side that moves its word away from MADE: the worker by CLAIMED, the reactor by NONE. The
 * word names the turn, so that a late compare-and-swap fails. */

static uint64_t word_of(uint32_t turn, enum pando_offer state)
{
    return (uint64_t)turn << 32 | state;
}

static uint32_t state_of(uint64_t word)
{
    return (uint32_t)word;
}

static uint32_t turn_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

int pando_lane_has_room(const struct pando_lane *lane, uint32_t slot)
{
    uint32_t state = state_of(atomic_load(&lane->offers[slot]));
    return state == PANDO_OFFER_NONE || state == PANDO_OFFER_COPIED;
}

void pando_lane_offer(struct pando_lane *lane, uint32_t slot, uint32_t turn)
{
    atomic_store(&lane->offers[slot], word_of(turn, PANDO_OFFER_MADE));
}

/* Wipes all of it, whatever its lengths say by now. */
static void wipe(struct pando_slot *slot)
{
    uint64_t bytes = (uint64_t)slot->head_bytes + slot->body_bytes;
    memset(slot->data, 0, bytes < sizeof(slot->data) ? (size_t)bytes : sizeof(slot->data));
    slot->head_bytes = slot->body_bytes = 0;
    memset(slot->remote, 0, sizeof(slot->remote));
}

int pando_lane_withdraw(struct pando_lane *lane, uint32_t slot, uint32_t turn)
{
    uint64_t made = word_of(turn, PANDO_OFFER_MADE);
    if (!atomic_compare_exchange_strong(&lane->offers[slot], &made, word_of(turn, PANDO_OFFER_NONE))) return 0;
    wipe(&lane->slots[slot]);
    return 1;
}

enum pando_offer pando_lane_offered(const struct pando_lane *lane, uint32_t slot, uint32_t turn)
{
    uint64_t word = atomic_load(&lane->offers[slot]);
    if (turn_of(word) != turn || state_of(word) > PANDO_OFFER_COPIED) return PANDO_OFFER_DAMAGED;
    return (enum pando_offer)state_of(word);
}

/* A word that says CLAIMED without our doing is damaged. The reactor believes it, so the request is ours. */
static int is_mine(uint64_t word, uint32_t last)
{
    return state_of(word) == PANDO_OFFER_MADE || (state_of(word) == PANDO_OFFER_CLAIMED && turn_of(word) != last);
}

/* -1: no offer. An offer made during the search may be seen without an earlier one. */
static int oldest_seen(const struct pando_lane *lane, uint32_t last, uint64_t *word)
{
    int best = -1;
    for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++) {
        uint64_t one = atomic_load(&lane->offers[slot]);
        if (!is_mine(one, last) || (best != -1 && (int32_t)(turn_of(one) - turn_of(*word)) >= 0)) continue;
        *word = one;
        best = (int)slot;
    }
    return best;
}

/* Requests are answered in the order of their turns: a second search sees all offers made before one that was seen. */
static int oldest(const struct pando_lane *lane, uint32_t last, uint64_t *word)
{
    int slot = oldest_seen(lane, last, word);
    while (slot != -1) {
        uint64_t before = *word;
        slot = oldest_seen(lane, last, word);
        if (*word == before) break;
    }
    return slot;
}

int pando_lane_claim(struct pando_lane *lane, uint32_t last, uint32_t *turn)
{
    uint64_t word;
    int slot;
    while ((slot = oldest(lane, last, &word)) != -1) {
        *turn = turn_of(word);
        if (state_of(word) == PANDO_OFFER_CLAIMED ||
            atomic_compare_exchange_strong(&lane->offers[slot], &word, word_of(*turn, PANDO_OFFER_CLAIMED)))
            return slot;
    }
    return -1;
}

/* In this order: before the reactor puts another request into the slot, it tells the lane. */
int pando_lane_half_closed(const struct pando_lane *lane, uint32_t slot, uint32_t turn)
{
    return atomic_load(&lane->slots[slot].half_closed) == turn || atomic_load(&lane->half_closed) == turn;
}

void pando_lane_copied(struct pando_lane *lane, uint32_t slot, uint32_t turn)
{
    uint64_t claimed = word_of(turn, PANDO_OFFER_CLAIMED);
    atomic_compare_exchange_strong(&lane->offers[slot], &claimed, word_of(turn, PANDO_OFFER_COPIED));
}

int pando_lane_offers(const struct pando_lane *lane)
{
    int made = 0;
    for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++)
        made |= state_of(atomic_load(&lane->offers[slot])) == PANDO_OFFER_MADE;
    return made;
}

/* --- sleeping and waking --- */

int pando_lane_sleep(struct pando_lane *lane, uint64_t now)
{
    atomic_store(&lane->closed, 0);
    atomic_store(&lane->idle_since, now);
    atomic_store(&lane->asleep, 1);
    if (!pando_lane_offers(lane)) return 1;
    atomic_store(&lane->asleep, 0);
    return 0;
}

/* Before the times of all workers that merely sleep, and before those that stepped back earlier. */
#define LAST_OF_ALL 1000000000ULL
#define STEP 100000000ULL

void pando_lane_step_back(struct pando_lane *lane, uint64_t now)
{
    uint64_t steps = now / STEP;
    atomic_store(&lane->idle_since, steps < LAST_OF_ALL ? LAST_OF_ALL - steps : 0);
}

void pando_lane_awake(struct pando_lane *lane)
{
    if (atomic_load(&lane->asleep)) atomic_store(&lane->asleep, 0);
}

int pando_lane_close(struct pando_lane *lane)
{
    atomic_store(&lane->closed, 1);
    pando_lane_awake(lane);
    return pando_lane_offers(lane); /* the reactor takes them back as soon as it looks */
}

int pando_lane_rouse(struct pando_lane *lane)
{
    return atomic_load(&lane->asleep) && atomic_exchange(&lane->asleep, 0) != 0; /* whatever value was written there */
}
