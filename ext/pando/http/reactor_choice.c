/* Chooses the lane that gets the next request. Runs in the reactor. The words read here are written by workers; a
 * worker that writes nonsense harms only itself. */
#include "reactor_private.h"

#include <stdatomic.h>

#define AHEAD 1000u /* microseconds of work that a lane may hold ahead */
#define FAST 250u   /* microseconds that a request takes at most, lately, of a worker that counts as fast */
#define MOST (1u << 30) /* connections */
#define SLOW 5000u  /* a slower worker gets nothing ahead: another worker may well be free sooner */

uint32_t pando_reactor_choice_slot(const struct pando_reactor_lane *lane)
{
    for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++)
        if (!(lane->slots & 1u << slot) && pando_lane_has_room(lane->shared, slot))
            return slot;
    return PANDO_NONE;
}

static int takes_requests(const struct pando_reactor_lane *lane)
{
    return !lane->corrupt && !atomic_load_explicit(&lane->shared->closed, memory_order_relaxed) &&
           pando_reactor_choice_slot(lane) != PANDO_NONE;
}

static int is_idle(const struct pando_reactor_lane *lane)
{
    return lane->offers == 0 && atomic_load_explicit(&lane->shared->asleep, memory_order_relaxed) != 0;
}

int pando_reactor_choice_is_fast(const struct pando_reactor_lane *lane)
{
    return lane->pace > 0 && lane->pace <= FAST;
}

/* A thread may be idle and get nothing, because another has the interpreter lock. */
static int is_busy(const struct pando_reactor_lane *lane)
{
    return (lane->taken || lane->ended || lane->offers > 0) && !is_idle(lane);
}

/* Whether the lane takes its next request so soon that another thread need not be woken for it. A fast one may still
 * take long: its request is slow, or the application works on after its last response. */
static int is_soon_free(const struct pando_reactor *reactor, const struct pando_reactor_lane *lane)
{
    return pando_reactor_choice_is_fast(lane) && is_busy(lane) &&
           (lane->stepped_at == 0 || reactor->now - lane->stepped_at < PANDO_PATIENCE);
}

/* Counts the busy lanes of each worker that has threads. */
static void count_loads(struct pando_reactor *reactor)
{
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        struct pando_reactor_lane *first = &reactor->lanes[reactor->lanes[reactor->open[i]].first];
        first->load = first->pending = first->soon_free = 0;
    }
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        const struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[i]];
        struct pando_reactor_lane *first = &reactor->lanes[lane->first];
        first->load += lane->taken || lane->offers > 0;
        first->pending += lane->stepped_at == 0 && lane->offers > 0;
        first->soon_free |= is_soon_free(reactor, lane);
    }
}

/* A further thread of a worker would only wait for the interpreter lock while another one answers fast requests. A
 * worker that counts the users of its lock must have none, and none that was just woken. Its first lane may be gone
 * before the others. */
static int can_use_another_thread(const struct pando_reactor *reactor, const struct pando_reactor_lane *lane)
{
    const struct pando_reactor_lane *first = &reactor->lanes[lane->first];
    if (reactor->threads == 0 || first->load == 0 || !first->open)
        return 1;
    uint32_t users = atomic_load(&first->shared->lock_users); /* after `waiting` was told, see dispatch_due */
    return !first->soon_free && (!(users & PANDO_LANE_LOCK) || (users == PANDO_LANE_LOCK && first->pending == 0));
}

void pando_reactor_choice_handed(struct pando_reactor *reactor, const struct pando_reactor_lane *lane)
{
    reactor->lanes[lane->first].handed++;
}

/* The WebSockets and the like that a worker has. It tells their number now and then, so those count as well that were
 * handed over since. */
static uint32_t live_connections(const struct pando_reactor *reactor, const struct pando_reactor_lane *lane)
{
    const struct pando_reactor_lane *first = &reactor->lanes[lane->first];
    if (!first->open)
        return 0;
    uint64_t told = atomic_load_explicit(&first->shared->connections, memory_order_relaxed);
    uint32_t count = told & UINT32_MAX, since = first->handed - (uint32_t)(told >> 32);
    if (since > MOST || count > MOST)
        return MOST; /* nonsense, which harms that worker only */
    return count + since;
}

/* A worker without any request comes first, then the one with the fewest; among these the one with the fewest
 * connections, since each may soon have work for it; and then the one that has served last. */
uint32_t pando_reactor_choice_idle(struct pando_reactor *reactor, uint32_t pool)
{
    uint32_t best = PANDO_NONE, least = 0, fewest = 0;
    uint64_t latest = 0;
    if (reactor->threads > 0)
        count_loads(reactor);
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        const struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[i]];
        if (lane->pool != pool || !is_idle(lane) || !takes_requests(lane) || !can_use_another_thread(reactor, lane))
            continue;
        uint32_t load = reactor->threads > 0 ? reactor->lanes[lane->first].load : 0;
        uint64_t since = atomic_load_explicit(&lane->shared->idle_since, memory_order_relaxed);
        uint32_t live = live_connections(reactor, lane);
        if (best == PANDO_NONE || load < least || (load == least && live < fewest) ||
            (load == least && live == fewest && since > latest)) {
            best = reactor->open[i];
            least = load;
            fewest = live;
            latest = since;
        }
    }
    return best;
}

/* A request behind a heavy one would wait as long as that takes. */
static int serves_heavy(const struct pando_reactor *reactor, const struct pando_reactor_lane *lane)
{
    if (reactor->heavy_served == 0)
        return 0;
    int heavy = lane->taken && lane->taken->request.heavy;
    PANDO_EACH_OFFER (lane, slot)
        heavy |= lane->offered[slot]->request.heavy;
    return heavy;
}

/* The number of requests that a lane may have ahead. */
static uint32_t depth_of(const struct pando_reactor_lane *lane)
{
    if (lane->pace > SLOW)
        return 0;
    uint32_t depth = lane->pace ? AHEAD / lane->pace : 1;
    return depth < 1 ? 1 : depth < PANDO_LANE_SLOTS ? depth : PANDO_LANE_SLOTS;
}

uint32_t pando_reactor_choice_fast(const struct pando_reactor *reactor, uint32_t pool)
{
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        const struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[i]];
        if (lane->pool == pool && pando_reactor_choice_is_fast(lane) && is_busy(lane) &&
            lane->offers < FAST / lane->pace && takes_requests(lane) && !serves_heavy(reactor, lane))
            return reactor->open[i];
    }
    return PANDO_NONE;
}

uint32_t pando_reactor_choice_busy(const struct pando_reactor *reactor, uint32_t pool)
{
    uint32_t best = PANDO_NONE;
    for (uint32_t i = 0; i < reactor->open_count; i++) {
        const struct pando_reactor_lane *lane = &reactor->lanes[reactor->open[i]];
        if (lane->pool != pool || !is_busy(lane) || lane->offers >= depth_of(lane) || !takes_requests(lane) ||
            serves_heavy(reactor, lane))
            continue;
        if (best == PANDO_NONE || lane->offers < reactor->lanes[best].offers)
            best = reactor->open[i];
    }
    return best;
}
