/* The parts of the reactor share these structures and functions. Each part says
 * in its own file what it does; a function is declared here under the name of
 * that file. */
#ifndef PANDO_HTTP_REACTOR_PRIVATE_H
#define PANDO_HTTP_REACTOR_PRIVATE_H

#include "channel.h"
#include "chunked.h"
#include "parser.h"
#include "reactor.h"
#include "reactor_addresses.h"
#include "reactor_heavy.h"
#include "reactor_list.h"
#include "reactor_pool.h"
#include "reactor_queue.h"
#include "reactor_requests.h"

#include <pthread.h>
#include <sys/types.h>

#define PANDO_SCRATCH_BYTES 65536u

/* --- what epoll watches: the first member of each says what it is --- */

enum pando_watch_kind { PANDO_WATCH_LISTENER, PANDO_WATCH_WAKE, PANDO_WATCH_CONTROL, PANDO_WATCH_CONNECTION };

struct pando_watch {
    enum pando_watch_kind kind;
    int fd;
};

/* One that was closed keeps its place: there may be connections that have come by it. */
struct pando_reactor_listener {
    struct pando_watch watch;           /* fd -1: closed, or there never was one */
    uint32_t flags;
    uint8_t left;                       /* closed while we go on */
};

/* --- connections --- */

enum pando_connection_state {
    PANDO_READING_PROXY,                /* the PROXY header before the first request */
    PANDO_READING_HEAD,                 /* or waiting for its first byte */
    PANDO_READING_BODY,
    PANDO_IN_FLIGHT,                    /* its request is queued or served */
    PANDO_FINISHING,                    /* the answer is here, but not yet all out */
    PANDO_LINGERING,                    /* we have ended; what the client still sends is dropped */
    PANDO_CLOSED,                       /* in the graveyard until this turn of the loop is over */
};

#define PANDO_WRITE_LOOKS 4 /* in write_timeout: whether a client has taken anything */

/* One duration each, so that a list in order of arming is in order of expiry. */
enum pando_timer_kind {
    PANDO_TIMER_HEADER,
    PANDO_TIMER_BODY,
    PANDO_TIMER_IDLE,
    PANDO_TIMER_WRITE,                  /* a part of write_timeout */
    PANDO_TIMER_QUEUE,
    PANDO_TIMER_LINGER,
    PANDO_TIMERS
};

struct pando_timer {
    struct pando_node node;
    uint64_t due;                       /* milliseconds */
    uint8_t kind;
};

/* Something to be sent, in order: bytes behind this struct in its buffer, or a file. */
struct pando_output {
    struct pando_output *next;
    uint32_t capacity, start, end;      /* of data */
    int fd;                             /* -1: data */
    uint8_t spooled;                    /* a part of the connection's own file, which is closed behind the last */
    off_t offset;
    uint64_t left;
    char data[];
};

struct pando_connection {
    struct pando_watch watch;
    uint8_t state;
    uint8_t readable, writable;         /* as far as we know; edge-triggered */
    uint8_t read_ended;                 /* the client announced its end; there may be bytes before it */
    uint8_t persistent;                 /* as far as client and limits go */
    uint8_t safe;                       /* GET, HEAD or OPTIONS */
    uint8_t read_only;                  /* GET or HEAD */
    uint8_t head_only;                  /* HEAD: our own answers have no body */
    uint8_t streamed;                   /* its body is its worker's to read */
    uint8_t linger;                     /* close so that the client can read the answer although it still sends */
    uint32_t listener;
    uint32_t requests;
    struct pando_request request;       /* that is in flight */
    uint32_t blocks;                    /* the lane that waits for this client, or PANDO_NONE */

    struct pando_node all;
    struct pando_node queued;           /* of its client's requests that wait */
    struct pando_queue_client *client;  /* while it is among these */
    struct pando_node again;            /* there is more to do without an event */
    struct pando_timer timer;

