/* A lane: the memory that the reactor shares with one worker only, or with one thread of a worker that has several. The
 * reactor offers requests there, and the worker answers them there. The monitor makes a new lane for each worker and
 * keeps it as long as the worker lives, so that a new reactor finds it.
 *
 * A lane has no lock. A request changes hands by one compare-and-swap on a word that names its turn, so that a kill
 * at any instruction leaves a state that the reactor can read and finish. The reactor trusts nothing that it reads
 * here: it keeps what matters in private memory (whose request it offered, how far it has read), and checks indices
 * and lengths once, before it uses them. No Ruby in here; see bind_lane.c. */
#ifndef PANDO_HTTP_LANE_H
#define PANDO_HTTP_LANE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_LANE_SLOTS 32u             /* requests on offer at once */
#define PANDO_SLOT_BYTES 16384u          /* head and body of a request that travels in memory */
#define PANDO_LANE_BYTES 131072u         /* size of the ring; a power of two */
#define PANDO_FRAME_PAYLOAD (PANDO_LANE_BYTES / 4 - 96)
#define PANDO_LANE_LOCK (1u << 31)       /* a further request waits until no thread has or wants the interpreter lock */
#define PANDO_LANE_RESERVE 64u           /* kept free for the frame that ends a response, so that it never waits for a
                                          * slow client */

enum pando_slot_flag {
    PANDO_SLOT_BODY_IN_FILE = 1,         /* the reactor passes a descriptor over the lane's socket on demand */
    PANDO_SLOT_ALL_IN_FILE = 2,          /* the head did not fit either: the file's first head_bytes hold it, data[]
                                          * is empty */
    PANDO_SLOT_RETRY = 4,                /* another worker died while serving it */
    PANDO_SLOT_CHUNKED = 8,              /* the body came chunked; here it is decoded */
    PANDO_SLOT_LAST = 16,                /* the connection ends with this answer: connection: close */
    PANDO_SLOT_HALF_CLOSED = 64,         /* the client has half-closed; it may still wait for the answer */
    PANDO_SLOT_STREAMED = 128,           /* only the head is here: the worker takes the socket and reads on */
};

/* A request on offer. The reactor fills the slot and never reads it; the worker copies it once. half_closed is
 * read and written later, too. */
struct pando_slot {
    uint32_t epoch;                      /* of the reactor that offers it */
    uint32_t turn;
    uint32_t head_bytes;                 /* of data[]: request line, fields and the empty line */
    uint32_t body_bytes;                 /* behind the head in data[], unless in a file */
    uint64_t file_bytes;                 /* of the whole file: the body, or head and body */
    uint64_t arrived;                    /* CLOCK_MONOTONIC nanoseconds: when the request was complete */
    uint32_t listener;                   /* number of the listener that accepted it */
    uint32_t flags;
    char remote[48];                     /* the client's address, terminated; empty on a UNIX socket */
    uint64_t body_time;                  /* nanoseconds from the end of the head to that of the body; 0: no body */
    _Atomic uint32_t half_closed;        /* the turn offered here whose client has half-closed since */
    _Alignas(64) char data[PANDO_SLOT_BYTES];
};

/* The low half of an offer's word; the high half is the turn of the request. */
enum pando_offer {
    PANDO_OFFER_NONE = 0,                /* the slot is the reactor's */
    PANDO_OFFER_MADE = 1,                /* the worker may claim it, the reactor may withdraw it */
    PANDO_OFFER_CLAIMED = 2,             /* the slot is the worker's, which copies it */
    PANDO_OFFER_COPIED = 3,              /* the slot is the reactor's again, for the next offer */
    PANDO_OFFER_DAMAGED = 4,             /* none of these; never stored */
};

/* A frame on a lane, followed by its payload, padded to 8 bytes. A frame never wraps: PAD fills the end of the ring,
 * and where a PAD does not fit, both sides skip the end. Only lane_frames.c reads and writes this. */
