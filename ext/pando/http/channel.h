/* The reactor tells all workers, on one shared mapping, which reactor it is,
 * whether it sleeps, whether it drains, how many requests wait, and what it has
 * counted. The reactor alone writes it; all others map it read-only. The
 * monitor makes it and keeps it, so that a new reactor and a new worker find it.
 *
 * Requests and answers travel on lanes, of which each worker has one of its
 * own: lane.h. No Ruby in here; see bind_channel.c. */
#ifndef PANDO_HTTP_CHANNEL_H
#define PANDO_HTTP_CHANNEL_H

#include "lane.h"
#include "stats.h"

#include <stdatomic.h>
#include <stdint.h>

#define PANDO_CHANNEL_LANES 1024u        /* workers at once, those that are being replaced included */

struct pando_channel_shared {
    uint64_t magic;
    _Alignas(64) _Atomic uint64_t sleeps;    /* odd: the reactor waits for its eventfd. Each time another number */
    _Alignas(64) _Atomic uint64_t epoch;     /* which reactor: counts up with each */
    _Atomic uint32_t draining;               /* no connection is kept any more */
    _Alignas(64) _Atomic uint32_t waiting;   /* requests that no worker has taken, as of the reactor's last turn */
    _Alignas(64) struct pando_stats stats;
};

struct pando_channel {
    struct pando_channel_shared *shared;
    int fd;
};

/* 0, or -1 with errno. create makes and seals a memfd (close-on-exec) and maps it read-only; attach maps another's,
 * as only the reactor may do for writing. */
int pando_channel_create(struct pando_channel *channel);
int pando_channel_attach(struct pando_channel *channel, int fd, int writable);
void pando_channel_unmap(struct pando_channel *channel);

/* --- the reactor's side --- */

/* A new reactor: nothing that another has offered counts any more. Its number. */
uint64_t pando_channel_new_epoch(struct pando_channel *channel);
/* Before it waits for its eventfd, and looks at the lanes a last time; and when it waits no more. */
void pando_channel_sleep(struct pando_channel *channel);
void pando_channel_awake(struct pando_channel *channel);

/* --- the worker's side --- */

/* Something was put on a lane: 1: the reactor is to be woken by a write to its eventfd. Not twice for one sleep of
 * the reactor: *rung remembers, and belongs to the caller. */
int pando_channel_rouse_reactor(const struct pando_channel *channel, uint64_t *rung);

#endif
