/* What a worker gone wild may write into a channel, seen from the reactor's side and
 * from the other workers': nothing leads out of bounds, and what can be repaired is. */
#include "http/channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define REQUIRE(condition)                                                                  \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                        \
        }                                                                                   \
    } while (0)

static struct pando_channel channel;
static struct pando_channel_shared *shared;

static void begin(void)
{
    REQUIRE(pando_channel_create(&channel) == 0);
    shared = channel.shared;
    REQUIRE(pando_channel_new_epoch(&channel) == 1);
}

static void end(void)
{
    close(channel.fd);
    pando_channel_unmap(&channel);
}

static void takes(uint32_t lane, int slot, uint32_t turn)
{
    uint32_t got = 0;
    REQUIRE(pando_channel_take(&channel, lane, &got) == slot);
    REQUIRE(slot < 0 || got == turn);
}

static void requests_change_hands_in_order(void)
{
    begin();
    takes(1, -1, 0);
    REQUIRE(pando_channel_publish(&channel, 7) == 1 && pando_channel_publish(&channel, 3) == 2);
    REQUIRE(pando_channel_depth(&channel) == 2);
    takes(1, 7, 1);
    REQUIRE(pando_channel_claimant(&channel, 7, 1) == 1 && pando_channel_holds(&channel, 7, 1, 1));
    REQUIRE(pando_channel_claimant(&channel, 7, 2) == PANDO_CLAIM_FREE);
    REQUIRE(pando_channel_claimant(&channel, 3, 2) == PANDO_CLAIM_OFFERED);
    REQUIRE(!pando_channel_withdraw(&channel, 7, 1) && pando_channel_withdraw(&channel, 3, 2));
    REQUIRE(!pando_channel_withdraw(&channel, 3, 2));
    takes(2, -1, 0);
    REQUIRE(pando_channel_depth(&channel) == 0);
    REQUIRE(pando_channel_publish(&channel, 7) == 3); /* lane 1 died: once more */
    REQUIRE(!pando_channel_holds(&channel, 7, 1, 1));
    takes(2, 7, 3);
    pando_channel_release(&channel, 7);
    REQUIRE(!pando_channel_holds(&channel, 7, 3, 2));
    end();
}

static void taken_is_repaired(void)
{
    const uint64_t lies[] = {5, 1000, UINT64_MAX, 1ULL << 63, 0};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        begin();
        for (uint32_t turn = 1; turn <= 3; turn++) {
            REQUIRE(pando_channel_publish(&channel, turn) == turn);
            takes(1, (int)turn, turn);
        }
        atomic_store(&shared->taken, lies[i]);
        REQUIRE(pando_channel_publish(&channel, 4) == 4);
        takes(2, 4, 4);
        REQUIRE(pando_channel_depth(&channel) == 0);
        REQUIRE(pando_channel_publish(&channel, 5) == 5);
        takes(2, 5, 5);
        end();
    }
}

static void published_is_the_reactors_own(void)
{
    begin();
    REQUIRE(pando_channel_publish(&channel, 1) == 1);
    atomic_store(&shared->published, 1ULL << 40);
    takes(1, -1, 0);
    REQUIRE(pando_channel_publish(&channel, 2) == 2);
    takes(1, 1, 1);
    takes(1, 2, 2);
    end();
}

static void damaged_cells_are_passed(void)
{
    begin();
    for (uint32_t turn = 1; turn <= 4; turn++) REQUIRE(pando_channel_publish(&channel, turn) == turn);
    atomic_store(&shared->queue[1], 1ULL << 32 | PANDO_CHANNEL_SLOTS); /* no such slot */
    atomic_store(&shared->queue[2], 77ULL << 32 | 2);                  /* another turn */
    atomic_store(&shared->queue[3], 3ULL << 32 | 4);                   /* another turn's slot */
    takes(1, 4, 4);
    takes(1, -1, 0);
    end();
}

static void damaged_claims_belong_to_nobody(void)
{
    begin();
    REQUIRE(pando_channel_publish(&channel, 1) == 1);
    atomic_store(&shared->slots[1].claim, 1ULL << 32 | PANDO_CHANNEL_LANES);
    REQUIRE(pando_channel_claimant(&channel, 1, 1) == PANDO_CLAIM_FREE);
    takes(1, -1, 0);
    pando_channel_release(&channel, 1);
    REQUIRE(pando_channel_publish(&channel, 1) == 2);
    takes(1, 1, 2);
    end();
}

static void a_queue_full_of_withdrawn_turns_refuses(void)
{
    begin();
    REQUIRE(pando_channel_publish(&channel, 0) == 1); /* nobody comes to take it */
    uint32_t turn, published = 0;
    while ((turn = pando_channel_publish(&channel, 1)) != 0) {
        REQUIRE(pando_channel_withdraw(&channel, 1, turn));
        REQUIRE(++published < PANDO_CHANNEL_QUEUE);
    }
    REQUIRE(published > PANDO_CHANNEL_QUEUE - 8);
    takes(1, 0, 1);
    REQUIRE(pando_channel_publish(&channel, 1) != 0);
    end();
}

