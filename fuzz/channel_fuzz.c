/* Feeds arbitrary bytes to the reactor as a worker's lane: every frame it accepts lies
 * within the ring, it comes to an end, and what a worker really puts behind them is
 * read as it was put. No offer is claimed and withdrawn. The first 8 bytes choose
 * where the ring stands, how much of it is written, and what the offer says. */
#include "fuzz.h"
#include "http/lane.h"

#include <string.h>
#include <sys/uio.h>

static struct pando_lane lane;

static int read_frame(uint64_t *position)
{
    struct pando_frame frame;
    const char *payload;
    uint64_t before = *position;
    int verdict = pando_lane_peek(&lane, position, &frame, &payload);
    REQUIRE(*position >= before && (*position & 7) == 0);
    if (verdict != 1) return verdict;
    REQUIRE(frame.kind > PANDO_FRAME_PAD && frame.kind <= PANDO_FRAME_WANT_SOCKET);
    REQUIRE(frame.bytes <= PANDO_FRAME_PAYLOAD);
    REQUIRE(payload >= lane.ring && payload + frame.bytes <= lane.ring + PANDO_LANE_BYTES);
    pando_lane_consume(&lane, position, &frame);
    REQUIRE(*position > before && *position <= atomic_load(&lane.written));
    return 1;
}

static void put_and_read(uint64_t position, uint32_t bytes)
{
    static char data[PANDO_FRAME_PAYLOAD];
    struct pando_frame frame = {PANDO_FRAME_DATA, 5, 6, bytes, 7}, got;
    struct iovec part = {data, bytes};
    const char *payload;
    memset(data, (int)bytes, bytes);
    REQUIRE(pando_lane_put_last(&lane, &frame, &part, 1, 1) == 1);
    if (bytes > 0) {
        REQUIRE(pando_lane_peek(&lane, &position, &got, &payload) == 1 && memcmp(&got, &frame, sizeof got) == 0);
        REQUIRE(memcmp(payload, data, bytes) == 0);
        pando_lane_consume(&lane, &position, &got);
    }
    REQUIRE(pando_lane_peek(&lane, &position, &got, &payload) == 1 && got.kind == PANDO_FRAME_END);
    pando_lane_consume(&lane, &position, &got);
    REQUIRE(pando_lane_peek(&lane, &position, &got, &payload) == 0);
}

/* Whatever the words say, the reactor knows whether the request is its own. */
static void offers_are_safe(uint32_t word)
{
    uint32_t turn, slot = word % PANDO_LANE_SLOTS;
    for (uint32_t i = 0; i < PANDO_LANE_SLOTS; i++) {
        atomic_store(&lane.offers[i], (uint64_t)(word >> i) << 32 | (word >> 3 * i % 32));
        int made = pando_lane_offered(&lane, i, word >> i) == PANDO_OFFER_MADE;
        lane.slots[i].head_bytes = word;
        lane.slots[i].body_bytes = ~word >> (word & 31);
        REQUIRE(pando_lane_withdraw(&lane, i, word >> i) == made);
        atomic_store(&lane.offers[i], 0);
    }
    pando_lane_offer(&lane, slot, word + 1);
    REQUIRE(pando_lane_claim(&lane, word, &turn) == (int)slot && turn == word + 1);
    REQUIRE(!pando_lane_withdraw(&lane, slot, turn));
    pando_lane_copied(&lane, slot, turn);
    REQUIRE(pando_lane_has_room(&lane, slot));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t start, length;
    if (size < 8 || size > FUZZ_MAX_INPUT) return 0;
    memcpy(&start, data, 4);
    memcpy(&length, data + 4, 4);

    uint64_t position = start & ~7u;
    atomic_store(&lane.consumed, position);
    atomic_store(&lane.written, position + (length & 1 ? length : (size - 8) & ~7ul));
    for (size_t i = 8; i < size; i++) lane.ring[(position + i - 8) % PANDO_LANE_BYTES] = (char)data[i];

    int verdict;
    while ((verdict = read_frame(&position)) == 1) continue;
    REQUIRE(verdict == -1 || position == atomic_load(&lane.written));
    position = atomic_load(&lane.written) & ~7ul;
    atomic_store(&lane.written, position);
    atomic_store(&lane.consumed, position);
    offers_are_safe(length);
    put_and_read(pando_lane_join(&lane), length % (PANDO_FRAME_PAYLOAD + 1));
    return 0;
}
