/* The reactor: the process that holds every client's connection. It reads and checks whole requests, queues them,
 * offers them to workers on their lanes, and writes out the workers' answers, so that no worker ever waits for a
 * client. This header is for the code that starts the reactor (in the monitor, or in the reactor's own program), and
 * describes what travels over its links.
 *
 * The reactor has one thread that serves (a second one only closes files), one epoll, no Ruby and no lock. Memory for
 * connections and buffers comes from free lists; in steady state a request allocates nothing. What the reactor reads
 * from shared memory may decide which bytes a client gets, but never where the reactor itself reads or writes. */
#ifndef PANDO_HTTP_REACTOR_H
#define PANDO_HTTP_REACTOR_H

#include <stdint.h>

#define PANDO_REACTOR_NO_LIMIT UINT64_MAX
#define PANDO_REACTOR_LISTENERS 1024u

enum pando_listener_flag {
    PANDO_LISTENER_PROXIED = 1,        /* each connection begins with a PROXY header */
    PANDO_LISTENER_HELD = 2,           /* another process goes on listening there: the reactor may leave it, but never
                                        * shuts it down */
};

struct pando_listener {
    int fd;                            /* listening, non-blocking */
    uint32_t number;                   /* below PANDO_REACTOR_LISTENERS; workers know the listener by it */
    uint32_t flags;
};

#define PANDO_REACTOR_POOLS 16u

enum pando_access_log_format { PANDO_LOG_COMMON, PANDO_LOG_COMBINED, PANDO_LOG_JSON };

struct pando_access_log_config {
    const char *path;                  /* "-": standard output; NULL: there is no access log */
    const char *pool_names;            /* in the order of their numbers: terminated strings, then an empty one; the
                                        * first string empty: there is one pool, without a name */
    uint32_t format;
    uint32_t sample;                   /* the share of requests that are logged, in 2^-32; 0: all */
};

/* Times in milliseconds (0: no limit), sizes in bytes. The reactor owns the descriptors from here on. */

struct pando_reactor_config {
    const struct pando_listener *listeners; /* those that it starts with */
    uint32_t listener_count;
    int channel;                       /* the channel's memfd */
    int wake;                          /* the eventfd that workers write to */
    int control;                       /* SOCK_SEQPACKET to the monitor */
    const char *spool_directory;       /* for what is too large for memory; NULL: /tmp */
    const char *pool_paths;            /* which pool serves a path and all below it: for each path the pool's number as
                                        * one character above '0', then the path, terminated; then an empty string; or
                                        * NULL. Pool 0 serves all others */
    const char *stream_paths;          /* workers read the bodies sent to these paths themselves: terminated strings,
                                        * then an empty one; or NULL */

    uint32_t max_header_bytes;
    uint32_t max_target_bytes;
    uint32_t max_headers;
    uint64_t max_body_bytes;           /* or PANDO_REACTOR_NO_LIMIT */
    uint64_t body_memory;              /* a longer body waits in a file on disk, not in a memfd */
    uint64_t response_memory;          /* the part of one client's response that may wait in memory; the rest waits on
                                        * disk */
    uint64_t response_total;           /* the same for all clients together */
    uint64_t spool_total;              /* on disk, bodies and responses together */
    int spool_in_memory;               /* the spool directory is in memory: its files count as memory */
    uint64_t buffer_memory;            /* for heads, bodies and responses together */

    uint32_t header_timeout;           /* from the first byte to the empty line */
    uint32_t body_timeout;             /* of a pause; also of all pauses together, less one second for each KiB
                                        * received */
    uint32_t idle_timeout;             /* between two requests */
    uint32_t write_timeout;            /* like body_timeout, for a client that takes its answer */

    uint32_t grace;                    /* how long it outlives its monitor to answer the requests it holds */

