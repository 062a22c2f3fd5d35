/* A worker claims what it was offered while the reactor looks which of it is claimed: whatever the reactor sees of one
 * claim, it has seen those before. */
#include "http/reactor_private.h"
#include "require.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 20000u

static struct pando_lane *shared;
static struct pando_connection connections[PANDO_LANE_SLOTS];

/* Its claims follow each other as fast as they can. */
static void *claim_all(void *unused)
{
    uint32_t turn, last = 0;
    for (uint32_t left = ROUNDS * PANDO_LANE_SLOTS; left > 0;) {
        int slot = pando_lane_claim(shared, last, &turn);
        if (slot == -1) continue;
        pando_lane_copied(shared, (uint32_t)slot, last = turn);
        left--;
    }
    return unused;
}

/* The first turn is in the first slot, the second in the last. */
static uint32_t slot_of(uint32_t place)
{
    return place % 2 ? PANDO_LANE_SLOTS - 1 - place / 2 : place / 2;
}

static void offer_all(struct pando_reactor *reactor, struct pando_reactor_lane *lane)
{
    for (uint32_t place = 0; place < PANDO_LANE_SLOTS; place++) {
        uint32_t slot = slot_of(place);
        connections[place].request = (struct pando_request){.turn = ++reactor->turn, .slot = slot};
        lane->offered[slot] = &connections[place];
        pando_lane_offer(shared, slot, reactor->turn);
    }
    lane->slots = UINT32_MAX >> (32 - PANDO_LANE_SLOTS);
    lane->offers = reactor->lines[0].offered = PANDO_LANE_SLOTS;
}

int main(void)
{
    struct pando_reactor *reactor = calloc(1, sizeof(*reactor));
    int memory = pando_lane_create();
    pthread_t worker;
    REQUIRE(reactor && memory != -1 && (shared = pando_lane_map(memory)));
    struct pando_reactor_lane *lane = &reactor->lanes[0];
    lane->shared = shared;
    REQUIRE(pthread_create(&worker, NULL, claim_all, NULL) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        offer_all(reactor, lane);
        while (reactor->lines[0].offered > 0) {
            REQUIRE(pando_reactor_dispatch_note(reactor, lane));
            for (uint32_t place = 1; place < PANDO_LANE_SLOTS; place++)
                REQUIRE(connections[place - 1].request.claimed || !connections[place].request.claimed);
        }
    }
    REQUIRE(pthread_join(worker, NULL) == 0);
    pando_lane_unmap(shared);
    free(reactor);
    puts("all hold");
    return 0;
}
