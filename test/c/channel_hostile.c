/* What a worker gone wild may write into its lane, seen from the reactor's side: nothing leads out of bounds, and what
 * is damaged is seen. */
#include "http/channel.h"
#include "require.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static int fd;
static struct pando_lane *lane;

static void begin(void)
{
    fd = pando_lane_create();
    lane = pando_lane_map(fd);
    REQUIRE(fd != -1 && lane && pando_lane_has_room(lane, 0) && pando_lane_join(lane) == 0);
}

static void end(void)
{
    pando_lane_unmap(lane);
    close(fd);
}

static void claims(uint32_t last, uint32_t turn)
{
    uint32_t got = 0;
    REQUIRE(pando_lane_claim(lane, last, &got) == (turn != 0 ? 0 : -1));
    REQUIRE(turn == 0 || got == turn);
}

static void a_request_changes_hands_once(void)
{
    begin();
    claims(0, 0);
    pando_lane_offer(lane, 0, 7);
    REQUIRE(pando_lane_offers(lane) && pando_lane_offered(lane, 0, 7) == PANDO_OFFER_MADE && !pando_lane_has_room(lane, 0));
    REQUIRE(pando_lane_offered(lane, 0, 6) == PANDO_OFFER_DAMAGED);
    claims(0, 7);
    REQUIRE(!pando_lane_withdraw(lane, 0, 7) && pando_lane_offered(lane, 0, 7) == PANDO_OFFER_CLAIMED);
    REQUIRE(!pando_lane_offers(lane) && !pando_lane_has_room(lane, 0));
    claims(7, 0);
    pando_lane_copied(lane, 0, 7);
    REQUIRE(pando_lane_offered(lane, 0, 7) == PANDO_OFFER_COPIED && pando_lane_has_room(lane, 0));
    pando_lane_offer(lane, 0, 8);
    REQUIRE(!pando_lane_withdraw(lane, 0, 7) && pando_lane_withdraw(lane, 0, 8) && !pando_lane_withdraw(lane, 0, 8));
    claims(7, 0);
    REQUIRE(pando_lane_offered(lane, 0, 8) == PANDO_OFFER_NONE && pando_lane_has_room(lane, 0));
    end();
}

static void requests_are_claimed_in_order(void)
{
    begin();
    uint32_t turn, last = 0;
    for (uint32_t first = UINT32_MAX - 20;; first += PANDO_LANE_SLOTS) { /* turns begin anew */
        for (uint32_t i = 0; i < PANDO_LANE_SLOTS; i++) pando_lane_offer(lane, i * 5 % PANDO_LANE_SLOTS, first + i);
        REQUIRE(pando_lane_withdraw(lane, 2 * 5 % PANDO_LANE_SLOTS, first + 2));
        for (uint32_t i = 0; i < PANDO_LANE_SLOTS; i++) {
            if (i == 2) continue;
            int slot = pando_lane_claim(lane, last, &turn);
            REQUIRE(slot == (int)(i * 5 % PANDO_LANE_SLOTS) && turn == first + i);
            pando_lane_copied(lane, (uint32_t)slot, last = turn);
        }
        REQUIRE(pando_lane_claim(lane, last, &turn) == -1);
        if (first == (uint32_t)(UINT32_MAX - 20 + 5 * PANDO_LANE_SLOTS)) break;
    }
    end();
}

static void what_is_taken_back_is_wiped(void)
{
    begin();
    memcpy(lane->slots[0].data, "GET /secret", 11);
    strcpy(lane->slots[0].remote, "192.0.2.1");
    lane->slots[0].head_bytes = 5;
    lane->slots[0].body_bytes = 6;
    pando_lane_offer(lane, 0, 1);
    REQUIRE(pando_lane_withdraw(lane, 0, 1) && lane->slots[0].remote[0] == 0 && lane->slots[0].head_bytes == 0);
    for (size_t i = 0; i < sizeof(lane->slots[0].data); i++) REQUIRE(lane->slots[0].data[i] == 0);
    lane->slots[0].head_bytes = lane->slots[0].body_bytes = UINT32_MAX; /* as a worker may write */
    pando_lane_offer(lane, 0, 2);
    REQUIRE(pando_lane_withdraw(lane, 0, 2));
    end();
}