enum pando_frame_kind {
    PANDO_FRAME_PAD = 1,
    PANDO_FRAME_DATA = 2,                /* bytes of the response, head and body, as they go to the client; `value` 1:
                                          * a whole interim response, after which any other may come */
    PANDO_FRAME_END = 3,                 /* the response is complete; `value` 1: the connection may be kept */
    PANDO_FRAME_ABORT = 4,               /* it cannot be finished: reset the connection if a byte was sent, else 502.
                                          * `value`: the status that the worker has sent on the socket that it has */
    PANDO_FRAME_FILE = 5,                /* a descriptor waits on the lane's socket: send `value` bytes of it from
                                          * offset 0 */
    PANDO_FRAME_WANT_FILE = 6,           /* asks for the request's file */
    PANDO_FRAME_WANT_SOCKET = 7,         /* hijack: asks for the client's socket once everything before is sent; the
                                          * reactor then drops the connection, with a STREAMED request not before END
                                          * or ABORT */
};

struct pando_frame {
    uint32_t kind;
    uint32_t epoch;                      /* as in the slot, like the turn: a late frame of an earlier request is
                                          * dropped */
    uint32_t turn;
    uint32_t bytes;                      /* of payload */
    uint64_t value;
};

#define PANDO_LANE_PAGE 65536 /* a multiple of every page size */

struct pando_lane {
    /* The first part: the worker maps it read-only. */
    uint64_t magic;
    _Alignas(64) _Atomic uint32_t gone;      /* the turn that nobody waits for any more */
    _Atomic uint32_t half_closed;            /* the turn that its worker has and whose client has half-closed, as soon
                                              * as the slot may hold another */
    _Atomic uint32_t pool;                   /* the number of its worker's pool */
    _Alignas(64) _Atomic uint64_t consumed;  /* bytes ever */
    struct pando_slot slots[PANDO_LANE_SLOTS];
    char unused[PANDO_LANE_PAGE - (192 + PANDO_LANE_SLOTS * sizeof(struct pando_slot)) % PANDO_LANE_PAGE];

    /* The second part: the worker writes it; the reactor also writes the words offers, asleep and starved. */
    _Alignas(64) _Atomic uint64_t offers[PANDO_LANE_SLOTS]; /* one word for each slot: turn << 32 | enum pando_offer */
    _Alignas(64) _Atomic uint32_t asleep;    /* it waits for its eventfd */
    _Atomic uint32_t closed;                 /* it accepts no requests */
    _Atomic uint64_t idle_since;             /* nanoseconds; the reactor wakes the latest first */
    _Atomic uint32_t lock_users;             /* PANDO_LANE_LOCK and the number of its process's threads that have or
                                              * want the interpreter lock, on a worker's first lane; 0: nobody counts */
    _Atomic uint32_t cut;                    /* the turn whose answer it does not finish, because the worker leaves */
    _Atomic uint64_t connections;            /* that its application has taken over, likewise: how many ever << 32 | how
                                              * many are open, as of now and then */
    _Alignas(64) _Atomic uint64_t written;   /* bytes ever */
    _Alignas(64) _Atomic uint32_t starved;   /* it waits for room: wake it when there is some */
    _Alignas(64) _Atomic uint64_t taken[PANDO_LANE_SLOTS]; /* nanoseconds: when it claimed the request in the slot */
    _Alignas(64) char ring[PANDO_LANE_BYTES];
};

_Static_assert(offsetof(struct pando_lane, offers) % PANDO_LANE_PAGE == 0,
               "what is the worker's is on pages of its own");

/* A sealed memfd (close-on-exec) for one lane, or -1 with errno. */
int pando_lane_create(void);
/* Maps the lane, in the reactor or its worker only. Children do not inherit the mapping. NULL with errno. */
struct pando_lane *pando_lane_map(int fd);
/* The worker calls this first: what it may not write becomes read-only. 0, or -1 with errno. */
int pando_lane_guard(struct pando_lane *lane);
void pando_lane_unmap(struct pando_lane *lane);

/* --- the reactor's side --- */

