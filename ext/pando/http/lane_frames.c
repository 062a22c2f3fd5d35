/* The ring of frames on a lane, by which a worker answers: see lane.h. Runs in the reactor (which reads) and in
 * workers (which write). */
#include "lane.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#define RING_MASK (PANDO_LANE_BYTES - 1)
#define HEADER sizeof(struct pando_frame)

_Static_assert((PANDO_LANE_BYTES & RING_MASK) == 0, "a power of two");
_Static_assert(HEADER % 8 == 0 && PANDO_LANE_BYTES % 8 == 0, "frames are aligned to 8 bytes");
/* Two frames with their padding fit whenever half of the ring is free. */
_Static_assert(2 * (PANDO_FRAME_PAYLOAD + 2 * HEADER) + PANDO_LANE_RESERVE <= PANDO_LANE_BYTES / 2, "half is enough");

/* `written` and `consumed` only grow; a frame exists once `written` has passed it. Where less than a frame header is
 * left at the end of the ring, both sides continue at its beginning. */
static uint64_t padded(uint64_t bytes)
{
    return (bytes + 7) & ~7ULL;
}

/* Where a frame of so many bytes, including its header, begins if the ring stands at `position`. */
static uint64_t place_for(uint64_t position, uint64_t bytes)
{
    uint64_t tail = PANDO_LANE_BYTES - (position & RING_MASK);
    return tail < bytes ? position + tail : position;
}

static void copy_parts(char *to, uint64_t bytes, const struct iovec *parts, size_t count)
{
    for (size_t i = 0; i < count && bytes > 0; i++) {
        uint64_t portion = parts[i].iov_len < bytes ? parts[i].iov_len : bytes;
        if (portion > 0) memcpy(to, parts[i].iov_base, portion);
        to += portion;
        bytes -= portion;
    }
}

static uint64_t write_frame(struct pando_lane *lane, uint64_t position, const struct pando_frame *frame,
                            const struct iovec *parts, size_t count)
{
    uint64_t begin = place_for(position, HEADER + padded(frame->bytes));
    if (begin - position >= HEADER) {
        struct pando_frame pad = {.kind = PANDO_FRAME_PAD, .bytes = (uint32_t)(begin - position - HEADER)};
        memcpy(lane->ring + (position & RING_MASK), &pad, HEADER);
    }
    memcpy(lane->ring + (begin & RING_MASK), frame, HEADER);
    copy_parts(lane->ring + (begin & RING_MASK) + HEADER, frame->bytes, parts, count);
    return begin + HEADER + padded(frame->bytes);
}

/* The end of one frame, and of a bare one behind it if `and_end`. */
static uint64_t end_of(uint64_t position, uint64_t payload, int and_end)
{
    uint64_t end = place_for(position, HEADER + padded(payload)) + HEADER + padded(payload);
    return and_end ? place_for(end, HEADER) + HEADER : end;
}

static int has_room(const struct pando_lane *lane, uint64_t end)
{
    return end - atomic_load(&lane->consumed) <= PANDO_LANE_BYTES;
}

/* The worker's own value, but in memory that others can write: never trust its alignment. */
static uint64_t write_position(const struct pando_lane *lane)
{
    return atomic_load_explicit(&lane->written, memory_order_relaxed) & ~7ULL;
}

int pando_lane_put(struct pando_lane *lane, const struct pando_frame *frame, const struct iovec *parts, size_t count)
{
    uint64_t position = write_position(lane);
    if (frame->bytes > PANDO_FRAME_PAYLOAD) return errno = EMSGSIZE, -1;
    if (!has_room(lane, end_of(position, frame->bytes, 0) + PANDO_LANE_RESERVE)) return 0;
    atomic_store(&lane->written, write_frame(lane, position, frame, parts, count));
    return 1;
}

