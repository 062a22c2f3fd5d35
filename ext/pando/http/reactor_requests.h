/* Requests on their way to a worker, and the lanes that bring the answers: queue, dispatch and answer of
 * reactor_private.h, which includes this header. Used by the reactor only. */
#ifndef PANDO_HTTP_REACTOR_REQUESTS_H
#define PANDO_HTTP_REACTOR_REQUESTS_H

#include "channel.h"
#include "reactor_list.h"

#include <stdint.h>

#define PANDO_NONE UINT32_MAX

struct pando_connection;
struct pando_reactor;

enum pando_request_place {
    PANDO_NOWHERE,                      /* there is no request */
    PANDO_QUEUED,
    PANDO_SET_ASIDE,                    /* heavy, in the queue for heavy requests */
    PANDO_OFFERED,                      /* on a lane; its worker may have claimed it */
    PANDO_TAKEN,                        /* by a lane's worker */
};

/* The request of a connection that is in flight. */
struct pando_request {
    uint64_t arrived;                   /* when it joined the queue; nanoseconds */
    uint64_t taken;                     /* when a worker claimed it, as that worker says; 0: not yet, as far as known */
    uint32_t turn;                      /* turn of its offer; the worker's frames carry it */
    uint32_t lane, slot;                /* where it was offered; PANDO_NONE: nowhere */
    uint64_t offered_at;                /* milliseconds */
    uint8_t place;
    uint8_t pool;                       /* whose workers serve it */
    uint8_t staged;                     /* offered to a worker that is or seems busy: others may have it */
    uint8_t claimed;                    /* by its worker; the end of the answer before it may be unread */
    uint8_t answered;
    uint8_t retried;                    /* how often */
    uint8_t informed;                   /* an interim response was sent: no retry, but still a 502 */
    uint8_t heavy;                      /* counts in heavy_served, see reactor_heavy.c */
    uint8_t noted;                      /* its own answer has marked its path as heavy */
    uint8_t lent;                       /* its worker has the socket too; if it dies before it answers, the reactor
                                         * answers */
};

_Static_assert(PANDO_LANE_SLOTS <= 32, "a bit for each slot");

/* Each slot that holds an offer when the loop begins. */
#define PANDO_EACH_OFFER(lane, slot) \
    for (uint32_t rest_ = (lane)->slots, slot; rest_ && (slot = (uint32_t)__builtin_ctz(rest_), 1); rest_ &= rest_ - 1)

/* The requests that wait for the workers of one pool. */
struct pando_reactor_line {
    struct pando_queue queue, heavy;    /* heavy requests that were set aside, see reactor_heavy.c */
    uint32_t offered;                   /* offers not known to be claimed */
    uint32_t told;                      /* the number that was last told to workers */
    uint64_t stale_at;                  /* milliseconds: the last search for stale requests that found none */
};

struct pando_reactor_lane {
    struct pando_lane *shared;
    uint8_t open, dead, corrupt, unreported, again;
    uint8_t roused;                     /* its worker slept, and must be woken for its offers */
    uint8_t ended;                      /* its last request is answered: the worker is about to look for the next */
    uint8_t suspected;                  /* consecutive checks that found its worker asleep with a request taken */
    int wake, socket;
    struct pando_connection *taken;     /* whose request the worker serves, or NULL */
    struct pando_connection *offered[PANDO_LANE_SLOTS]; /* whose requests are on offer, or claimed but not yet
                                                         * `taken`; or NULL */
    uint32_t offers;                    /* number of entries in `offered` */
    uint32_t slots;                     /* the slots in use, one bit each */
    uint32_t pace;                      /* microseconds that its worker is busy with one request, lately; 0: unknown */
    uint64_t stepped_at;                /* milliseconds of its last step: when the request that it took last was offered,
                                         * or when its last answer ended; 0: it was woken and has taken none yet */
    uint64_t last_taken;                /* nanoseconds: when it took its last request, by its own account; 0: it has
                                         * slept since */
    uint64_t position;
    uint64_t seen;                      /* value of `written` when the lane was last read */
    struct pando_connection *blocker;   /* the lane waits until this client takes more */
    uint32_t place;                     /* in reactor->open */
    uint32_t pool, slot, generation;    /* of its worker */
    uint32_t first;                     /* the number of its worker's first lane: its own, unless that has threads */
    uint32_t load, pending;             /* of a first lane: how many of its worker's lanes are busy, and how many of
                                         * them were just woken for a request; see reactor_choice.c */
    uint8_t soon_free;                  /* likewise: whether one of them takes its next request soon */
    uint32_t handed;                    /* likewise: connections that were handed over to its worker, ever */
};

