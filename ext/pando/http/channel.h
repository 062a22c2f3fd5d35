/* The channel between the reactor and the workers: one shared mapping with one
 * queue of complete requests (reactor to workers) and a lane back from each
 * worker (responses). The monitor makes it and keeps it, so that a new reactor
 * and a new worker find it.
 *
 * No lock lives here. A request changes hands by one compare-and-swap that
 * names the claimant, so that a kill at any instruction leaves a state that the
 * reactor can read and finish. Neither side believes the other: indices and
 * lengths are checked once, copied, and used. The reactor keeps what matters in
 * private memory (which connection a slot belongs to, how far it has read).
 *
 * No Ruby in here; see bind_channel.c. */
#ifndef PANDO_HTTP_CHANNEL_H
#define PANDO_HTTP_CHANNEL_H

#include "stats.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_CHANNEL_SLOTS 1024u        /* requests queued or being served; a power of two */
#define PANDO_CHANNEL_QUEUE 4096u        /* turns in the queue, withdrawn ones included; a power of two */
#define PANDO_CHANNEL_LANES 1024u        /* workers at once, those that are being replaced included */
#define PANDO_SLOT_BYTES 16384u          /* head and body of a request that travels in memory */
#define PANDO_LANE_BYTES 131072u         /* a power of two */
#define PANDO_FRAME_PAYLOAD (PANDO_LANE_BYTES / 4 - 96)
#define PANDO_LANE_RESERVE 64u           /* kept free for what ends a response, so that it never waits for a slow client */

/* What a request slot's claim says in its low half; any other value is the lane of its claimant. */
#define PANDO_CLAIM_OFFERED 0xffffffffu  /* in the queue */
#define PANDO_CLAIM_FREE 0xfffffffeu     /* the reactor's */

enum pando_slot_flag {
    PANDO_SLOT_BODY_IN_FILE = 1,         /* the reactor passes a descriptor over the lane's socket on demand */
    PANDO_SLOT_ALL_IN_FILE = 2,          /* the head too, in its first head_bytes, for it did not fit; data[] is empty */
    PANDO_SLOT_RETRY = 4,                /* another worker died of it, or beside it */
    PANDO_SLOT_CHUNKED = 8,              /* the body came chunked; here it is plain */
    PANDO_SLOT_LAST = 16,                /* the connection ends with this answer: connection: close */
    PANDO_SLOT_GONE = 32,                /* set while it is served: nobody waits for the answer any more */
    PANDO_SLOT_HALF_CLOSED = 64,         /* at any time: the client sends no more; it may still wait for the answer */
    PANDO_SLOT_STREAMED = 128,           /* only the head is here: the worker is to take the socket and read on */
};

struct pando_slot {
    _Alignas(64) _Atomic uint64_t claim; /* turn << 32 | PANDO_CLAIM_* or lane */
    uint32_t head_bytes;                 /* of data[], the request line and fields, with the empty line */
    uint32_t body_bytes;                 /* behind the head in data[], if not in a file */
    uint64_t file_bytes;                 /* of the whole file, body or head and body */
    uint64_t arrived;                    /* CLOCK_MONOTONIC nanoseconds: when it was complete */
    uint32_t listener;                   /* number of the listener it came by */
    uint32_t flags;                      /* atomic as soon as it is published */
    _Atomic uint64_t taken;              /* as arrived: when a worker took it, by that; for the statistics alone */
    char remote[48];                     /* the client's address, terminated; empty on a UNIX socket */
    _Alignas(64) char data[PANDO_SLOT_BYTES];
};

/* A frame on a lane. Its payload follows, padded to 8 bytes. A frame never wraps: PAD fills the end of the ring, and
 * where there is no room for a PAD both sides skip the end. Reader and writer of this is channel.c alone. */