    uint32_t max_connections;
    uint32_t max_per_address;          /* connections of one client; 0: any number */
    uint32_t pools;                    /* pools of workers, at most PANDO_REACTOR_POOLS */
    uint32_t max_queue[PANDO_REACTOR_POOLS]; /* requests that no worker of the pool has taken */
    uint32_t queue_timeout[PANDO_REACTOR_POOLS]; /* until a worker of the pool takes the request */
    uint32_t max_requests;             /* of one connection; 0: any number */
    uint32_t retry_after;              /* seconds that a 503 asks for */
    int retry;                         /* whether to retry the safe requests of a worker that died, once each */

    const char *ready_path;            /* the path that says whether new requests are welcome; NULL: none */
    const char *live_path;             /* the path that says whether reactor and monitor are at work; NULL: none */
    uint32_t monitor_silence;          /* after so long without word from the monitor it counts as dead */

    struct pando_access_log_config access_log;
};

/* How the reactor ended: its exit status. */
enum pando_reactor_status {
    PANDO_REACTOR_DRAINED = 0,
    PANDO_REACTOR_FAILED = 1,          /* errno gives the reason */
    PANDO_REACTOR_ORPHANED = 2,        /* the monitor is gone */
    PANDO_REACTOR_CONFUSED = 3,        /* the monitor sent a record that no monitor sends */
};

int pando_reactor_run(const struct pando_reactor_config *config);

/* --- the control link: one record a packet, in the machine's byte order --- */

enum pando_reactor_record_kind {
    /* from the monitor */
    PANDO_REACTOR_LANE_OPEN = 1,       /* with the lane's eventfd, its socket and its memory; cause: the number of its
                                        * worker's first lane */
    PANDO_REACTOR_LANE_DEAD = 2,       /* its worker was reaped; cause: why it died */
    PANDO_REACTOR_LANE_CLOSE = 3,      /* its worker has left, or will take no more requests */
    PANDO_REACTOR_DRAIN = 4,           /* shut the listeners, answer all requests received, exit */
    PANDO_REACTOR_LISTENER_OPEN = 5,   /* lane: its number, cause: its flags; with the socket. For a listener that is
                                        * open already: its new flags */
    PANDO_REACTOR_LISTENER_CLOSE = 6,  /* lane: its number; its connections are still served */
    PANDO_REACTOR_REOPEN_LOG = 7,      /* the access log's file has been moved away: open its path again */
    PANDO_REACTOR_WELCOME = 8,         /* new requests are welcome and the monitor is at work: sent repeatedly */
    PANDO_REACTOR_UNWELCOME = 9,       /* new requests are not welcome; the monitor is at work */
    /* to the monitor */
    PANDO_REACTOR_READY = 16,
    PANDO_REACTOR_DRAINED_ALL = 17,
    PANDO_REACTOR_LANE_CORRUPT = 18,   /* no more frames can be read from it: its worker must be replaced */
};

enum pando_reactor_cause {
    PANDO_REACTOR_DIED = 0,            /* the request is hardly the cause */
    PANDO_REACTOR_TIMEOUT = 1,         /* killed at its deadline: 504 */
    PANDO_REACTOR_SUSPECT = 2,         /* SEGV, ABRT, BUS, out of memory: never retried */
    PANDO_REACTOR_BESIDE = 3,          /* another request of the same worker is the suspect */
    PANDO_REACTOR_LEFT_LATE = 4,       /* killed when it had to leave: 504; an answer that has begun is a stream cut */
};

struct pando_reactor_record {
    uint32_t kind;
    uint32_t lane;
    uint32_t cause;
    /* of LANE_OPEN, about its worker; else 0 */
    uint32_t pool;                     /* its number */
    uint32_t slot, generation;         /* for the access log */
};

/* --- a lane's socket: one ticket a packet, with a descriptor --- */

/* A ticket says which request a descriptor belongs to. A receiver that gets a descriptor for another request closes
 * it and reads on, since either side may have died between a descriptor and its frame. Worker to reactor: before the
 * FILE frame. Reactor to worker: after WANT_FILE (read the file from offset 0) or WANT_SOCKET (the ticket is followed
 * by what the client has sent after its request, at most PANDO_SLOT_BYTES); without a descriptor if nobody wants the
 * answer any more. */
struct pando_reactor_ticket {
    uint32_t epoch;
    uint32_t turn;
};

#endif
