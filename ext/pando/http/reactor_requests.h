/* Requests on their way to a worker, and the lanes that the answers come by. Of reactor_private.h, for the parts that
 * speak to workers. */
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
    PANDO_SET_ASIDE,                    /* as heavy: in the queue of these */
    PANDO_OFFERED,                      /* on a lane; its worker may have claimed it */
    PANDO_TAKEN,                        /* by the worker of a lane */
};

/* The request of a connection that is in flight. */
struct pando_request {
    uint64_t arrived;                   /* in the queue; nanoseconds */
    uint64_t taken;                     /* by a worker, as that says; 0: not yet, as far as we know */
    uint32_t turn;                      /* of its offer, under which the worker answers */
    uint32_t lane, slot;                /* where it was offered; PANDO_NONE: nowhere */
    uint64_t offered_at;                /* milliseconds */
    uint8_t place;
    uint8_t staged;                     /* offered to a worker that is, or seems, busy: others may have it */
    uint8_t claimed;                    /* by its worker; the end of what that took before may be unread */
    uint8_t answered, retried;
    uint8_t informed;                   /* of an interim response: no second try, but still a 502 */
    uint8_t heavy;                      /* counted among those that are served, see reactor_heavy.c */
    uint8_t noted;                      /* the path of this one is heavy for its own answer */
    uint8_t lent;                       /* its worker has the socket too: ours if that dies before it answers */
};

_Static_assert(PANDO_LANE_SLOTS <= 32, "a bit for each slot");

/* Each slot that holds an offer, as of the beginning. */
#define PANDO_EACH_OFFER(lane, slot) \
    for (uint32_t rest_ = (lane)->slots, slot; rest_ && (slot = (uint32_t)__builtin_ctz(rest_), 1); rest_ &= rest_ - 1)

struct pando_reactor_lane {
    struct pando_lane *shared;
    uint8_t open, dead, corrupt, unreported, again;
    uint8_t roused;                     /* it slept, and is to be woken for what it was offered */
    uint8_t ended;                      /* the last that it took is answered: it is about to look for another */
    uint8_t suspected;                  /* looks in a row that found its worker asleep, and a request taken */
    int wake, socket;
    struct pando_connection *taken;     /* whose request the worker serves, or NULL */
    struct pando_connection *offered[PANDO_LANE_SLOTS]; /* whose are on offer, or claimed and not yet `taken`; or NULL */
    uint32_t offers;                    /* how many these are */
    uint32_t slots;                     /* that these are in: a bit for each */
    uint32_t pace;                      /* microseconds from one request to the next, lately; 0: not known */
    uint64_t last_taken;                /* nanoseconds: when it took the last one, by its own word; 0: it has slept since */
    uint64_t position;
    uint64_t seen;                      /* `written` when it was last read */
    struct pando_connection *blocker;   /* takes no more for now */
    uint32_t place;                     /* in reactor->open */
};