enum pando_frame_kind {
    PANDO_FRAME_PAD = 1,
    PANDO_FRAME_DATA = 2,                /* bytes of the response, head and body as they go to the client; `value` 1:
                                          * a whole interim response, behind which any other may come */
    PANDO_FRAME_END = 3,                 /* the response is whole; `value` 1: the connection may be kept */
    PANDO_FRAME_ABORT = 4,               /* it cannot be finished: reset the connection if a byte was sent, else 502 */
    PANDO_FRAME_FILE = 5,                /* a descriptor waits on the lane's socket: `value` bytes of it from offset 0 */
    PANDO_FRAME_WANT_FILE = 6,           /* pass me the request's file */
    PANDO_FRAME_WANT_SOCKET = 7,         /* hijack: pass me the connection when all before is sent, and forget it; that of
                                          * a STREAMED request not before END or ABORT */
};

struct pando_frame {
    uint32_t kind;
    uint32_t slot;
    uint32_t turn;                       /* of the slot's claim: a late frame of an earlier request is dropped */
    uint32_t bytes;                      /* of payload */
    uint64_t value;
};

struct pando_lane {
    _Alignas(64) _Atomic uint32_t asleep;    /* the worker waits for its eventfd */
    _Atomic uint64_t idle_since;             /* nanoseconds; the latest is woken first */
    _Alignas(64) _Atomic uint64_t written;   /* bytes ever, by the worker */
    _Alignas(64) _Atomic uint64_t consumed;  /* bytes ever, by the reactor */
    _Atomic uint32_t starved;                /* the worker waits for room: wake it when there is some */
    _Alignas(64) char ring[PANDO_LANE_BYTES];
};

struct pando_channel_shared {
    uint64_t magic;
    _Alignas(64) _Atomic uint32_t reactor_asleep;
    _Atomic uint64_t epoch;                  /* which reactor: counts up with each */
    _Atomic uint32_t draining;               /* by the reactor: no connection is kept any more */
    _Alignas(64) _Atomic uint64_t published; /* turns ever put into the queue, by the reactor */
    _Alignas(64) _Atomic uint64_t taken;     /* turns ever passed, by whoever comes next */
    _Alignas(64) _Atomic uint64_t queue[PANDO_CHANNEL_QUEUE]; /* turn << 32 | slot */
    struct pando_slot slots[PANDO_CHANNEL_SLOTS];
    struct pando_lane lanes[PANDO_CHANNEL_LANES];
    _Alignas(64) struct pando_stats stats;
};

struct pando_channel {
    struct pando_channel_shared *shared;
    uint64_t turns;                          /* the reactor's own count of `published`, which others could change */
    int fd;
};

/* 0, or -1 with errno. create makes and seals a memfd (close-on-exec); attach maps another's. */
int pando_channel_create(struct pando_channel *channel);
int pando_channel_attach(struct pando_channel *channel, int fd);
void pando_channel_unmap(struct pando_channel *channel);

/* --- the reactor's side --- */

/* A new reactor: everything queued or claimed before belongs to nobody any more. Before anything else on this side. */
uint64_t pando_channel_new_epoch(struct pando_channel *channel);
/* Offers a filled slot to the workers; returns its turn, never 0. The slot must be the reactor's, or its claimant dead.
 * 0: the queue is full of withdrawn turns behind one that no worker comes to take; nothing was done (answer 503).
 * Afterwards wake a sleeping lane: pando_lane_rouse. */
uint32_t pando_channel_publish(struct pando_channel *channel, uint32_t slot);
/* Takes an offered slot back (the client went, its time in the queue is over): 1, or 0 if a worker was faster. */
int pando_channel_withdraw(struct pando_channel *channel, uint32_t slot, uint32_t turn);
/* Who has it: PANDO_CLAIM_OFFERED, PANDO_CLAIM_FREE or a lane (checked); turn must match, else PANDO_CLAIM_FREE.
 * FREE for a slot that was published and not released: a worker has damaged the claim. */
uint32_t pando_channel_claimant(const struct pando_channel *channel, uint32_t slot, uint32_t turn);
/* The response is through: the slot is the reactor's again, whatever its claim says. A worker that still answers sees
 * it at its next frame and stops. Not for a slot on offer: withdraw that. */
void pando_channel_release(struct pando_channel *channel, uint32_t slot);
/* How many wait in the queue at most; 0: none. A wake-up can be lost with the worker that got it: whenever the reactor
 * wakes (LANE_DEAD, LANE_CLOSE, eventfd, tick) and this is not 0, it rouses a sleeping lane. */