/* reactor_request.c */
/* The queues of all pools. 0, or -1: no memory. */
int pando_reactor_requests_begin(struct pando_reactor *reactor);
void pando_reactor_requests_drop(struct pando_reactor *reactor);
void pando_reactor_request_publish(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_request_expired(struct pando_reactor *reactor, struct pando_connection *connection);
/* Copies everything the worker is to read into the slot. */
void pando_reactor_request_copy(const struct pando_reactor *reactor, const struct pando_connection *connection,
                                struct pando_slot *slot);
/* The request was taken back from a lane, and goes to the front of the queue. */
void pando_reactor_request_wait_again(struct pando_reactor *reactor, struct pando_connection *connection);
/* The connection no longer wants an answer. */
void pando_reactor_request_abandon(struct pando_reactor *reactor, struct pando_connection *connection);
/* The answer is complete, or will not come. */
void pando_reactor_request_settle(struct pando_reactor *reactor, struct pando_connection *connection);
/* The worker has the socket; the reactor keeps it too until the worker begins to answer. */
void pando_reactor_request_lend(struct pando_reactor *reactor, struct pando_connection *connection);
/* Tells its worker if the client has announced the end of its input. */
void pando_reactor_request_half_closed(struct pando_reactor *reactor, const struct pando_connection *connection);
/* There will be no (more) answer: sends 502 or 504, or resets the connection. */
void pando_reactor_request_fail(struct pando_reactor *reactor, struct pando_connection *connection, int status);
/* A worker is gone: its requests are retried or fail. Those it had not claimed go back to the queue. */
void pando_reactor_requests_lost(struct pando_reactor *reactor, uint32_t lane, uint32_t cause);
/* Whether the server drains and no worker is left to take the requests that wait. */
int pando_reactor_deserted(const struct pando_reactor *reactor);
/* Sends 503 to all requests that wait. */
void pando_reactor_requests_give_up(struct pando_reactor *reactor);

/* reactor_dispatch.c */
#define PANDO_PATIENCE 1u               /* milliseconds that a request ahead of a fast worker stays there */
/* Offers waiting requests to idle workers, the most recently busy first. The rest go to busy workers as their next
 * requests, until another worker is idle. */
void pando_reactor_dispatch(struct pando_reactor *reactor);
/* Whether dispatch has something to do. */
int pando_reactor_dispatch_due(struct pando_reactor *reactor);
/* Number of requests that no worker of the pool has claimed, as far as known; and of all pools. */
uint32_t pando_reactor_dispatch_waiting_in(const struct pando_reactor *reactor, uint32_t pool);
/* Takes back a request that its worker has not claimed. 1, or 0: the worker has claimed it. */
int pando_reactor_dispatch_withdraw(struct pando_reactor *reactor, struct pando_connection *connection);
/* The connection gives up its place on a lane, claimed or not. */
void pando_reactor_dispatch_forget(struct pando_reactor *reactor, struct pando_connection *connection);
/* Records which offers the worker has claimed, in the order of the claims. 0: the state of some offer is unreadable. */
int pando_reactor_dispatch_note(struct pando_reactor *reactor, const struct pando_reactor_lane *lane);
/* Checks whether the worker has claimed its next offer. */
void pando_reactor_dispatch_look(struct pando_reactor *reactor, uint32_t lane);
/* Periodically: makes an offer available to others if an idle worker has not claimed it for long. */
void pando_reactor_dispatch_late(struct pando_reactor *reactor);
uint32_t pando_reactor_dispatch_waiting(const struct pando_reactor *reactor);
/* Whether a worker has an offer that it has not claimed, as far as known. */
int pando_reactor_dispatch_offers(const struct pando_reactor *reactor);
/* Tells sleeping workers how many requests wait. */
void pando_reactor_dispatch_tell(struct pando_reactor *reactor);

/* reactor_choice.c: among the lanes of a pool. PANDO_NONE: none */
/* A free slot for the next offer. */
uint32_t pando_reactor_choice_slot(const struct pando_reactor_lane *lane);
/* A connection was handed over to the lane's worker. */
void pando_reactor_choice_handed(struct pando_reactor *reactor, const struct pando_reactor_lane *lane);
/* The lane of an idle worker. Of those with equally many requests and connections the one that has served last: it is the
 * warmest, and the memory of workers that sleep long stays shared. */
uint32_t pando_reactor_choice_idle(struct pando_reactor *reactor, uint32_t pool);
/* The lane of a busy worker that reaches its next request sooner than another would wake up. */
uint32_t pando_reactor_choice_fast(const struct pando_reactor *reactor, uint32_t pool);
/* The busy worker's lane with the fewest requests ahead that may have one more. */
uint32_t pando_reactor_choice_busy(const struct pando_reactor *reactor, uint32_t pool);
/* Whether requests ahead of its worker are as good as taken. */
int pando_reactor_choice_is_fast(const struct pando_reactor_lane *lane);

/* reactor_lanes.c */
/* The reactor owns the descriptors from here on. */
void pando_reactor_lane_open(struct pando_reactor *reactor, const struct pando_reactor_record *order, int wake,
                             int socket, int memory);
void pando_reactor_lane_lost(struct pando_reactor *reactor, uint32_t lane, uint32_t cause);
void pando_reactor_lanes_read(struct pando_reactor *reactor);
/* Whether a lane has frames that were not read. */
int pando_reactor_lanes_pending(const struct pando_reactor *reactor);
/* Stops reading the lane until this client takes more, or until there is more room for answers. */
void pando_reactor_lane_block(struct pando_reactor *reactor, uint32_t lane, struct pando_connection *connection);
/* The lane's blocker takes more again. */
void pando_reactor_lane_unblock(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_lane_corrupt(struct pando_reactor *reactor, uint32_t lane);
void pando_reactor_lane_wake(const struct pando_reactor_lane *lane);
/* Periodically: finds requests that workers have forgotten, and lanes that workers have damaged. */
void pando_reactor_lanes_audit(struct pando_reactor *reactor);
/* Reports corrupt lanes again if the link had no room for the report. */
void pando_reactor_lanes_report(struct pando_reactor *reactor);
void pando_reactor_lanes_drop(struct pando_reactor *reactor);

/* reactor_frames.c */
enum pando_frame_verdict { PANDO_FRAME_DONE, PANDO_FRAME_NOT_NOW };
enum pando_frame_verdict pando_reactor_frame_handle(struct pando_reactor *reactor, uint32_t lane,
                                            const struct pando_frame *frame, const char *payload);

#endif