    /* in: [head][body in memory][...][raw: not looked at yet] */
    struct pando_buffer in;
    uint32_t in_end;                    /* of what was received */
    uint32_t head_bytes, body_bytes;
    uint32_t raw;
    int spool;                          /* the file that takes over when memory is full, or -1 */
    uint64_t spooled, spool_memory;     /* bytes in it; that it may take of memory */
    uint64_t spool_disk;                /* or of the disk */
    uint64_t body_left;                 /* of a sized body */
    pando_http_parser parser;
    struct pando_buffer fields;         /* only while a head is incomplete */
    pando_http_chunked chunked;

    struct pando_output *out, *out_last;
    uint64_t out_bytes;                 /* of memory */
    uint32_t out_files, out_parts;      /* in the queue: files of workers; parts of the following */
    int overflow;                       /* the file that takes over when memory is full, or -1 */
    uint64_t overflow_end, overflow_given; /* bytes ever written to it; those whose space was given back */
    struct pando_node reader;           /* in the list of those that have something to take */
    uint64_t reader_since, taken_before; /* when it joined; bytes that its client had taken until then */
    uint64_t sent, taken;               /* bytes ever given to the socket; that its client had taken when we looked last */
    uint8_t pauses;                     /* looks in a row that found nothing taken */
    uint8_t tcp;                        /* the kernel says what its client has taken */
    uint8_t overflow_full;              /* as long as a file may be: RLIMIT_FSIZE */
    uint8_t unsent_bounded;             /* the kernel keeps little for it */

    struct pando_address origin;        /* whose it is, for the queue */
    uint64_t pace_at;                   /* when the transfer that is under way has begun, or has moved last */
    int64_t pace_debt;                  /* see reactor_timers.c */
    struct pando_address address;       /* count 0: it is not counted */
    char remote[48];
};

/* The thread that closes files, and the pipe by which it gets their descriptors. */
struct pando_reactor_closer {
    pthread_t thread;
    int from, to;                       /* to -1: there is no thread */
};

#define PANDO_RESERVE 16 /* descriptors; the order for a lane brings three */

struct pando_reactor {
    const struct pando_reactor_config *config;
    int epoll;
    struct pando_channel channel;
    struct pando_stats *stats;          /* the channel's */
    struct pando_watch control, wake;
    struct pando_reactor_listener *listeners; /* by number */
    uint32_t listener_count;            /* one more than the highest */

    uint64_t now;                       /* milliseconds, once a turn */
    int asked;                          /* that the turn was to wait for; -1: without end */
    uint8_t accepting, accept_ready, control_ready, draining, orphaned, finished;
    int status, failure;
    int reserve[PANDO_RESERVE];         /* descriptors, or -1 */
    uint64_t accept_at;                 /* when a pause in accepting ends, or 0 */
    uint64_t wake_at, audit_at, deadline;
    uint8_t welcome;                    /* new requests are, as far as the monitor knows */
    uint64_t told_at;                   /* when it said so; milliseconds */
    uint64_t idle_until;                /* when idle connections that must end are closed, or 0 */

    struct pando_node connections, again, graveyard, spare;
    uint32_t connection_count, spare_count;
    uint32_t connection_peak;           /* since memory was given back last */
    struct pando_addresses addresses;
    struct pando_node timers[PANDO_TIMERS];
    uint32_t durations[PANDO_TIMERS], running[PANDO_TIMERS];

    struct pando_reactor_closer closer;
    struct pando_pool pool;
    uint64_t out_total, spool_memory, spooled_answers, spooled_bodies;
    uint64_t spool_most;                /* bytes that may be on the disk */
    uint64_t spool_shut_until;          /* the disk took nothing; milliseconds. 0: it takes bytes, as far as we know */
    struct pando_node readers;
    uint32_t overflows, most_overflows; /* their files, which are descriptors that others want too */
    uint32_t waiting;                   /* lanes that have a blocker */
    uint8_t roomier;                    /* space came free since they were looked at */
    pando_http_limits limits;
    pando_http_field *fields;           /* for heads that come in one piece */
    char *scratch;
    uint32_t work;                      /* done for one connection since it has its turn; bytes, or as much as so many */

