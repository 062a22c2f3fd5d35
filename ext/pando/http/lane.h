/* A lane: the memory that the reactor shares with one worker, and with nobody
 * else. The reactor offers the worker a request there, the worker answers it
 * there. The monitor makes a new one for each worker and keeps it while that
 * lives, so that a new reactor finds it.
 *
 * No lock lives here. A request changes hands by one compare-and-swap on a
 * word that names its turn, so that a kill at any instruction leaves a state
 * that the reactor can read and finish. The reactor believes nothing of what it
 * reads here: it keeps what matters in private memory (whose request it offered,
 * how far it has read), and checks indices and lengths once, before it uses
 * them. No Ruby in here; see bind_lane.c. */
#ifndef PANDO_HTTP_LANE_H
#define PANDO_HTTP_LANE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_LANE_SLOTS 32u             /* requests on offer at once */
#define PANDO_SLOT_BYTES 16384u          /* head and body of a request that travels in memory */
#define PANDO_LANE_BYTES 131072u         /* of the ring; a power of two */
#define PANDO_FRAME_PAYLOAD (PANDO_LANE_BYTES / 4 - 96)
#define PANDO_LANE_RESERVE 64u           /* kept free for what ends a response, so that it never waits for a slow client */

enum pando_slot_flag {
    PANDO_SLOT_BODY_IN_FILE = 1,         /* the reactor passes a descriptor over the lane's socket on demand */
    PANDO_SLOT_ALL_IN_FILE = 2,          /* the head too, in its first head_bytes, for it did not fit; data[] is empty */
    PANDO_SLOT_RETRY = 4,                /* another worker died of it, or beside it */
    PANDO_SLOT_CHUNKED = 8,              /* the body came chunked; here it is plain */
    PANDO_SLOT_LAST = 16,                /* the connection ends with this answer: connection: close */
    PANDO_SLOT_HALF_CLOSED = 64,         /* the client sends no more; it may still wait for the answer */
    PANDO_SLOT_STREAMED = 128,           /* only the head is here: the worker is to take the socket and read on */
};

/* A request on offer. The reactor fills it and never reads it; the worker copies it once. */
struct pando_slot {
    uint32_t epoch;                      /* of the reactor that offers it */
    uint32_t turn;
    uint32_t head_bytes;                 /* of data[], the request line and fields, with the empty line */
    uint32_t body_bytes;                 /* behind the head in data[], if not in a file */
    uint64_t file_bytes;                 /* of the whole file, body or head and body */
    uint64_t arrived;                    /* CLOCK_MONOTONIC nanoseconds: when it was complete */
    uint32_t listener;                   /* number of the listener it came by */
    uint32_t flags;
    char remote[48];                     /* the client's address, terminated; empty on a UNIX socket */
    _Alignas(64) char data[PANDO_SLOT_BYTES];
};

/* The low half of an offer; the turn of the request is its high half. */
enum pando_offer {
    PANDO_OFFER_NONE = 0,                /* the slot is the reactor's */
    PANDO_OFFER_MADE = 1,                /* the worker may claim it, the reactor may withdraw it */
    PANDO_OFFER_CLAIMED = 2,             /* the worker's; it copies the slot */
    PANDO_OFFER_COPIED = 3,              /* the slot is the reactor's again, for the next offer */
    PANDO_OFFER_DAMAGED = 4,             /* nothing of all this; never stored */
};

/* A frame on a lane. Its payload follows, padded to 8 bytes. A frame never wraps: PAD fills the end of the ring, and
 * where there is no room for a PAD both sides skip the end. Reader and writer of this is lane.c alone. */
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
    uint32_t epoch;                      /* as in the slot, like the turn: a late frame of an earlier request is dropped */
    uint32_t turn;
    uint32_t bytes;                      /* of payload */
    uint64_t value;
};

#define PANDO_LANE_PAGE 65536 /* a multiple of every page size */

struct pando_lane {
    /* the reactor's: its worker maps it read-only */
    uint64_t magic;
    _Alignas(64) _Atomic uint32_t gone;      /* the turn that nobody waits for any more */
    _Atomic uint32_t half_closed;            /* the turn whose client sends no more */
    _Alignas(64) _Atomic uint64_t consumed;  /* bytes ever */
    struct pando_slot slots[PANDO_LANE_SLOTS];
    char unused[PANDO_LANE_PAGE - (192 + PANDO_LANE_SLOTS * sizeof(struct pando_slot)) % PANDO_LANE_PAGE];

    /* the worker's */
    _Alignas(64) _Atomic uint64_t offers[PANDO_LANE_SLOTS]; /* of each slot: turn << 32 | enum pando_offer */
    _Alignas(64) _Atomic uint32_t asleep;    /* it waits for its eventfd */
    _Atomic uint32_t closed;                 /* it wants no request */
    _Atomic uint64_t idle_since;             /* nanoseconds; the latest is woken first */
    _Alignas(64) _Atomic uint64_t written;   /* bytes ever */
    _Alignas(64) _Atomic uint32_t starved;   /* it waits for room: wake it when there is some */
    _Alignas(64) _Atomic uint64_t taken[PANDO_LANE_SLOTS]; /* nanoseconds: when it claimed what is in the slot */
    _Alignas(64) char ring[PANDO_LANE_BYTES];
};