static void turns_wrap(void)
{
    begin();
    atomic_store(&shared->published, UINT32_MAX);
    atomic_store(&shared->taken, UINT32_MAX);
    REQUIRE(pando_channel_new_epoch(&channel) == 2);
    REQUIRE(pando_channel_publish(&channel, 1) == UINT32_MAX);
    REQUIRE(pando_channel_publish(&channel, 2) == 1); /* 0 is no turn */
    takes(1, 1, UINT32_MAX);
    takes(1, 2, 1);
    takes(1, -1, 0);
    end();
}

static void a_new_reactor_owes_nothing(void)
{
    begin();
    REQUIRE(pando_channel_publish(&channel, 1) == 1 && pando_channel_publish(&channel, 2) == 2);
    takes(5, 1, 1);
    struct pando_channel second;
    REQUIRE(pando_channel_attach(&second, channel.fd) == 0);
    REQUIRE(pando_channel_new_epoch(&second) == 2);
    REQUIRE(!pando_channel_holds(&channel, 1, 1, 5));
    takes(5, -1, 0);
    REQUIRE(pando_channel_publish(&second, 1) == 3);
    takes(6, 1, 3);
    pando_channel_unmap(&second);
    end();
}

static int put(struct pando_lane *lane, uint32_t bytes, char fill)
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
    struct pando_lane *lane = &shared->lanes[3];
    uint64_t position = pando_lane_join(lane);
    struct pando_frame frame;
    const char *payload;
    for (uint32_t i = 0; i < 30000; i++) {
        uint32_t bytes = i * 13 % (i % 64 ? 200 : PANDO_FRAME_PAYLOAD + 1);
        REQUIRE(put(lane, bytes, (char)i) == 1);
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
    struct pando_lane *lane = &shared->lanes[3];
    uint64_t position = pando_lane_join(lane);
    struct pando_frame frame;
    const char *payload;
    REQUIRE(put(lane, PANDO_FRAME_PAYLOAD + 1, 'x') == -1);
    for (unsigned offset = 0; offset < 600; offset++) {
        int frames = 0, wakes = 0;
        REQUIRE(put(lane, offset * 8, 'o') == 1);
        while (put(lane, 5000, 'x') == 1) frames++;
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
        while (lane->written - lane->consumed <= PANDO_LANE_BYTES / 2 - 8 * 40) REQUIRE(put(lane, 0, 'x') == 1);
        REQUIRE(pando_lane_starve(lane) == 0 && pando_lane_put_last(lane, &last, &part, 1, 1) == 1);
        pando_lane_skip(lane, &position);
    }
    end();
}

static void corrupt(struct pando_lane *lane, uint64_t position)
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
    struct pando_lane *lane = &shared->lanes[1023];
    const struct pando_frame wrong[] = {
        {0, 1, 1, 0, 0},
        {99, 1, 1, 0, 0},
        {PANDO_FRAME_DATA, PANDO_CHANNEL_SLOTS, 1, 0, 0},
        {PANDO_FRAME_DATA, 1, 1, UINT32_MAX, 0},
        {PANDO_FRAME_DATA, 1, 1, UINT32_MAX - 8, 0},
        {PANDO_FRAME_DATA, 1, 1, PANDO_FRAME_PAYLOAD + 1, 0},
        {PANDO_FRAME_DATA, 1, 1, 9, 0}, /* beyond what is written */
        {PANDO_FRAME_PAD, 1, 1, 8, 0},  /* likewise */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(lane->ring, &wrong[i], sizeof *wrong);
        atomic_store(&lane->written, sizeof *wrong + 8);
        corrupt(lane, 0);
    }
    const uint64_t lengths[] = {1, 8, 16, PANDO_LANE_BYTES + 8, 1ULL << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        atomic_store(&lane->written, lengths[i]);
        corrupt(lane, 0);
    }
    /* The next owner and the reactor find a lane that works. */
    uint64_t position = 0;
    pando_lane_skip(lane, &position);
    pando_lane_reset(lane);
    position = pando_lane_join(lane);
    struct pando_frame frame;
    const char *payload;
    REQUIRE(put(lane, 100, 'y') == 1 && pando_lane_peek(lane, &position, &frame, &payload) == 1);
    REQUIRE(frame.bytes == 100 && payload[99] == 'y');
    end();
}

static void only_a_channel_is_attached(void)
{
    struct pando_channel other;
    int fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(pando_channel_attach(&other, fd) == -1);
    REQUIRE(ftruncate(fd, (off_t)sizeof *shared) == 0 && pando_channel_attach(&other, fd) == -1);
    close(fd);
    REQUIRE(pando_channel_attach(&other, -1) == -1);
}

int main(void)
{
    requests_change_hands_in_order();
    taken_is_repaired();
    published_is_the_reactors_own();
    damaged_cells_are_passed();
    damaged_claims_belong_to_nobody();
    a_queue_full_of_withdrawn_turns_refuses();
    turns_wrap();
    a_new_reactor_owes_nothing();
    frames_of_all_sizes_go_round();
    a_full_ring_wakes_its_writer_once();
    corrupt_lanes_are_seen();
    only_a_channel_is_attached();
    puts("all hold");
    return 0;
}
