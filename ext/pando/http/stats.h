/* The reactor's statistics, for every process that maps the channel. Only the reactor writes them, so that counting
 * needs no locked instruction. It reads back only the count it adds to, and bases no decision on it. */
#ifndef PANDO_HTTP_STATS_H
#define PANDO_HTTP_STATS_H

#include "histogram.h"
#include "reactor.h"

#include <stdatomic.h>
#include <stdint.h>

/* Gauges, as of the last turn of the reactor's loop. A new reactor begins at 0. */
#define PANDO_STATS_GAUGES(_) \
    _(connections)            \
    _(idle)                   /* kept alive, between two requests */ \
    _(in_flight)              /* requests queued or being served */ \
    _(head_bytes)             /* memory for requests being read or served, including bodies that fit into a slot */ \
    _(body_bytes)             /* memory for larger bodies */ \
    _(response_bytes)         /* memory for responses that clients have not taken */ \
    _(spooled_responses)      /* bytes of such responses in files */ \
    _(spooled_bodies)         /* bytes on disk that request bodies take or have reserved */ \
    _(waiting_workers)        /* workers blocked by a client that takes nothing */ \
    _(cut_family)             /* AF_INET or AF_INET6: of the last client reset as the slowest reader; or 0 */ \
    _(cut_network)            /* the counted part of its address, see reactor_addresses.h */ \
    _(cut_rate)               /* bytes per second that it took */ \
    _(spool_error)            /* errno of the last failed write to a file */ \
    _(log_error)              /* errno of the last failed write to the access log; 0: the last one succeeded */

/* Counters; a new reactor continues them. */
#define PANDO_STATS_COUNTERS(_) \
    _(accepted)               /* connections */ \
    _(requests)               /* queued for the first time */ \
    _(hijacked)               /* connections handed over to a worker */ \
    _(retried)                /* requests queued again */ \
    _(evicted)                /* idle connections closed to make room for others */ \
    _(shed_connections)       /* 503: max_connections */ \
    _(shed_address)           /* 503, or closed at once: max_connections_per_address */ \
    _(shed_stopping)          /* 503: the server stops and has no worker left */ \
    _(shed_spool)             /* 503: the disk space that Pando may use is full */ \
    _(shed_memory)            /* 503: buffer_memory */ \
    _(shed_resources)         /* 503, or a reset after the answer had begun: no memory, or no room on the disk */ \
    _(shed_file_size)         /* 503: a body longer than the maximum file size, RLIMIT_FSIZE */ \
    _(refused_malformed)      /* 400 and the like */ \
    _(refused_cut_off)        /* 400: the client stopped sending in the middle of a request */ \
    _(refused_too_large)      /* 414, 431 */ \
    _(refused_body_size)      /* 413: max_body_bytes */ \
    _(refused_spool_size)     /* 413: larger than all disk space that Pando may use */ \
    _(refused_unsupported)    /* 501, 505 */ \
    _(refused_proxy)          /* closed: the PROXY header is missing or malformed */ \
    _(refused_header_time)    /* 408: header_timeout */ \
    _(refused_body_time)      /* 408: body_timeout, or below the minimum rate */ \
    _(health_well)            /* health checks that the reactor answered with 200 */ \
    _(health_unwell)          /* health checks that it answered with 503 */ \
    _(slow_readers)           /* connections reset: write_timeout, or below the minimum rate */ \
    _(cut_readers)            /* connections reset: the slowest reader, when answers had no more room */ \
    _(spool_failed)           /* failed writes to a file */ \
    _(failed_502)             /* its worker died or gave up */ \
    _(failed_504)             /* its worker was killed for its deadline */ \
    _(resets)                 /* connections reset: the worker died or gave up after the answer had begun */ \
    _(streams_cut)            /* connections reset: the worker had to leave before the answer had ended */ \
    _(corrupt_lanes)          \
    _(log_lines)              /* of the access log, written or about to be */ \
    _(log_dropped)            /* lines of the access log for which there was no room */ \
    _(turns)                  /* of the reactor's loop */

/* The same for each pool of workers: gauges and counters. */
#define PANDO_STATS_POOL_GAUGES(_) \
    _(queued)                 /* requests in flight that no worker has taken */ \
    _(set_aside)              /* of these, heavy requests that were set aside */

#define PANDO_STATS_POOL_COUNTERS(_) \
    _(responses)              /* complete ones from a worker */ \
    _(shed_queue)             /* 503: max_queue */ \
    _(shed_queue_time)        /* 503: queue_timeout */ \
    _(received_bytes)         /* of requests, heads and bodies */ \
    _(sent_bytes)             /* of answers, as far as clients took them */

/* Requests are counted by method and by class of status. */
#define PANDO_STATS_METHODS(_) _(GET) _(HEAD) _(POST) _(PUT) _(PATCH) _(DELETE) _(OPTIONS) _(other)
#define PANDO_STATS_METHOD(name) PANDO_METHOD_##name,
enum pando_method { PANDO_STATS_METHODS(PANDO_STATS_METHOD) PANDO_METHODS };
#undef PANDO_STATS_METHOD
#define PANDO_STATS_CLASSES 6u /* 1 to 5, and 0: not known */

#define PANDO_STATS_MEMBER(name) _Atomic uint64_t name;
struct pando_pool_stats {
    PANDO_STATS_POOL_GAUGES(PANDO_STATS_MEMBER)
    PANDO_STATS_POOL_COUNTERS(PANDO_STATS_MEMBER)
    _Atomic uint64_t answers[PANDO_METHODS][PANDO_STATS_CLASSES]; /* to requests, whoever gave them */
    struct pando_histogram queue;     /* time in the queue */
    struct pando_histogram duration;  /* from the request's last byte to the end of its worker's answer */
};

struct pando_stats {
    PANDO_STATS_GAUGES(PANDO_STATS_MEMBER)
    PANDO_STATS_COUNTERS(PANDO_STATS_MEMBER)
    struct pando_pool_stats pools[PANDO_REACTOR_POOLS];
};
#undef PANDO_STATS_MEMBER

static inline void pando_stat_set(_Atomic uint64_t *stat, uint64_t value)
{
    atomic_store_explicit(stat, value, memory_order_relaxed);
}

static inline uint64_t pando_stat_get(const _Atomic uint64_t *stat)
{
    return atomic_load_explicit(stat, memory_order_relaxed);
}

static inline void pando_stat_add(_Atomic uint64_t *stat, uint64_t more)
{
    pando_stat_set(stat, pando_stat_get(stat) + more);
}

#endif