static void damaged_offers_are_seen(void)
{
    begin();
    pando_lane_offer(lane, 0, 3);
    const uint64_t lies[] = {0, 4ULL << 32 | 1, 3ULL << 32 | 4, UINT64_MAX};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        atomic_store(&lane->offers[0], lies[i]);
        REQUIRE(pando_lane_offered(lane, 0, 3) == PANDO_OFFER_DAMAGED && !pando_lane_withdraw(lane, 0, 3));
    }
    /* Claimed by nobody: the reactor believes it, so the worker serves it. */
    atomic_store(&lane->offers[0], 3ULL << 32 | PANDO_OFFER_CLAIMED);
    claims(2, 3);
    claims(3, 0);
    end();
}

static void sleepers_are_woken_once(void)
{
    begin();
    const uint32_t words[] = {1, 2, UINT32_MAX};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        REQUIRE(pando_lane_sleep(lane, 5) == 1 && lane->idle_since == 5);
        atomic_store(&lane->asleep, words[i]);
        REQUIRE(pando_lane_rouse(lane) && !pando_lane_rouse(lane));
    }
    pando_lane_offer(lane, 0, 1);
    REQUIRE(pando_lane_sleep(lane, 6) == 0 && !pando_lane_rouse(lane));
    REQUIRE(pando_lane_close(lane) == 1 && atomic_load(&lane->closed));
    claims(0, 1);
    REQUIRE(pando_lane_sleep(lane, 7) == 1 && !atomic_load(&lane->closed) && pando_lane_close(lane) == 0);
    REQUIRE(!pando_lane_rouse(lane));
    end();
}

static void one_that_steps_back_comes_after_those_that_sleep(void)
{
    const uint64_t second = 1000000000u;
    begin();
    REQUIRE(pando_lane_sleep(lane, 5 * second));
    pando_lane_step_back(lane, 6 * second);
    uint64_t before = atomic_load(&lane->idle_since);
    REQUIRE(before < second); /* a time in the first second since the machine's start */
    pando_lane_step_back(lane, 7 * second);
    REQUIRE(atomic_load(&lane->idle_since) < before && atomic_load(&lane->asleep));
    REQUIRE(pando_lane_sleep(lane, 8 * second) && lane->idle_since == 8 * second);
    end();
}

static void a_new_reactor_owes_nothing(void)
{
    begin();
    pando_lane_offer(lane, 0, 9);
    atomic_store(&lane->gone, 9);
    atomic_store(&lane->half_closed, 9);
    pando_lane_join(lane);
    claims(0, 0);
    REQUIRE(lane->gone == 0 && lane->half_closed == 0 && pando_lane_has_room(lane, 0));
    end();
}

static int put(uint32_t bytes, char fill)
{
    static char data[PANDO_LANE_BYTES];
    struct pando_frame frame = {PANDO_FRAME_DATA, 1, 1, bytes, 0};
    struct iovec part = {data, sizeof data};
    memset(data, fill, bytes < sizeof data ? bytes : sizeof data);
    return pando_lane_put(lane, &frame, &part, 1);
}

static void frames_of_all_sizes_go_round(void)
{
    begin();
    uint64_t position = pando_lane_join(lane);
    struct pando_frame frame;
    const char *payload;
    for (uint32_t i = 0; i < 30000; i++) {
        uint32_t bytes = i * 13 % (i % 64 ? 200 : PANDO_FRAME_PAYLOAD + 1);
        REQUIRE(put(bytes, (char)i) == 1);
        REQUIRE(pando_lane_peek(lane, &position, &frame, &payload) == 1);
        REQUIRE(frame.kind == PANDO_FRAME_DATA && frame.bytes == bytes);
        for (uint32_t at = 0; at < bytes; at++) REQUIRE(payload[at] == (char)i);
        REQUIRE(pando_lane_consume(lane, &position, &frame) == 0);
        REQUIRE(pando_lane_peek(lane, &position, &frame, &payload) == 0);
    }
    end();
}

static void a_full_ring_wakes_its_writer_once(void)
{
    begin();
    uint64_t position = pando_lane_join(lane);
    struct pando_frame frame;
    const char *payload;
    REQUIRE(put(PANDO_FRAME_PAYLOAD + 1, 'x') == -1);
    for (unsigned offset = 0; offset < 600; offset++) {
        int frames = 0, wakes = 0;
        REQUIRE(put(offset * 8, 'o') == 1);
        while (put(5000, 'x') == 1) frames++;
        REQUIRE(frames >= 20 && pando_lane_starve(lane) == 1);
        while (pando_lane_peek(lane, &position, &frame, &payload) == 1) {
            int wake = pando_lane_consume(lane, &position, &frame);
            wakes += wake;
            if (wake) REQUIRE(pando_lane_starve(lane) == 0);
            pando_lane_fed(lane);
            if (!wake && wakes == 0) REQUIRE(pando_lane_starve(lane) == 1);
        }
        REQUIRE(wakes == 1);
        /* Half a ring is room for the largest frame and an end, wherever it stands. */
        struct pando_frame last = {PANDO_FRAME_DATA, 1, 1, PANDO_FRAME_PAYLOAD, 0};
        static char data[PANDO_FRAME_PAYLOAD];
        struct iovec part = {data, sizeof data};
        while (lane->written - lane->consumed <= PANDO_LANE_BYTES / 2 - 8 * 40) REQUIRE(put(0, 'x') == 1);
        REQUIRE(pando_lane_starve(lane) == 0 && pando_lane_put_last(lane, &last, &part, 1, 1) == 1);
        while (pando_lane_peek(lane, &position, &frame, &payload) == 1) pando_lane_consume(lane, &position, &frame);
    }
    end();
}

