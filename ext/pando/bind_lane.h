/* Shared by the two halves of Pando::HTTP::Lane: bind_lane.c takes requests, bind_lane_answer.c sends their answers.
 * Used in workers. */
#ifndef PANDO_BIND_LANE_H
#define PANDO_BIND_LANE_H

#include "bind_http.h"
#include "sys/fds.h"

#include "http/reactor.h"

struct lane_view {
    struct pando_channel *channel;
    struct pando_lane *lane; /* mapped in `process` only; its children have nothing there */
    pid_t process;
    VALUE owner; /* keeps the channel's mapping alive */
    VALUE last_remote; /* the address asked for last, frozen; or nil */
    uint32_t number;
    int eventfd, reactor_eventfd;
    uint64_t rung; /* the sleep of the reactor that we last woke it from */
    uint32_t handed; /* connections that the application has taken over, ever */

    uint32_t served[PANDO_LANE_SLOTS]; /* the last turn in each slot */

    /* the request taken last, copied once */
    uint32_t epoch, turn, slot, head_bytes, body_bytes, listener, flags;
    uint64_t file_bytes, arrived, body_time, taken;
    char remote[sizeof((struct pando_slot *)0)->remote];
    uint64_t sent; /* of the response, so far */
    int over;      /* the response has ended */
};

struct lane_view *pando_lane_view_of(VALUE self);
/* Not in a child of the worker, where the lane answers nobody: there all other functions do nothing. */
int pando_lane_view_usable(const struct lane_view *view);
/* The answer is awaited, and has not ended. */
int pando_lane_view_holds(const struct lane_view *view);
/* true; nil: no room now; false: nobody wants it any more. */
VALUE pando_lane_view_end(struct lane_view *view, uint32_t kind, uint64_t value);
/* Wakes the reactor if it sleeps. */
void pando_lane_view_rouse(struct lane_view *view);

void pando_init_http_lane_answer(VALUE cLane);

#endif