_Static_assert(offsetof(struct pando_lane, offers) % PANDO_LANE_PAGE == 0, "what is the worker's is on pages of its own");

/* A sealed memfd (close-on-exec) for one lane; or -1 with errno. */
int pando_lane_create(void);
/* For the reactor and the worker, no one else. No child of a process has what that has mapped. NULL with errno. */
struct pando_lane *pando_lane_map(int fd);
/* By its worker, before it does anything else with it: what is not its own is read-only. 0, or -1 with errno. */
int pando_lane_guard(struct pando_lane *lane);
void pando_lane_unmap(struct pando_lane *lane);

/* --- the reactor's side --- */

/* Where to begin reading, at LANE_OPEN; what another reactor offered is taken back. Its frames may still be there. */
uint64_t pando_lane_join(struct pando_lane *lane);
/* Whether a slot is the reactor's: after the worker has copied what was offered before, or before anything was. */
int pando_lane_has_room(const struct pando_lane *lane, uint32_t slot);
/* Offers what was put into the slot. Afterwards the lane is to be roused. Turns grow, until they begin anew. */
void pando_lane_offer(struct pando_lane *lane, uint32_t slot, uint32_t turn);
/* Takes an offer back and wipes the slot: 1, or 0 if the worker was faster. */
int pando_lane_withdraw(struct pando_lane *lane, uint32_t slot, uint32_t turn);
/* The state of the offer with this turn, the slot's last one. */
enum pando_offer pando_lane_offered(const struct pando_lane *lane, uint32_t slot, uint32_t turn);
/* The worker slept and is to be woken by a write to its eventfd: 1, once. Choose the lane with the latest idle_since. */
int pando_lane_rouse(struct pando_lane *lane);
/* Next frame of a lane after `position` (the reactor's own count). 1: frame and payload are set (payload points into
 * the ring: read it once), position not yet moved; 0: nothing; -1: the lane is corrupt. PAD frames are skipped.
 * Kind and length of a frame are checked here; whose it is, is the caller's to check. */
int pando_lane_peek(const struct pando_lane *lane, uint64_t *position, struct pando_frame *frame, const char **payload);
/* Moves position behind that frame and gives its room back; 1: the worker waits for room, write to its eventfd. */
int pando_lane_consume(struct pando_lane *lane, uint64_t *position, const struct pando_frame *frame);

/* --- the worker's side --- */

/* Claims the oldest request on offer: its slot, or -1 if there is none. `last` is the turn that was claimed last, or 0. */
int pando_lane_claim(struct pando_lane *lane, uint32_t last, uint32_t *turn);
/* The slot was copied. */
void pando_lane_copied(struct pando_lane *lane, uint32_t slot, uint32_t turn);
/* Whether a request is on offer. */
int pando_lane_offers(const struct pando_lane *lane);
/* 1: nothing is on offer, the reactor will wake this lane. 0: something is. Requests are welcome from now on. */
int pando_lane_sleep(struct pando_lane *lane, uint64_t now);
/* In that time: behind the times of all who merely sleep. */
#define PANDO_LANE_FIRST (1ULL << 63)
/* Is woken first, until it sleeps anew. */
void pando_lane_step_forward(struct pando_lane *lane, uint64_t now);
/* Is woken only if nobody else can be, until it sleeps anew. */
void pando_lane_step_back(struct pando_lane *lane, uint64_t now);
/* Needs no waking. Before claim, so that no wake-up is spent on it. */
void pando_lane_awake(struct pando_lane *lane);
/* Wants no request until it sleeps anew, and gives back what is on offer: 1 if there was something. */
int pando_lane_close(struct pando_lane *lane);
/* Puts a frame with its payload gathered from parts: 1; 0 when there is no room now; -1 (EMSGSIZE) if payload is larger
 * than PANDO_FRAME_PAYLOAD. Afterwards pando_channel_rouse_reactor. */
struct iovec;
int pando_lane_put(struct pando_lane *lane, const struct pando_frame *frame, const struct iovec *parts, size_t count);
/* Puts a frame that ends a response (END, ABORT), without a payload; it may use the reserve. 1 or 0. */
int pando_lane_put_end(struct pando_lane *lane, const struct pando_frame *frame);
/* As pando_lane_put, and END behind it, seen by the reactor at once. */
int pando_lane_put_last(struct pando_lane *lane, const struct pando_frame *frame, const struct iovec *parts,
                        size_t count, int keep);
/* There was no room: 1: wait for the eventfd; 0: meanwhile there is room for any frame. */
int pando_lane_starve(struct pando_lane *lane);
/* Waits no more. */
void pando_lane_fed(struct pando_lane *lane);

#endif
