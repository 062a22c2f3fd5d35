/* The reactor: the process that holds every client's connection. It reads and
 * checks whole requests, queues them in the channel, and writes out what the
 * workers answer, so that no worker ever waits for a client.
 *
 * One thread (a second one closes files and does nothing else), one epoll, no
 * Ruby, no lock. Memory for connections and buffers
 * comes from free lists; a request that was seen before allocates nothing. What
 * it reads from shared memory may steer which bytes a client gets, never where
 * the reactor itself reads or writes. */
#ifndef PANDO_HTTP_REACTOR_H
#define PANDO_HTTP_REACTOR_H

#include <stdint.h>

#define PANDO_REACTOR_NO_LIMIT UINT64_MAX
#define PANDO_REACTOR_LISTENERS 1024u

enum pando_listener_flag {
    PANDO_LISTENER_PROXIED = 1,        /* a connection opens with a PROXY header */
    PANDO_LISTENER_HELD = 2,           /* somebody else goes on listening there: it is left, and never shut down */
};

struct pando_listener {
    int fd;                            /* listening, non-blocking */
    uint32_t number;                   /* below PANDO_REACTOR_LISTENERS; what workers know it by */
    uint32_t flags;
};

/* Times in milliseconds, 0: without end. Sizes in bytes. The descriptors are the reactor's from here on. */
struct pando_reactor_config {
    const struct pando_listener *listeners; /* at the start */
    uint32_t listener_count;
    int channel;                       /* the channel's memfd */
    int wake;                          /* the eventfd that workers write to */
    int control;                       /* SOCK_SEQPACKET to the monitor */
    const char *spool_directory;       /* for what is too large for memory; NULL: /tmp */
    const char *stream_paths;          /* bodies sent there are the worker's to read: terminated strings and an empty one,
                                        * or NULL */

    uint32_t max_header_bytes;
    uint32_t max_target_bytes;
    uint32_t max_headers;
    uint64_t max_body_bytes;           /* or PANDO_REACTOR_NO_LIMIT */
    uint64_t body_memory;              /* a longer body waits in a file on disk, not in a memfd */
    uint64_t answer_memory;            /* what one client has not taken of its answer; the rest waits on disk */
    uint64_t answer_total;             /* the same of all clients */
    uint64_t spool_total;              /* on disk, bodies and answers together */
    int spool_in_memory;               /* it is no disk: what is there counts as memory */
    uint64_t buffer_memory;            /* for heads, bodies and answers together */

    uint32_t header_timeout;           /* from the first byte to the empty line */
    uint32_t body_timeout;             /* a pause; all pauses too, but for a second per KiB received */
    uint32_t idle_timeout;             /* between two requests */
    uint32_t write_timeout;            /* as body_timeout, for a client that takes its answer */
    uint32_t queue_timeout;            /* until a worker takes the request */

    uint32_t grace;                    /* that it outlives its monitor to answer what it holds */

    uint32_t max_connections;
    uint32_t max_per_address;          /* connections of one client; 0: any number */
    uint32_t max_queue;                /* requests that no worker has taken */
    uint32_t max_requests;             /* of one connection; 0: any number */
    uint32_t retry_after;              /* seconds that a 503 asks for */
    int retry;                         /* safe requests of a worker that died, once */

    const char *ready_path;            /* where we say whether requests are welcome; NULL: nowhere */
    const char *live_path;             /* and whether we and the monitor are at work */
    uint32_t monitor_silence;          /* after which the monitor is not */
};

/* How it ended: an exit status. */
enum pando_reactor_status {
    PANDO_REACTOR_DRAINED = 0,
    PANDO_REACTOR_FAILED = 1,          /* errno says why */
    PANDO_REACTOR_ORPHANED = 2,        /* the monitor is gone */
    PANDO_REACTOR_CONFUSED = 3,        /* the monitor sent what no monitor sends */
};

int pando_reactor_run(const struct pando_reactor_config *config);

/* --- the control link: one record a packet, in the machine's byte order --- */

enum pando_reactor_record_kind {
    /* from the monitor */
    PANDO_REACTOR_LANE_OPEN = 1,       /* with the lane's eventfd, its socket and its memory */
    PANDO_REACTOR_LANE_DEAD = 2,       /* its worker was reaped; cause says of what */
    PANDO_REACTOR_LANE_CLOSE = 3,      /* its worker has left, or will take no more */
    PANDO_REACTOR_DRAIN = 4,           /* shut the listeners, answer what was asked, end */
    PANDO_REACTOR_LISTENER_OPEN = 5,   /* lane: its number, cause: its flags; with the socket. Of one that it has: its flags */
    PANDO_REACTOR_LISTENER_CLOSE = 6,  /* lane: its number; who has come by it is answered still */
    PANDO_REACTOR_WELCOME = 8,         /* new requests are welcome, and the monitor is at work: said again and again */
    PANDO_REACTOR_UNWELCOME = 9,       /* they are not, and it is */
    /* to the monitor */
    PANDO_REACTOR_READY = 16,
    PANDO_REACTOR_DRAINED_ALL = 17,
    PANDO_REACTOR_LANE_CORRUPT = 18,   /* no frame can be read from it any more: its worker must go */
};

enum pando_reactor_cause {
    PANDO_REACTOR_DIED = 0,            /* of something that the request hardly caused */
    PANDO_REACTOR_TIMEOUT = 1,         /* killed for its deadline: 504 */
    PANDO_REACTOR_SUSPECT = 2,         /* SEGV, ABRT, BUS, out of memory: never retried */
};

struct pando_reactor_record {
    uint32_t kind;
    uint32_t lane;
    uint32_t cause;
    uint32_t reserved;                 /* 0 */
};

/* --- a lane's socket: one ticket a packet, with a descriptor --- */

/* Says which request a descriptor belongs to: whoever receives one for another request closes its descriptor and reads
 * on, since either side may have died between a descriptor and its frame. Worker to reactor: before the FILE frame.
 * Reactor to worker: after WANT_FILE (read it from offset 0) or WANT_SOCKET (behind the ticket: what the client has
 * sent after its request, at most PANDO_SLOT_BYTES); without a descriptor, if nobody wants the answer any more. */
struct pando_reactor_ticket {
    uint32_t epoch;
    uint32_t turn;
};

#endif