int pando_lane_put_end(struct pando_lane *lane, const struct pando_frame *frame)
{
    uint64_t position = write_position(lane);
    if (!has_room(lane, end_of(position, 0, 0))) return 0;
    atomic_store(&lane->written, write_frame(lane, position, frame, NULL, 0));
    return 1;
}

int pando_lane_put_last(struct pando_lane *lane, const struct pando_frame *frame, const struct iovec *parts,
                        size_t count, int keep)
{
    uint64_t position = write_position(lane);
    struct pando_frame end = {PANDO_FRAME_END, frame->epoch, frame->turn, 0, keep ? 1 : 0};
    if (frame->bytes > PANDO_FRAME_PAYLOAD) return errno = EMSGSIZE, -1;
    if (frame->bytes == 0) return pando_lane_put_end(lane, &end);
    if (!has_room(lane, end_of(position, frame->bytes, 1))) return 0;
    position = write_frame(lane, position, frame, parts, count);
    atomic_store(&lane->written, write_frame(lane, position, &end, NULL, 0));
    return 1;
}

int pando_lane_starve(struct pando_lane *lane)
{
    atomic_store(&lane->starved, 1);
    return !has_room(lane, write_position(lane) + PANDO_LANE_BYTES / 2);
}

void pando_lane_fed(struct pando_lane *lane)
{
    atomic_store(&lane->starved, 0);
}

static int sane(uint64_t written, uint64_t consumed)
{
    return written - consumed <= PANDO_LANE_BYTES && ((written | consumed) & 7) == 0;
}

/* If the ring makes no sense, its worker is about to be killed. Begin behind that, or else peek would find it again. */
uint64_t pando_lane_join(struct pando_lane *lane)
{
    for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++)
        pando_lane_withdraw(lane, slot, (uint32_t)(atomic_load(&lane->offers[slot]) >> 32));
    atomic_store(&lane->gone, 0);
    atomic_store(&lane->half_closed, 0);
    return atomic_load(&lane->consumed) & ~7ULL;
}

/* One copy, which the compiler may not turn into two reads. */
static void read_header(const struct pando_lane *lane, uint64_t position, struct pando_frame *frame)
{
    memcpy(frame, lane->ring + (position & RING_MASK), HEADER);
    atomic_signal_fence(memory_order_seq_cst);
}

static int acceptable(const struct pando_frame *frame, uint64_t most)
{
    return frame->kind >= PANDO_FRAME_DATA && frame->kind <= PANDO_FRAME_WANT_SOCKET &&
           frame->bytes <= PANDO_FRAME_PAYLOAD && HEADER + padded(frame->bytes) <= most;
}

int pando_lane_peek(const struct pando_lane *lane, uint64_t *position, struct pando_frame *frame, const char **payload)
{
    uint64_t written = atomic_load(&lane->written);
    if (!sane(written, *position)) return -1;
    while (written != *position) {
        uint64_t left = written - *position, tail = PANDO_LANE_BYTES - (*position & RING_MASK);
        int padding = tail < HEADER;
        if (!padding) {
            if (left < HEADER) return -1;
            read_header(lane, *position, frame);
            padding = frame->kind == PANDO_FRAME_PAD;
        }
        if (!padding) {
            *payload = lane->ring + (*position & RING_MASK) + HEADER;
            return acceptable(frame, left < tail ? left : tail) ? 1 : -1;
        }
        if (left < tail) return -1;
        *position += tail;
    }
    return 0;
}

int pando_lane_consume(struct pando_lane *lane, uint64_t *position, const struct pando_frame *frame)
{
    *position += HEADER + padded(frame->bytes);
    atomic_store(&lane->consumed, *position);
    /* One wake-up for each half of the ring, not for each frame. */
    if (!atomic_load(&lane->starved)) return 0;
    if (atomic_load(&lane->written) - *position > PANDO_LANE_BYTES / 2) return 0;
    return atomic_exchange(&lane->starved, 0) != 0;
}