uint32_t pando_channel_depth(const struct pando_channel *channel);
/* The worker slept and is to be woken by a write to its eventfd: 1, once. Choose the lane with the latest idle_since. */
int pando_lane_rouse(struct pando_lane *lane);
/* Where to begin reading, at LANE_OPEN. Frames of earlier requests may still be there; their turns tell. */
uint64_t pando_lane_join(struct pando_lane *lane);
/* Next frame of a lane after `position` (the reactor's own count). 1: frame and payload are set (payload points into
 * the ring: read it once), position not yet moved; 0: nothing; -1: the lane is corrupt. PAD frames are skipped.
 * Kind, slot and length of a frame are checked here; whether slot and turn are this lane's is the caller's to check. */
int pando_lane_peek(const struct pando_lane *lane, uint64_t *position, struct pando_frame *frame, const char **payload);
/* Moves position behind that frame and gives its room back; 1: the worker waits for room, write to its eventfd. */
int pando_lane_consume(struct pando_lane *lane, uint64_t *position, const struct pando_frame *frame);
/* Drops all frames, after a lane was corrupt and its worker is gone; result as of consume. */
int pando_lane_skip(struct pando_lane *lane, uint64_t *position);

/* --- the worker's side --- */

/* Claims the oldest offered request for this lane: its slot, or -1 when there is none. */
int pando_channel_take(struct pando_channel *channel, uint32_t lane, uint32_t *turn);
/* Whether there is one. */
int pando_channel_offers(struct pando_channel *channel);
/* How many there are at most. For anybody, as nothing is repaired on the way. */
uint32_t pando_channel_waiting(const struct pando_channel *channel);
/* Whether a claim still stands: not after a release, or when a new reactor began. What was read of a slot counts only
 * if this holds afterwards. */
int pando_channel_holds(const struct pando_channel *channel, uint32_t slot, uint32_t turn, uint32_t lane);
/* 1: nothing is on offer, the reactor will wake this lane. 0: something is. */
int pando_lane_sleep(struct pando_channel *channel, struct pando_lane *lane, uint64_t now);
/* In that time: behind the times of all who merely sleep. */
#define PANDO_LANE_FIRST (1ULL << 63)
/* Is woken first, until it sleeps anew. */
void pando_lane_step_forward(struct pando_lane *lane, uint64_t now);
/* Is woken only if nobody else can be, until it sleeps anew. */
void pando_lane_step_back(struct pando_lane *lane, uint64_t now);
/* Needs no waking. Before take, so that no wake-up is spent on it. */
void pando_lane_awake(struct pando_lane *lane);
/* Puts a frame with its payload gathered from parts: 1; 0 when there is no room now; -1 (EMSGSIZE) if payload is larger
 * than PANDO_FRAME_PAYLOAD. Afterwards pando_channel_rouse_reactor. */
struct iovec;
int pando_lane_put(struct pando_lane *lane, const struct pando_frame *frame, const struct iovec *parts, size_t count);
/* What ends a response (END, ABORT), without a payload; it may use the reserve. 1 or 0. */
int pando_lane_put_end(struct pando_lane *lane, const struct pando_frame *frame);
/* As pando_lane_put, and END behind it, seen by the reactor at once. */
int pando_lane_put_last(struct pando_lane *lane, const struct pando_frame *frame, const struct iovec *parts,
                        size_t count, int keep);
/* There was no room: 1: wait for the eventfd; 0: meanwhile there is room for any frame. */
int pando_lane_starve(struct pando_lane *lane);
/* Waits no more. */
void pando_lane_fed(struct pando_lane *lane);
/* The reactor slept and is to be woken by a write to its eventfd: 1, once. */
int pando_channel_rouse_reactor(struct pando_channel *channel);
/* A process that died may have left a lane anyhow: to be called by its next owner before it is used. Whole frames of
 * the former owner stay for the reactor to read. (Lanes are given out in turns, the longest unused first, so that the
 * reactor knows of a death long before the number comes back.) */
void pando_lane_reset(struct pando_lane *lane);

#endif
