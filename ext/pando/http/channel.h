/* The channel: one shared mapping on which the reactor tells all workers which reactor it is, whether it sleeps,
 * whether it drains, how many requests wait, and what it has counted. Only the reactor writes to it; all other
 * processes map it read-only. The monitor makes and keeps it, so that a new reactor and a new worker find it.
 *
 * Requests and answers travel on lanes, one for each worker: lane.h. No Ruby in here; see bind_channel.c. */
#ifndef PANDO_HTTP_CHANNEL_H
#define PANDO_HTTP_CHANNEL_H

#include "lane.h"
#include "reactor.h"
#include "stats.h"

#include <stdatomic.h>
#include <stdint.h>

#define PANDO_CHANNEL_LANES 1024u        /* workers at once, including those being replaced */

struct pando_channel_shared {
    uint64_t magic;
    _Alignas(64) _Atomic uint64_t sleeps;    /* odd: the reactor waits for its eventfd. Counts up */
    _Alignas(64) _Atomic uint64_t epoch;     /* identifies the reactor: counts up with each */
    _Atomic uint32_t draining;               /* connections are no longer kept alive */
    _Alignas(64) _Atomic uint32_t waiting[PANDO_REACTOR_POOLS]; /* by pool: requests that no worker has taken, as of the
                                              * reactor's last turn */
    _Alignas(64) struct pando_stats stats;
};

struct pando_channel {
    struct pando_channel_shared *shared;
    int fd;
};

/* 0, or -1 with errno. create makes and seals a memfd (close-on-exec) and maps it read-only. attach maps an existing
 * one; only the reactor may map it for writing. */
int pando_channel_create(struct pando_channel *channel);
int pando_channel_attach(struct pando_channel *channel, int fd, int writable);
void pando_channel_unmap(struct pando_channel *channel);

/* --- the reactor's side --- */

/* A new reactor takes over: offers of its predecessor no longer count. Returns its number. */
uint64_t pando_channel_new_epoch(struct pando_channel *channel);
/* sleep: before the reactor checks the lanes a last time and waits for its eventfd. awake: after the wait. */
void pando_channel_sleep(struct pando_channel *channel);
void pando_channel_awake(struct pando_channel *channel);

/* --- the worker's side --- */

/* After something was put on a lane. 1: the caller must wake the reactor by a write to its eventfd. At most once for
 * each sleep of the reactor: *rung remembers that, and belongs to the caller. */
int pando_channel_rouse_reactor(const struct pando_channel *channel, uint64_t *rung);

#endif