    struct pando_queue queue, heavy;    /* what was set aside, see reactor_heavy.c */
    uint32_t heavy_served;
    uint64_t heavy_pause_until;         /* milliseconds */
    struct pando_reactor_route routes[PANDO_REACTOR_ROUTES];
    uint32_t epoch, turn;               /* of us, and of the last offer */
    uint32_t in_flight, unannounced, offered_count; /* of those on offer, none is known to be claimed */
    uint32_t told_waiting;              /* to workers */
    uint64_t stale_at;                  /* milliseconds: when nothing was found that has waited for a busy worker too long */
    struct pando_reactor_lane lanes[PANDO_CHANNEL_LANES];
    uint32_t open[PANDO_CHANNEL_LANES], open_count;
};

/* reactor.c */
void pando_reactor_end(struct pando_reactor *reactor, int status);
uint64_t pando_reactor_nanoseconds(void);

/* reactor_timers.c */
void pando_reactor_timers_init(struct pando_reactor *reactor);
/* (Re)starts the connection's only timer; one without duration never expires. */
void pando_reactor_timer_start(struct pando_reactor *reactor, struct pando_connection *connection,
                               enum pando_timer_kind kind);
void pando_reactor_timer_stop(struct pando_reactor *reactor, struct pando_connection *connection);
int pando_reactor_timer_runs(const struct pando_connection *connection, enum pando_timer_kind kind);
void pando_reactor_timers_expire(struct pando_reactor *reactor);
/* Milliseconds in which nobody could do anything are no one's. */
void pando_reactor_timers_postpone(struct pando_reactor *reactor, uint64_t milliseconds);
/* Milliseconds until the next one, -1 if there is none. */
int64_t pando_reactor_timers_next(const struct pando_reactor *reactor);
/* A transfer begins; bytes were moved: 0 if it is too slow. */
void pando_reactor_pace_begin(struct pando_reactor *reactor, struct pando_connection *connection);
int pando_reactor_pace_moved(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t bytes,
                     uint32_t allowance);

