/* Requests on their way to a worker, and the lanes that the answers come by. Of reactor_private.h, for the parts that
 * speak to workers. */
#ifndef PANDO_HTTP_REACTOR_REQUESTS_H
#define PANDO_HTTP_REACTOR_REQUESTS_H

#include "channel.h"

#include <stdint.h>

#define PANDO_NONE UINT32_MAX

struct pando_connection;
struct pando_reactor;

/* What the reactor alone knows of a slot. */
struct pando_request {
    struct pando_connection *connection;
    uint64_t arrived;                   /* in the queue; nanoseconds */
    uint32_t turn;
    uint32_t lane;                      /* that has answered, or PANDO_NONE */
    uint8_t busy, answered, retried, suspected;
    uint8_t informed;                   /* of an interim response: no second try, but still a 502 */
    uint8_t lent;                       /* its worker has the socket too: ours if that dies before it answers */
};

struct pando_reactor_lane {
    uint8_t open, dead, corrupt, unreported, again;
    int wake, socket;
    uint64_t position;
    uint64_t seen;                      /* `written` when it was last read */
    struct pando_connection *blocker;   /* takes no more for now */
    uint32_t place;                     /* in reactor->open */
};

/* reactor_request.c */
void pando_reactor_request_publish(struct pando_reactor *reactor, struct pando_connection *connection);
/* Wakes workers for what was published. To be called before the reactor waits. */
void pando_reactor_requests_announce(struct pando_reactor *reactor);
void pando_reactor_request_expired(struct pando_reactor *reactor, struct pando_connection *connection);
/* The connection has no more interest in its request. */
void pando_reactor_request_abandon(struct pando_reactor *reactor, struct pando_connection *connection);
/* Its answer is through, or will not come. */
void pando_reactor_request_settle(struct pando_reactor *reactor, uint32_t slot);
/* Its worker has the socket, and we keep it until that begins to answer. */
void pando_reactor_request_lend(struct pando_reactor *reactor, uint32_t slot);
/* Its client has announced its end. */
void pando_reactor_request_half_closed(struct pando_reactor *reactor, const struct pando_connection *connection);
/* There will be no (more) answer: 502 or 504, or a reset. */
void pando_reactor_request_fail(struct pando_reactor *reactor, uint32_t slot, int status);
/* What a worker held that is gone. */
void pando_reactor_requests_lost(struct pando_reactor *reactor, uint32_t lane, uint32_t cause);
/* Draining, and no worker is left: nobody will take what waits. */
int pando_reactor_deserted(const struct pando_reactor *reactor);
/* 503 for all that waits. */
void pando_reactor_requests_give_up(struct pando_reactor *reactor);
/* Requests whose claim makes no sense. */
void pando_reactor_requests_audit(struct pando_reactor *reactor);

/* reactor_lanes.c */
void pando_reactor_lane_open(struct pando_reactor *reactor, uint32_t lane, int wake, int socket);
void pando_reactor_lane_lost(struct pando_reactor *reactor, uint32_t lane, uint32_t cause);
void pando_reactor_lanes_read(struct pando_reactor *reactor);
/* Whether a lane has something that was not looked at. */
int pando_reactor_lanes_pending(const struct pando_reactor *reactor);
/* It is not read on until this client takes more, or there is more room for what clients do not take. */
void pando_reactor_lane_block(struct pando_reactor *reactor, uint32_t lane, struct pando_connection *connection);
/* Its blocker takes more again. */
void pando_reactor_lane_unblock(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_lane_corrupt(struct pando_reactor *reactor, uint32_t lane);
/* Wakes as many sleeping workers, those that were busy last first. */
void pando_reactor_lanes_wake(struct pando_reactor *reactor, uint32_t count);
/* Tells of corrupt lanes that the link had no room for. */
void pando_reactor_lanes_report(struct pando_reactor *reactor);
void pando_reactor_lanes_drop(struct pando_reactor *reactor);

/* reactor_frames.c */
enum pando_frame_verdict { PANDO_FRAME_DONE, PANDO_FRAME_NOT_NOW };
enum pando_frame_verdict pando_reactor_frame_handle(struct pando_reactor *reactor, uint32_t lane,
                                            const struct pando_frame *frame, const char *payload);

#endif