/* reactor_request.c */
void pando_reactor_request_publish(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_request_expired(struct pando_reactor *reactor, struct pando_connection *connection);
/* Copies all that its worker is to read. */
void pando_reactor_request_copy(const struct pando_reactor *reactor, const struct pando_connection *connection,
                                struct pando_slot *slot);
/* It was taken back from a lane, and goes on waiting, before all others. */
void pando_reactor_request_wait_again(struct pando_reactor *reactor, struct pando_connection *connection);
/* The connection has no more interest in its request. */
void pando_reactor_request_abandon(struct pando_reactor *reactor, struct pando_connection *connection);
/* Its answer is through, or will not come. */
void pando_reactor_request_settle(struct pando_reactor *reactor, struct pando_connection *connection);
/* Its worker has the socket, and we keep it until that begins to answer. */
void pando_reactor_request_lend(struct pando_reactor *reactor, struct pando_connection *connection);
/* Its client has announced its end. */
void pando_reactor_request_half_closed(struct pando_reactor *reactor, const struct pando_connection *connection);
/* There will be no (more) answer: 502 or 504, or a reset. */
void pando_reactor_request_fail(struct pando_reactor *reactor, struct pando_connection *connection, int status);
/* The requests of a worker that is gone; those that it had not claimed are offered to others. */
void pando_reactor_requests_lost(struct pando_reactor *reactor, uint32_t lane, uint32_t cause);
/* Draining, and no worker is left: nobody will take what waits. */
int pando_reactor_deserted(const struct pando_reactor *reactor);
/* 503 for all that waits. */
void pando_reactor_requests_give_up(struct pando_reactor *reactor);

/* reactor_dispatch.c */
#define PANDO_PATIENCE 1u               /* milliseconds that a request ahead of a fast worker stays there */
/* Gives what waits to workers, those that were busy last first; what no idle worker can have, to busy ones as their
 * next, until one is idle. */
void pando_reactor_dispatch(struct pando_reactor *reactor);
/* Whether there is something to do for dispatch. */
int pando_reactor_dispatch_due(const struct pando_reactor *reactor);
/* Takes a request back that its worker has not claimed. 1, or 0: it has. */
int pando_reactor_dispatch_withdraw(struct pando_reactor *reactor, struct pando_connection *connection);
/* The connection gives up its place on a lane, claimed or not. */
void pando_reactor_dispatch_forget(struct pando_reactor *reactor, struct pando_connection *connection);
/* Notes which of them the worker has claimed; none without those before it. 0: of some, nobody can tell. */
int pando_reactor_dispatch_note(struct pando_reactor *reactor, const struct pando_reactor_lane *lane);
/* Looks whether the worker has claimed what it was offered. */
void pando_reactor_dispatch_look(struct pando_reactor *reactor, uint32_t lane);
/* An offer that an idle worker has not claimed for long is anybody's. Every now and then. */
void pando_reactor_dispatch_late(struct pando_reactor *reactor);
/* How many requests no worker has claimed, as far as we know. */
uint32_t pando_reactor_dispatch_waiting(const struct pando_reactor *reactor);
/* Workers that sleep are told how many wait. */
void pando_reactor_dispatch_tell(struct pando_reactor *reactor);

/* reactor_choice.c; PANDO_NONE: there is none */
/* A slot for the next offer. */
uint32_t pando_reactor_choice_slot(const struct pando_reactor_lane *lane);
/* An idle worker's, the most recently idle first: it is the warmest, and those that sleep long stay shared. */
uint32_t pando_reactor_choice_idle(const struct pando_reactor *reactor);
/* A busy worker's that comes to the next request sooner than another would wake up. */
uint32_t pando_reactor_choice_fast(const struct pando_reactor *reactor);
/* A busy worker's, to be given a request ahead: that with the fewest. */
uint32_t pando_reactor_choice_busy(const struct pando_reactor *reactor);
/* Whether what its worker has ahead is as good as taken. */
int pando_reactor_choice_is_fast(const struct pando_reactor_lane *lane);

/* reactor_lanes.c */
/* The descriptors are the reactor's from here on. */
void pando_reactor_lane_open(struct pando_reactor *reactor, uint32_t lane, int wake, int socket, int memory);
void pando_reactor_lane_lost(struct pando_reactor *reactor, uint32_t lane, uint32_t cause);
void pando_reactor_lanes_read(struct pando_reactor *reactor);
/* Whether a lane has something that was not looked at. */
int pando_reactor_lanes_pending(const struct pando_reactor *reactor);
/* It is not read on until this client takes more, or there is more room for what clients do not take. */
void pando_reactor_lane_block(struct pando_reactor *reactor, uint32_t lane, struct pando_connection *connection);
/* Its blocker takes more again. */
void pando_reactor_lane_unblock(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_lane_corrupt(struct pando_reactor *reactor, uint32_t lane);
void pando_reactor_lane_wake(const struct pando_reactor_lane *lane);
/* Finds requests that workers have forgotten, and lanes that they have damaged. Every now and then. */
void pando_reactor_lanes_audit(struct pando_reactor *reactor);
/* Tells of corrupt lanes that the link had no room for. */
void pando_reactor_lanes_report(struct pando_reactor *reactor);
void pando_reactor_lanes_drop(struct pando_reactor *reactor);

/* reactor_frames.c */
enum pando_frame_verdict { PANDO_FRAME_DONE, PANDO_FRAME_NOT_NOW };
enum pando_frame_verdict pando_reactor_frame_handle(struct pando_reactor *reactor, uint32_t lane,
                                            const struct pando_frame *frame, const char *payload);

#endif
