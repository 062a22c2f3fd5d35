/* The structures and functions that the parts of the reactor share. Runs in the reactor only. Each part says in its own
 * file what it does. The states of a connection are drawn in reactor.c. */
#ifndef PANDO_HTTP_REACTOR_PRIVATE_H
#define PANDO_HTTP_REACTOR_PRIVATE_H

#include "channel.h"
#include "chunked.h"
#include "parser.h"
#include "reactor.h"
#include "reactor_access_log.h"
#include "reactor_addresses.h"
#include "reactor_exchange.h"
#include "reactor_heavy.h"
#include "reactor_list.h"
#include "reactor_output.h"
#include "reactor_pool.h"
#include "reactor_queue.h"
#include "reactor_requests.h"

#include <pthread.h>
#include <sys/types.h>

#define PANDO_SCRATCH_BYTES 65536u

/* --- what epoll watches: the first member of each object names its kind --- */

enum pando_watch_kind { PANDO_WATCH_LISTENER, PANDO_WATCH_WAKE, PANDO_WATCH_CONTROL, PANDO_WATCH_CONNECTION };

struct pando_watch {
    enum pando_watch_kind kind;
    int fd;
};

/* A closed listener keeps its place: connections that came by it may still be open. */
struct pando_reactor_listener {
    struct pando_watch watch;           /* fd -1: closed, or never opened */
    uint32_t flags;
    uint8_t left;                       /* the monitor has closed it */
};

/* --- connections --- */

enum pando_connection_state {
    PANDO_READING_PROXY,                /* the PROXY header before the first request */
    PANDO_READING_HEAD,                 /* or waiting for its first byte */
    PANDO_READING_BODY,
    PANDO_IN_FLIGHT,                    /* its request is queued or being served */
    PANDO_FINISHING,                    /* the whole answer is here, but not yet sent */
    PANDO_LINGERING,                    /* the reactor has sent its FIN, and drops what the client still sends */
    PANDO_CLOSED,                       /* in the graveyard until this turn of the loop ends */
};

#define PANDO_WRITE_LOOKS 4 /* checks per write_timeout whether a client has taken anything */

/* Each kind has one duration, so that a list in order of starting is in order of expiry. */
enum pando_timer_kind {
    PANDO_TIMER_HEADER,
    PANDO_TIMER_BODY,
    PANDO_TIMER_IDLE,
    PANDO_TIMER_WRITE,                  /* one part of write_timeout */
    PANDO_TIMER_LINGER,
    PANDO_TIMER_QUEUE,                  /* and one for each further pool */
    PANDO_TIMERS = PANDO_TIMER_QUEUE + PANDO_REACTOR_POOLS
};

struct pando_timer {
    struct pando_node node;
    uint64_t due;                       /* milliseconds */
    uint8_t kind;
};

struct pando_connection {
    struct pando_watch watch;
    uint8_t state;
    uint8_t readable, writable;         /* as far as known; edge-triggered */
    uint8_t read_ended;                 /* the client has half-closed; earlier bytes may be unread */
    uint8_t persistent;                 /* as far as the client and the limits allow */
    uint8_t safe;                       /* GET, HEAD or OPTIONS */
    uint8_t read_only;                  /* GET or HEAD */
    uint8_t head_only;                  /* HEAD: answers of the reactor have no body */
    uint8_t streamed;                   /* its worker reads the body */
    uint8_t linger;                     /* drain input after the FIN, so that a client that still sends can read the
                                         * answer */
    uint32_t listener;
    uint32_t requests;
    struct pando_request request;       /* the one in flight */
    struct pando_exchange exchange;     /* that request, or the one being read, or whose answer is being sent */
    uint32_t blocks;                    /* the lane that waits for this client, or PANDO_NONE */

    struct pando_node all;
    struct pando_node queued;           /* in the queue, among its client's requests */
    struct pando_queue_client *client;  /* while its request is in a queue */
    struct pando_node again;            /* in the list of connections with more to do in the next turn */
    struct pando_timer timer;

    /* The input buffer: [head][body in memory][...][raw: not yet parsed] */
    struct pando_buffer in;
    uint32_t in_end;                    /* end of the received bytes */
    uint32_t head_bytes, body_bytes;
    uint32_t raw;
    int spool;                          /* the body's file when a slot is too small, or -1 */
    uint64_t spooled, spool_memory;     /* bytes in it; bytes of memory reserved for it */
    uint64_t spool_disk;                /* bytes of disk reserved for it */
    uint64_t body_left;                 /* of a body with a content-length */
    pando_http_parser parser;
    struct pando_buffer fields;         /* only while a head is incomplete */
    pando_http_chunked chunked;