static void corrupt(uint64_t position)
{
    struct pando_frame frame;
    const char *payload;
    int verdict;
    while ((verdict = pando_lane_peek(lane, &position, &frame, &payload)) == 1) {
        REQUIRE(payload >= lane->ring && payload + frame.bytes <= lane->ring + PANDO_LANE_BYTES);
        pando_lane_consume(lane, &position, &frame);
    }
    REQUIRE(verdict == -1);
}

static void corrupt_lanes_are_seen(void)
{
    begin();
    const struct pando_frame wrong[] = {
        {0, 1, 1, 0, 0},
        {99, 1, 1, 0, 0},
        {PANDO_FRAME_DATA, 1, 1, UINT32_MAX, 0},
        {PANDO_FRAME_DATA, 1, 1, UINT32_MAX - 8, 0},
        {PANDO_FRAME_DATA, 1, 1, PANDO_FRAME_PAYLOAD + 1, 0},
        {PANDO_FRAME_DATA, 1, 1, 9, 0}, /* beyond what is written */
        {PANDO_FRAME_PAD, 1, 1, 8, 0},  /* likewise */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(lane->ring, &wrong[i], sizeof *wrong);
        atomic_store(&lane->written, sizeof *wrong + 8);
        corrupt(0);
    }
    const uint64_t lengths[] = {1, 8, 16, PANDO_LANE_BYTES + 8, 1ULL << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        atomic_store(&lane->written, lengths[i]);
        corrupt(0);
    }
    end();
}

static void only_what_it_is_is_mapped(void)
{
    struct pando_channel channel, other;
    begin();
    REQUIRE(pando_channel_create(&channel) == 0);
    REQUIRE(pando_channel_attach(&other, fd, 0) == -1 && !pando_lane_map(channel.fd));
    REQUIRE(pando_channel_attach(&other, -1, 0) == -1 && !pando_lane_map(-1));
    int file = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(!pando_lane_map(file) && ftruncate(file, (off_t)sizeof *lane) == 0 && !pando_lane_map(file));
    close(file);
    close(channel.fd);
    pando_channel_unmap(&channel);
    end();
}

static void the_reactor_is_woken_once_for_a_sleep(void)
{
    struct pando_channel channel, reactor;
    uint64_t rung = 0;
    REQUIRE(pando_channel_create(&channel) == 0 && pando_channel_attach(&reactor, channel.fd, 1) == 0);
    for (uint64_t epoch = 1; epoch < 4; epoch++) {
        REQUIRE(pando_channel_new_epoch(&reactor) == epoch && !pando_channel_rouse_reactor(&channel, &rung));
        pando_channel_sleep(&reactor);
        REQUIRE(pando_channel_rouse_reactor(&channel, &rung) && !pando_channel_rouse_reactor(&channel, &rung));
        pando_channel_awake(&reactor);
        REQUIRE(!pando_channel_rouse_reactor(&channel, &rung));
        pando_channel_sleep(&reactor); /* and dies in it */
        REQUIRE(pando_channel_rouse_reactor(&channel, &rung));
    }
    pando_channel_unmap(&reactor);
    pando_channel_unmap(&channel);
    close(channel.fd);
}

int main(void)
{
    a_request_changes_hands_once();
    requests_are_claimed_in_order();
    what_is_taken_back_is_wiped();
    damaged_offers_are_seen();
    sleepers_are_woken_once();
    one_that_steps_back_comes_after_those_that_sleep();
    a_new_reactor_owes_nothing();
    frames_of_all_sizes_go_round();
    a_full_ring_wakes_its_writer_once();
    corrupt_lanes_are_seen();
    only_what_it_is_is_mapped();
    the_reactor_is_woken_once_for_a_sleep();
    puts("all hold");
    return 0;
}