/* Returns where to begin reading, at LANE_OPEN, and takes back what another reactor offered. That one's frames may
 * still be there. */
uint64_t pando_lane_join(struct pando_lane *lane);
/* Whether the slot is the reactor's: nothing was offered there yet, or the worker has copied it. */
int pando_lane_has_room(const struct pando_lane *lane, uint32_t slot);
/* Offers the request in the slot. The caller must then rouse the lane. Turns grow, until they wrap. */
void pando_lane_offer(struct pando_lane *lane, uint32_t slot, uint32_t turn);
/* Takes an offer back and wipes the slot: 1, or 0 if the worker has claimed it. */
int pando_lane_withdraw(struct pando_lane *lane, uint32_t slot, uint32_t turn);
/* The state of the offer with this turn, the slot's last one. */
enum pando_offer pando_lane_offered(const struct pando_lane *lane, uint32_t slot, uint32_t turn);
/* 1, once: the worker slept and must be woken by a write to its eventfd. Choose the lane with the latest idle_since. */
int pando_lane_rouse(struct pando_lane *lane);
/* The next frame of a lane after `position`, which is the reactor's own count. 1: frame and payload are set (payload
 * points into the ring: read it once), position has not moved yet; 0: no frame; -1: the lane is corrupt. Skips PAD
 * frames. Checks kind and length of a frame; the caller must check which request it is about. */
int pando_lane_peek(const struct pando_lane *lane, uint64_t *position, struct pando_frame *frame, const char **payload);
/* Moves position behind that frame and frees its room. 1: the worker waits for room, write to its eventfd. */
int pando_lane_consume(struct pando_lane *lane, uint64_t *position, const struct pando_frame *frame);

/* --- the worker's side --- */

/* Claims the oldest request on offer: its slot, or -1 if there is none. `last` is the last turn claimed, or 0. */
int pando_lane_claim(struct pando_lane *lane, uint32_t last, uint32_t *turn);
/* The worker has copied the slot. */
void pando_lane_copied(struct pando_lane *lane, uint32_t slot, uint32_t turn);
/* Whether the client of the request with this turn, claimed in the slot, has half-closed since the offer. */
int pando_lane_half_closed(const struct pando_lane *lane, uint32_t slot, uint32_t turn);
/* Whether a request is on offer. */
int pando_lane_offers(const struct pando_lane *lane);
/* 1: nothing is on offer, and the reactor will wake this lane. 0: a request is on offer. The lane accepts requests
 * from now on. */
int pando_lane_sleep(struct pando_lane *lane, uint64_t now);
/* The reactor wakes this lane only if it can wake no other, until it sleeps again. */
void pando_lane_step_back(struct pando_lane *lane, uint64_t now);
/* The worker needs no wake-up. Call it before claim, so that no wake-up is wasted. */
void pando_lane_awake(struct pando_lane *lane);
/* Accepts no requests until it sleeps again, and gives back what is on offer: 1 if there was something. */
int pando_lane_close(struct pando_lane *lane);
/* Puts a frame with a payload gathered from parts: 1; 0: no room now; -1 (EMSGSIZE): the payload is larger than
 * PANDO_FRAME_PAYLOAD. Call pando_channel_rouse_reactor afterwards. */
struct iovec;
int pando_lane_put(struct pando_lane *lane, const struct pando_frame *frame, const struct iovec *parts, size_t count);
/* Puts a frame that ends a response (END, ABORT), without a payload; it may use the reserve. 1 or 0. */
int pando_lane_put_end(struct pando_lane *lane, const struct pando_frame *frame);
/* Like pando_lane_put, followed by END; the reactor sees both at once. */
int pando_lane_put_last(struct pando_lane *lane, const struct pando_frame *frame, const struct iovec *parts,
                        size_t count, int keep);
/* After a put found no room. 1: wait for the eventfd; 0: by now there is room for any frame. */
int pando_lane_starve(struct pando_lane *lane);
/* The worker no longer waits for room. */
void pando_lane_fed(struct pando_lane *lane);

#endif