    struct pando_output *out, *out_last;
    uint64_t out_bytes;                 /* in memory */
    uint32_t out_files, out_parts;      /* queued files from workers; queued parts of the following file */
    int overflow;                       /* the answer's file when memory is full, or -1 */
    uint64_t overflow_end, overflow_given; /* bytes ever written to it; bytes whose space was given back */
    struct pando_node reader;           /* in the list of connections with output queued */
    uint64_t reader_since, taken_before; /* when it joined the list; bytes its client had taken until then */
    uint64_t sent, taken;               /* bytes ever given to the socket; bytes its client had taken at the last
                                         * check */
    uint8_t pauses;                     /* consecutive checks that found nothing taken */
    uint8_t tcp;                        /* the kernel can say what its client has taken */
    uint8_t overflow_full;              /* has reached the maximum size of a file: RLIMIT_FSIZE */
    uint8_t unsent_bounded;             /* TCP_NOTSENT_LOWAT is set */

    struct pando_address origin;        /* the client, as the queue counts clients */
    uint64_t pace_at;                   /* when the current transfer began or last moved */
    int64_t pace_debt;                  /* see reactor_timers.c */
    struct pando_address address;       /* count 0: not counted */
    char remote[48];
};

/* The thread that closes files, and the pipe that brings it their descriptors. */
struct pando_reactor_closer {
    pthread_t thread;
    int from, to;                       /* to -1: there is no thread */
};

#define PANDO_RESERVE 16 /* descriptors; the order to open a lane brings three */

struct pando_reactor {
    const struct pando_reactor_config *config;
    int epoll;
    struct pando_channel channel;
    struct pando_stats *stats;          /* the channel's */
    struct pando_watch control, wake;
    struct pando_reactor_listener *listeners; /* by number */
    uint32_t listener_count;            /* highest number in use, plus one */

    uint64_t now;                       /* milliseconds, set once a turn */
    int asked;                          /* the timeout of this turn's wait; -1: unlimited */
    uint8_t accepting, accept_ready, control_ready, draining, orphaned, finished;
    int status, failure;
    int reserve[PANDO_RESERVE];         /* descriptors, or -1 */
    uint64_t accept_at;                 /* when a pause in accepting ends, or 0 */
    uint64_t wake_at, audit_at, deadline;
    uint8_t welcome;                    /* new requests are welcome, by the monitor's last word */
    uint64_t told_at;                   /* when the monitor last said so; milliseconds */
    uint64_t idle_until;                /* when idle connections that must end are closed, or 0 */

    struct pando_node connections, again, graveyard, spare;
    uint32_t connection_count, spare_count;
    uint32_t connection_peak;           /* since memory was last given back */
    struct pando_addresses addresses;
    struct pando_node timers[PANDO_TIMERS];
    uint32_t durations[PANDO_TIMERS], running[PANDO_TIMERS];

    struct pando_reactor_closer closer;
    struct pando_access_log *access_log; /* NULL: there is none */
    struct pando_pool pool;
    uint64_t out_total, spool_memory, spooled_responses, spooled_bodies;
    uint64_t spool_most;                /* bytes allowed on the disk */
    uint64_t spool_shut_until;          /* the disk took nothing: no further try before; milliseconds. 0: not shut */
    struct pando_node readers;
    uint32_t overflows, most_overflows; /* overflow files, now and at most: others need descriptors too */
    uint32_t waiting;                   /* lanes that have a blocker */
    uint8_t roomier;                    /* space was freed since blocked lanes were last tried */
    uint8_t crowded;                    /* a lane was blocked while the memory of all clients was used up */
    pando_http_limits limits;
    pando_http_field *fields;           /* for heads that arrive in one piece */
    char *scratch;
    uint32_t work;                      /* spent on one connection in this turn: bytes, or the equivalent */

    struct pando_reactor_line lines[PANDO_REACTOR_POOLS];
    uint32_t heavy_served;
    uint64_t heavy_pause_until;         /* milliseconds */
    struct pando_reactor_route routes[PANDO_REACTOR_ROUTES];
    uint32_t epoch, turn;               /* of this reactor, and of the last offer */
    uint32_t in_flight, unannounced;
    struct pando_reactor_lane lanes[PANDO_CHANNEL_LANES];
    uint32_t open[PANDO_CHANNEL_LANES], open_count;
    uint32_t threads;                   /* open lanes that are not their worker's first */
};

static inline struct pando_reactor_line *pando_reactor_line_of(struct pando_reactor *reactor,
                                                               const struct pando_connection *connection)
{
    return &reactor->lines[connection->request.pool];
}

/* The functions follow in the order of a request: accept, read, queue, dispatch, answer, close. Each stands under the
 * name of its file. */

/* --- accept --- */