/* reactor_accept.c */
int pando_reactor_accept_start(struct pando_reactor *reactor);
void pando_reactor_accept_some(struct pando_reactor *reactor);
/* Takes whoever has connected until now; who comes later is refused by the kernel, whoever else has the listeners. */
void pando_reactor_accept_end(struct pando_reactor *reactor);
/* As soon as we know where it comes from. 0: from there come too many; it is refused. */
int pando_reactor_accept_admit(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_accept_pause(struct pando_reactor *reactor);
void pando_reactor_accept_resume(struct pando_reactor *reactor);
/* All who wait there now, though it may take more than a turn's share. */
void pando_reactor_accept_all_of(struct pando_reactor *reactor, uint32_t number);
void pando_reactor_accept_stop(struct pando_reactor *reactor);

/* reactor_listeners.c: 0, or -1 with errno */
int pando_reactor_listeners_start(struct pando_reactor *reactor);
int pando_reactor_listeners_watch(struct pando_reactor *reactor, int operation);
int pando_reactor_listener_open(struct pando_reactor *reactor, const struct pando_listener *listener);
/* Clients that wait there are taken in; later ones are refused by the kernel, unless somebody else holds it. */
void pando_reactor_listener_close(struct pando_reactor *reactor, uint32_t number);
/* Whether the connection must end as soon as nothing is asked of it. */
int pando_reactor_must_end(const struct pando_reactor *reactor, const struct pando_connection *connection);

/* reactor_connection.c */
struct pando_connection *pando_reactor_connection_open(struct pando_reactor *reactor, int fd, uint32_t listener);
void pando_reactor_connection_event(struct pando_reactor *reactor, struct pando_connection *connection,
                                    uint32_t events);
/* Goes on as far as possible without waiting. */
void pando_reactor_connection_advance(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_connection_again(struct pando_reactor *reactor, struct pando_connection *connection);
/* The answer is complete: the next request, or the end, as soon as all is sent. */
void pando_reactor_connection_answered(struct pando_reactor *reactor, struct pando_connection *connection, int keep);
/* All is sent. */
void pando_reactor_connection_flushed(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_connection_close(struct pando_reactor *reactor, struct pando_connection *connection);
/* So that the client notices that its answer is not whole. */
void pando_reactor_connection_reset(struct pando_reactor *reactor, struct pando_connection *connection);
/* Whether we look at what the client does. 0, or -1 if that cannot be. */
int pando_reactor_connection_watch(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_connection_look_away(struct pando_reactor *reactor, struct pando_connection *connection);
/* Ours no longer, without the client noticing. */
void pando_reactor_connection_forget(struct pando_reactor *reactor, struct pando_connection *connection);
/* Unless it asks for something meanwhile. 1: it is closed. */
int pando_reactor_connection_close_idle(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_connection_expired(struct pando_reactor *reactor, struct pando_connection *connection, int kind);
void pando_reactor_connections_bury(struct pando_reactor *reactor);
/* To be called now and then: gives memory back when most connections have left. */
void pando_reactor_connections_trim(struct pando_reactor *reactor);
void pando_reactor_connections_drop(struct pando_reactor *reactor);

/* reactor_input.c */
/* Each one step; 0: nothing more can be done now. */
int pando_reactor_input_proxy(struct pando_reactor *reactor, struct pando_connection *connection);
int pando_reactor_input_head(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_input_rest(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_input_release(struct pando_reactor *reactor, struct pando_connection *connection);
/* A request that is not complete is refused, so that another has room. 0: there is none. */
int pando_reactor_input_give_way(struct pando_reactor *reactor);
/* Whether nothing was said since the last request, and none is on its way. */
int pando_reactor_input_silent(const struct pando_connection *connection);
/* The client says no more, or too slowly: what he has said so far deserves this answer, if it was HTTP. */
void pando_reactor_input_unfinished(struct pando_reactor *reactor, struct pando_connection *connection, int status,
                                    _Atomic uint64_t *reason);
/* recv into a place: bytes; 0: nothing now, or the connection is closed or refused. */
size_t pando_reactor_input_receive(struct pando_reactor *reactor, struct pando_connection *connection, char *place,
                                   size_t room);

/* reactor_body.c */
void pando_reactor_body_begin(struct pando_reactor *reactor, struct pando_connection *connection);
int pando_reactor_body_step(struct pando_reactor *reactor, struct pando_connection *connection);

/* reactor_spool.c: -1 with errno */
int pando_reactor_spool_open(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t expected);
int pando_reactor_spool_write(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                              size_t bytes);
/* No worker can change it any more. */
void pando_reactor_spool_seal(struct pando_connection *connection);
void pando_reactor_spool_close(struct pando_reactor *reactor, struct pando_connection *connection);
/* A file without a name on the disk, or -1. */
int pando_reactor_spool_file(const struct pando_reactor *reactor);
/* How much the disk has for us: now, and every now and then if that may have changed. */
void pando_reactor_spool_measure(struct pando_reactor *reactor);
void pando_reactor_spool_look(struct pando_reactor *reactor);
int pando_reactor_spool_has_room(const struct pando_reactor *reactor, uint64_t bytes);
/* By errno, after one of these has failed, or the pool. */
_Atomic uint64_t *pando_reactor_spool_reason(struct pando_reactor *reactor);
/* Tells the pool what of all this takes memory. */
void pando_reactor_spool_count(struct pando_reactor *reactor);
/* errno: the disk takes nothing for a while. */
void pando_reactor_spool_failed(struct pando_reactor *reactor);
/* Whether workers wait that may go on when the disk takes bytes again. */
int pando_reactor_spool_is_missed(const struct pando_reactor *reactor);
/* Tries that; it is shut for another while if it does not. */
void pando_reactor_spool_try(struct pando_reactor *reactor);
/* Bytes written; fewer: errno says why. */
size_t pando_reactor_spool_put(int fd, const char *data, size_t bytes, uint64_t offset);

/* reactor_output.c */
/* ends: the connection's end follows at once, and may travel with them. */
void pando_reactor_output_bytes(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                                size_t bytes, int ends);
void pando_reactor_output_file(struct pando_reactor *reactor, struct pando_connection *connection, int fd,
                               uint64_t bytes);
void pando_reactor_output_flush(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_output_release(struct pando_reactor *reactor, struct pando_connection *connection);

/* reactor_reader.c */
/* The first of what waits for its client, and the last. */
void pando_reactor_reader_begin(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_reader_end(struct pando_reactor *reactor, struct pando_connection *connection);
/* Starts the timer of a client that has something to take, unless it runs. */
void pando_reactor_reader_watch(struct pando_reactor *reactor, struct pando_connection *connection);
/* Looks what its client has taken. 0: too little all in all, it was reset. */
int pando_reactor_reader_moved(struct pando_reactor *reactor, struct pando_connection *connection);
/* A part of write_timeout is over: it goes on if its client has taken something, if little, and is reset at the end. */
void pando_reactor_reader_overdue(struct pando_reactor *reactor, struct pando_connection *connection);
/* Bytes that its client has taken, ever: on a UNIX socket those that the kernel has. */
uint64_t pando_reactor_reader_taken(const struct pando_connection *connection);

/* reactor_overflow.c */
void pando_reactor_overflow_init(struct pando_reactor *reactor);
int pando_reactor_overflow_possible(const struct pando_reactor *reactor, const struct pando_connection *connection,
                                    size_t bytes);
/* 0, or -1: not all of it was written; *bytes says how much. */
int pando_reactor_overflow_write(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                                 size_t *bytes);
/* So much of it was sent: its space is given back, now or when it is worth a system call. */
void pando_reactor_overflow_sent(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t until);
void pando_reactor_overflow_close(struct pando_reactor *reactor, struct pando_connection *connection);

/* reactor_closer.c */
void pando_reactor_closer_start(struct pando_reactor *reactor);
/* The file is the closer's: it may be open for a moment yet. */
void pando_reactor_closer_take(struct pando_reactor *reactor, int fd);
void pando_reactor_closer_stop(struct pando_reactor *reactor);

/* reactor_room.c */
int pando_reactor_room_in_memory(const struct pando_reactor *reactor, const struct pando_connection *connection,
                                 size_t bytes);
/* Whether all clients together may have so many bytes more in memory. */
int pando_reactor_room_of_all(const struct pando_reactor *reactor, size_t bytes);
/* Whether so many bytes more of an answer have a place to wait. */
int pando_reactor_room_for(const struct pando_reactor *reactor, const struct pando_connection *connection,
                           size_t bytes);
/* 1: the lane waits for that client. 0: there is room, or the connection is closed. */
int pando_reactor_room_wait(struct pando_reactor *reactor, uint32_t lane, struct pando_connection *connection,
                            size_t bytes);
/* Resets the slowest reader. 0: there is none. */
int pando_reactor_room_cut(struct pando_reactor *reactor);

/* reactor_refusal.c: the answer is counted, and the connection's last. */
void pando_reactor_refuse(struct pando_reactor *reactor, struct pando_connection *connection, int status);
/* Counted as `reason`, one of the statistics. */
void pando_reactor_refuse_for(struct pando_reactor *reactor, struct pando_connection *connection, int status,
                              _Atomic uint64_t *reason);
/* 503 because there is too much to do; `reason` is one of the statistics' shed_ counts. */
void pando_reactor_shed(struct pando_reactor *reactor, struct pando_connection *connection,
                        _Atomic uint64_t *reason);
/* 503 to a client for whom there is no connection, as there is no memory: by what the kernel takes at once. Closes it. */
void pando_reactor_turn_away(struct pando_reactor *reactor, int fd);

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
