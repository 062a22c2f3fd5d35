/* What the two halves of Pando::HTTP::Lane share: bind_lane.c takes requests,
 * bind_lane_answer.c puts their answers. */
#ifndef PANDO_BIND_LANE_H
#define PANDO_BIND_LANE_H

#include "bind_http.h"
#include "sys/fds.h"

#include "http/reactor.h"

struct lane_view {
    struct pando_channel *channel;
    struct pando_lane *lane;
    VALUE owner; /* keeps the mapping alive */
    VALUE last_remote; /* the address that was asked for last, frozen; or nil */
    uint32_t number;
    int eventfd, reactor_eventfd;
    int first;     /* it is woken before all others that sleep */

    /* the request that was taken last, copied once */
    uint32_t slot, turn, head_bytes, body_bytes, listener, flags;
    uint64_t file_bytes, arrived, taken;
    char remote[sizeof((struct pando_slot *)0)->remote];
    uint64_t sent; /* bytes of its response */
    int over;      /* the response has ended */
};

struct lane_view *pando_lane_view_of(VALUE self);
/* The claim stands, and the response has not ended. */
int pando_lane_view_holds(const struct lane_view *view);
/* The request is this lane's and somebody waits for the answer. */
int pando_lane_view_wanted(const struct lane_view *view);
/* Even if nobody waits: the reactor keeps the slot until the lane that claimed it says that it is through.
 * true; nil: no room now; false: it is not this lane's. */
VALUE pando_lane_view_end(struct lane_view *view, uint32_t kind, uint64_t value);
void pando_init_http_lane_answer(VALUE cLane);

#endif