/* reactor_accept.c */
int pando_reactor_accept_start(struct pando_reactor *reactor);
void pando_reactor_accept_some(struct pando_reactor *reactor);
/* Closes all listeners, as pando_reactor_listener_close does, and stops accepting. */
void pando_reactor_accept_end(struct pando_reactor *reactor);
/* Counts the connection for its client's address, as soon as that is known. 0: too many; it is refused. */
int pando_reactor_accept_admit(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_accept_pause(struct pando_reactor *reactor);
void pando_reactor_accept_resume(struct pando_reactor *reactor);
/* Accepts all connections that wait there now, even if that exceeds a turn's share. */
void pando_reactor_accept_all_of(struct pando_reactor *reactor, uint32_t number);
void pando_reactor_accept_stop(struct pando_reactor *reactor);

/* reactor_listeners.c: 0, or -1 with errno */
int pando_reactor_listeners_start(struct pando_reactor *reactor);
int pando_reactor_listeners_watch(struct pando_reactor *reactor, int operation);
int pando_reactor_listener_open(struct pando_reactor *reactor, const struct pando_listener *listener);
/* Accepts the clients that wait there. The kernel refuses later ones, whichever process has the listener open; a HELD
 * listener stays open for the others. */
void pando_reactor_listener_close(struct pando_reactor *reactor, uint32_t number);
/* Whether the connection must end when it has no request. */
int pando_reactor_must_end(const struct pando_reactor *reactor, const struct pando_connection *connection);

/* reactor_connection.c */
struct pando_connection *pando_reactor_connection_open(struct pando_reactor *reactor, int fd, uint32_t listener);
/* Adds the connection to the epoll set: 0 or -1; look_away removes it. */
int pando_reactor_connection_watch(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_connection_look_away(struct pando_reactor *reactor, struct pando_connection *connection);

/* --- read --- */

/* reactor_connection.c */
void pando_reactor_connection_event(struct pando_reactor *reactor, struct pando_connection *connection,
                                    uint32_t events);
/* Goes on as far as possible without waiting. */
void pando_reactor_connection_advance(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_connection_again(struct pando_reactor *reactor, struct pando_connection *connection);

/* reactor_input.c */
/* Whether the request's path is this one, or lies below it. */
int pando_reactor_input_lies_at(const struct pando_connection *connection, const char *path);
/* One step each; 0: nothing more can be done now. */
int pando_reactor_input_proxy(struct pando_reactor *reactor, struct pando_connection *connection);
int pando_reactor_input_head(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_input_rest(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_input_release(struct pando_reactor *reactor, struct pando_connection *connection);
/* Refuses one incomplete request, so that another has room. 0: there is none. */
int pando_reactor_input_give_way(struct pando_reactor *reactor);
/* Whether no byte of a next request has arrived. */
int pando_reactor_input_silent(const struct pando_connection *connection);
/* The client has stopped sending, or sends too slowly: its incomplete request gets this answer, if it was HTTP. */
void pando_reactor_input_unfinished(struct pando_reactor *reactor, struct pando_connection *connection, int status,
                                    _Atomic uint64_t *reason);
/* Receives into `place`: bytes; 0: nothing now, or the connection is closed or refused. */
size_t pando_reactor_input_receive(struct pando_reactor *reactor, struct pando_connection *connection, char *place,
                                   size_t room);

/* reactor_body.c */
void pando_reactor_body_begin(struct pando_reactor *reactor, struct pando_connection *connection);
int pando_reactor_body_step(struct pando_reactor *reactor, struct pando_connection *connection);

/* reactor_spool.c: -1 with errno */
int pando_reactor_spool_open(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t expected);
int pando_reactor_spool_write(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                              size_t bytes);
/* From now on no worker can change the file. */
void pando_reactor_spool_seal(struct pando_connection *connection);
void pando_reactor_spool_close(struct pando_reactor *reactor, struct pando_connection *connection);
/* A nameless file on the disk, or -1. */
int pando_reactor_spool_file(const struct pando_reactor *reactor);
/* Finds out how much disk space the reactor may use: measure at once, look periodically where it may have changed. */
void pando_reactor_spool_measure(struct pando_reactor *reactor);
void pando_reactor_spool_look(struct pando_reactor *reactor);
int pando_reactor_spool_has_room(const struct pando_reactor *reactor, uint64_t bytes);
/* The statistic to count a failure under, by errno, after one of these functions or the pool has failed. */
_Atomic uint64_t *pando_reactor_spool_reason(struct pando_reactor *reactor);
/* Tells the pool how much memory spool files take. */
void pando_reactor_spool_count(struct pando_reactor *reactor);
/* By errno: do not try the disk for a while. */
void pando_reactor_spool_failed(struct pando_reactor *reactor);
/* Whether blocked workers may go on when the disk takes bytes again. */
int pando_reactor_spool_is_missed(const struct pando_reactor *reactor);
/* Tries the disk; if it fails, the disk is shut for another while. */
void pando_reactor_spool_try(struct pando_reactor *reactor);
/* Bytes written; if fewer, errno gives the reason. */
size_t pando_reactor_spool_put(int fd, const char *data, size_t bytes, uint64_t offset);

/* --- queue and dispatch: see reactor_requests.h, reactor_queue.h and reactor_heavy.h --- */

/* --- answer: frames arrive as in reactor_requests.h, and leave as in reactor_output.h --- */

/* reactor_refusal.c: answers of the reactor itself, counted; the connection ends with them */
void pando_reactor_refuse(struct pando_reactor *reactor, struct pando_connection *connection, int status);
/* Counts the answer as `reason`, one of the statistics. */
void pando_reactor_refuse_for(struct pando_reactor *reactor, struct pando_connection *connection, int status,
                              _Atomic uint64_t *reason);
/* Sends 503 because of overload; `reason` is one of the shed_ statistics. */
void pando_reactor_shed(struct pando_reactor *reactor, struct pando_connection *connection,
                        _Atomic uint64_t *reason);
/* Sends 503 to a client for which there is no memory, as far as the kernel takes it at once, and closes. */
void pando_reactor_turn_away(struct pando_reactor *reactor, int fd);

/* reactor_connection.c */
/* The answer is complete: when all is sent, the connection reads its next request or ends. */
void pando_reactor_connection_answered(struct pando_reactor *reactor, struct pando_connection *connection, int keep);
/* All output is sent. */
void pando_reactor_connection_flushed(struct pando_reactor *reactor, struct pando_connection *connection);

/* --- close --- */

/* reactor_connection.c */
void pando_reactor_connection_close(struct pando_reactor *reactor, struct pando_connection *connection);
/* Closes with a reset, so that the client notices that its answer is incomplete. */
void pando_reactor_connection_reset(struct pando_reactor *reactor, struct pando_connection *connection);
/* Drops the connection without a FIN: another process goes on with its socket. */
void pando_reactor_connection_forget(struct pando_reactor *reactor, struct pando_connection *connection);
/* Closes the connection, unless a request arrives meanwhile. 1: it is closed. */
int pando_reactor_connection_close_idle(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_connection_expired(struct pando_reactor *reactor, struct pando_connection *connection,
                                      uint32_t kind);
void pando_reactor_connections_bury(struct pando_reactor *reactor);
/* Periodically: gives memory back after most connections have left. */
void pando_reactor_connections_trim(struct pando_reactor *reactor);
void pando_reactor_connections_drop(struct pando_reactor *reactor);

/* reactor_closer.c */
void pando_reactor_closer_start(struct pando_reactor *reactor);
/* The closer owns the file, and may close it a moment later. */
void pando_reactor_closer_take(struct pando_reactor *reactor, int fd);
void pando_reactor_closer_stop(struct pando_reactor *reactor);

/* --- at every step: the loop, timers, descriptors in reserve, the link to the monitor --- */

/* reactor.c */
void pando_reactor_end(struct pando_reactor *reactor, int status);
uint64_t pando_reactor_nanoseconds(void);

/* reactor_timers.c */
void pando_reactor_timers_init(struct pando_reactor *reactor);
/* (Re)starts the connection's only timer; a kind without a duration never expires. */
void pando_reactor_timer_start(struct pando_reactor *reactor, struct pando_connection *connection, uint32_t kind);
void pando_reactor_timer_stop(struct pando_reactor *reactor, struct pando_connection *connection);
int pando_reactor_timer_runs(const struct pando_connection *connection, uint32_t kind);
void pando_reactor_timers_expire(struct pando_reactor *reactor);
/* Time in which nobody could do anything does not count. */
void pando_reactor_timers_postpone(struct pando_reactor *reactor, uint64_t milliseconds);
/* Milliseconds until the next expiry, -1: no timer runs. */
int64_t pando_reactor_timers_next(const struct pando_reactor *reactor);
/* begin: a transfer begins. moved: bytes were moved; 0: the transfer is too slow. */
void pando_reactor_pace_begin(struct pando_reactor *reactor, struct pando_connection *connection);
int pando_reactor_pace_moved(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t bytes,
                     uint32_t allowance);

/* reactor_reserve.c */
void pando_reactor_reserve_init(struct pando_reactor *reactor);
void pando_reactor_reserve_fill(struct pando_reactor *reactor);
void pando_reactor_reserve_release(struct pando_reactor *reactor);

/* reactor_control.c */
void pando_reactor_control_read(struct pando_reactor *reactor);
/* 0, or -1 if it cannot be sent now. */
int pando_reactor_control_tell(struct pando_reactor *reactor, uint32_t kind, uint32_t lane);
void pando_control_finish_draining(struct pando_reactor *reactor);

#endif
