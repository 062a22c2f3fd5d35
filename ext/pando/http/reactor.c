/* The reactor's main file: its loop, its start and its end. Runs in the reactor's process, in its only serving thread.
 *
 * A turn of the loop (take_turn) handles the events of epoll, reads the lanes of the workers, dispatches requests,
 * reads the monitor's orders, accepts connections, continues connections that have more to do, and expires timers.
 * Then the loop sleeps until the next event or deadline.
 *
 * The states of a connection (enum pando_connection_state). The names in parentheses are the functions that change
 * the state. A function of this directory is given without its prefix pando_reactor_; the file is named where there
 * is room for doubt.
 *
 *                   accept (connection_open, called by accept_one)
 *                        |
 *           +------------+----------------+
 *           | PROXIED listener            | any other listener
 *           v                             |
 *   +---------------+                     |
 *   | READING_PROXY |                     |
 *   +---------------+                     |
 *           | PROXY header complete       |
 *           | (introduced)                |
 *           v                             v
 *   +-------------------------------------------+   next request on a kept connection (next_request)
 *   |               READING_HEAD                |<--------------------------------------------+
 *   +-------------------------------------------+                                             |
 *       |                 |                 |                                                 |
 *       | head complete,  | head complete,  | health check (answer in reactor_health.c)       |
 *       | with a body     | no body or a    | refusal, timeout or overload                    |
 *       | (body_begin)    | streamed one    | (answer in reactor_refusal.c)                   |
 *       v                 | (publish)       |                                                 |
 *   +--------------+      |                 |                                                 |
 *   | READING_BODY |------|---------------->|  refusal, timeout, overload                     |
 *   +--------------+      |                 |  (answer in reactor_refusal.c)                  |
 *       | body complete   |                 |                                                 |
 *       | (publish)       |                 |                                                 |
 *       v                 v                 |                                                 |
 *   +-------------------------+             |                                                 |
 *   |        IN_FLIGHT        |             |                                                 |
 *   +-------------------------+             |                                                 |
 *       |                                   |                                                 |
 *       | END frame (connection_answered)   |                                                 |
 *       | 502, 503, 504 before the answer   |                                                 |
 *       | began (answer in reactor_refusal) |                                                 |
 *       v                                   v                                                 |
 *   +-------------------------------------------+   all sent, connection kept                 |
 *   |                 FINISHING                 |---------------------------------------------+
 *   +-------------------------------------------+   (connection_flushed)
 *       |                              |
 *       | all sent, connection ends,   | all sent, connection ends,
 *       | input unread or `linger`     | nothing unread, or shutdown fails
 *       | (end)                        | (end)
 *       v                              |
 *   +-----------+                      |
 *   | LINGERING |                      |
 *   +-----------+                      |
 *       | EOF, error, or 2 s in all    |
 *       | (drop_input)                 |
 *       | 500 ms of silence            |
 *       | (connection_expired)         |
 *       v                              v
 *   +-------------------------------------------+  end of the turn
 *   |                  CLOSED                   |------------------> spare object or free (connections_bury)
 *   +-------------------------------------------+
 *
 * "publish" is request_publish. If it finds the queue full, the memory used up or no worker left, it sheds the request
 * with a 503: FINISHING. READING_PROXY leads to FINISHING, too, when a limit on connections or memory is reached (503).
 *
 * Within IN_FLIGHT, request.place says where the request is (enum pando_request_place):
 *
 *   QUEUED or SET_ASIDE --> OFFERED   offer
 *   OFFERED --> TAKEN                 dispatch_look: its worker has claimed it and is done with the request before
 *   OFFERED --> OFFERED               steal, offer: unclaimed, and another worker can have it sooner
 *   OFFERED --> QUEUED                request_wait_again: unclaimed, and its lane is closed or lost
 *   OFFERED, TAKEN --> QUEUED         lost: its worker died, and the request may be retried
 *
 * These events lead straight to CLOSED:
 *
 *   READING_PROXY   malformed header (input_proxy); EOF or header_timeout (input_unfinished)
 *   READING_HEAD    EOF or header_timeout before the first byte (input_unfinished); idle_timeout (connection_expired)
 *   both of these   evicted, or silent while the server drains or the listener closes (connection_close_idle)
 *   IN_FLIGHT       the worker failed after the answer had begun (request_fail); the worker has the socket (given_away)
 *   IN_FLIGHT and   hang-up or error of the socket (connection_event); a client that takes too little (too_slow), or is
 *   FINISHING       the slowest when answers have no more room (room_cut); an answer that cannot be kept or read back
 *                   (out_of_memory, send_file, send_spooled)
 *   reading states  too many connections of its address (accept_admit); recv fails (input_receive); the monitor is
 *                   gone (orphan; LINGERING too)
 *   any             send fails (sent in reactor_output.c); the reactor stops (connections_drop) */
#include "reactor_private.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256
#define QUEUE_TICK 100u  /* milliseconds between two checks for a lost wake-up while a request waits */
#define AUDIT_TICK 1000u
#define STANDSTILL 1000u

uint64_t pando_reactor_nanoseconds(void)
{
    struct timespec clock = {0};
    clock_gettime(CLOCK_MONOTONIC, &clock);
    return (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
}

static void look_at_the_clock(struct pando_reactor *reactor)
{
    reactor->now = pando_reactor_nanoseconds() / 1000000u;
}

/* A turn takes little time. If much more time has passed than the turn was meant to wait, the whole machine stood
 * still (a frozen container, a stopped server), and no client is to blame. While a request is in flight, a turn never
 * waits for longer than AUDIT_TICK, so that hardly any of that time goes unnoticed. */
static void make_up_for_a_standstill(struct pando_reactor *reactor, uint64_t turned)
{
    if (reactor->asked == -1)
        return;
    uint64_t expected = turned + (uint64_t)reactor->asked;
    if (reactor->now > expected + STANDSTILL)
        pando_reactor_timers_postpone(reactor, reactor->now - expected);
}

void pando_reactor_end(struct pando_reactor *reactor, int status)
{
    if (!reactor->finished)
        reactor->status = status;
    reactor->finished = 1;
}

/* --- one turn --- */

static void take_event(struct pando_reactor *reactor, const struct epoll_event *event)
{
    struct pando_watch *watch = event->data.ptr;
    switch (watch->kind) {
    case PANDO_WATCH_LISTENER:
        reactor->accept_ready = 1;
        break;
    case PANDO_WATCH_CONTROL:
        reactor->control_ready = 1;
        break;
    case PANDO_WATCH_CONNECTION:
        pando_reactor_connection_event(reactor, pando_owner(watch, struct pando_connection, watch), event->events);
        break;
    case PANDO_WATCH_WAKE: /* edge-triggered and never read: waking the loop is its only purpose */
        break;
    }
}

/* Connections with more to do than one turn allows. A connection that joins the list now has its turn in the next
 * round. */
static void go_on(struct pando_reactor *reactor)
{
    struct pando_node turn;
    pando_list_init(&turn);
    while (!pando_list_empty(&reactor->again)) {
        struct pando_node *node = reactor->again.next;
        pando_list_remove(node);
        pando_list_append(&turn, node);
    }
    while (!pando_list_empty(&turn)) {
        struct pando_connection *connection = pando_owner(turn.next, struct pando_connection, again);
        pando_list_remove(&connection->again);
        if (connection->out)
            pando_reactor_output_flush(reactor, connection);
        if (connection->state == PANDO_CLOSED)
            continue;
        if (reactor->idle_until == 0 && pando_reactor_must_end(reactor, connection) &&
            pando_reactor_input_silent(connection)) /* its last answer did not announce the end of the connection */
            pando_reactor_connection_close_idle(reactor, connection);
        else
            pando_reactor_connection_advance(reactor, connection);
    }
}

/* A safety net: these steps catch up on what a lost wake-up, a damaged lane, a full link or a full disk left undone. */
static void tick(struct pando_reactor *reactor)
{
    if (reactor->now >= reactor->wake_at) {
        pando_reactor_dispatch_late(reactor);
        reactor->wake_at = reactor->now + QUEUE_TICK;
    }
    if (pando_reactor_spool_is_missed(reactor) && reactor->now >= reactor->spool_shut_until)
        pando_reactor_spool_try(reactor);
    if (reactor->now >= reactor->audit_at) {
        pando_reactor_lanes_audit(reactor);
        pando_reactor_lanes_report(reactor);
        pando_reactor_connections_trim(reactor);
        pando_reactor_spool_look(reactor);
        reactor->audit_at = reactor->now + AUDIT_TICK;
    }
}

static void tell_gauges(struct pando_reactor *reactor)
{
    pando_stat_set(&reactor->stats->connections, reactor->connection_count);
    pando_stat_set(&reactor->stats->idle, reactor->running[PANDO_TIMER_IDLE]);
    pando_stat_set(&reactor->stats->in_flight, reactor->in_flight);
    pando_stat_set(&reactor->stats->head_bytes, reactor->pool.lent - reactor->out_total);
    pando_stat_set(&reactor->stats->body_bytes, reactor->spool_memory);
    pando_stat_set(&reactor->stats->response_bytes, reactor->out_total);
    pando_stat_set(&reactor->stats->spooled_responses, reactor->spooled_responses);
    pando_stat_set(&reactor->stats->spooled_bodies, reactor->spooled_bodies);
    pando_stat_set(&reactor->stats->waiting_workers, reactor->waiting);
    pando_stat_add(&reactor->stats->turns, 1);
}

static void take_turn(struct pando_reactor *reactor, const struct epoll_event *events, int count)
{
    uint64_t turned = reactor->now;
    look_at_the_clock(reactor);
    make_up_for_a_standstill(reactor, turned);
    reactor->accept_ready = reactor->control_ready = 0;
    for (int i = 0; i < count; i++)
        take_event(reactor, &events[i]);
    pando_reactor_reserve_fill(reactor); /* before anything else takes the freed descriptors */
    pando_reactor_dispatch(reactor);
    pando_reactor_lanes_read(reactor);
    pando_reactor_dispatch(reactor);
    if (reactor->control_ready)
        pando_reactor_control_read(reactor);
    if (reactor->accept_ready)
        pando_reactor_accept_some(reactor);
    go_on(reactor);
    pando_reactor_timers_expire(reactor);
    pando_reactor_accept_resume(reactor);
    tick(reactor);
    pando_reactor_dispatch(reactor);
    pando_reactor_connections_bury(reactor);
    tell_gauges(reactor);
    pando_access_log_turn(reactor);
    pando_reactor_dispatch_tell(reactor);
    pando_control_finish_draining(reactor);
}

/* --- waiting --- */

static int64_t sooner(int64_t one, int64_t other)
{
    return one == -1 || other < one ? other : one;
}

static int64_t until(const struct pando_reactor *reactor, uint64_t moment)
{
    return moment > reactor->now ? (int64_t)(moment - reactor->now) : 0;
}

static int time_to_wait(const struct pando_reactor *reactor)
{
    int64_t wait = pando_reactor_timers_next(reactor);
    if (reactor->accept_at > 0)
        wait = sooner(wait, until(reactor, reactor->accept_at));
    if (reactor->in_flight > 0)
        wait = sooner(wait, until(reactor, reactor->audit_at));
    if (pando_reactor_dispatch_waiting(reactor) > 0)
        wait = sooner(wait, until(reactor, reactor->wake_at));
    if (pando_reactor_spool_is_missed(reactor))
        wait = sooner(wait, until(reactor, reactor->spool_shut_until));
    if (pando_reactor_dispatch_offers(reactor))
        wait = sooner(wait, PANDO_PATIENCE);
    if (reactor->orphaned)
        wait = sooner(wait, until(reactor, reactor->deadline));
    if (reactor->idle_until > 0)
        wait = sooner(wait, until(reactor, reactor->idle_until));
    return wait > 86400000 ? 86400000 : (int)wait;
}

/* No wake-up is lost: a worker puts a frame or falls asleep first and then checks whether the reactor sleeps; the
 * reactor declares itself asleep first and then checks the lanes. */
static int wait_for_events(struct pando_reactor *reactor, struct epoll_event *events)
{
    int timeout = 0, sleeps = pando_list_empty(&reactor->again) && !pando_reactor_lanes_pending(reactor);
    if (sleeps) {
        timeout = time_to_wait(reactor);
        pando_channel_sleep(&reactor->channel);
        if (pando_reactor_lanes_pending(reactor) || pando_reactor_dispatch_due(reactor))
            timeout = 0;
    }
    reactor->asked = timeout;
    int count = epoll_wait(reactor->epoll, events, EVENTS, timeout);
    if (count == -1 && errno == EINTR) /* after SIGCONT for example, see signal(7): take first what arrived in time,
                                        * so that nothing in time counts as late */
        count = epoll_wait(reactor->epoll, events, EVENTS, 0);
    if (sleeps)
        pando_channel_awake(&reactor->channel);
    return count == -1 && errno == EINTR ? 0 : count;
}

static void loop(struct pando_reactor *reactor)
{
    struct epoll_event events[EVENTS];
    while (!reactor->finished) {
        int count = wait_for_events(reactor, events);
        if (count == -1) {
            reactor->failure = errno;
            pando_reactor_end(reactor, PANDO_REACTOR_FAILED);
            return;
        }
        take_turn(reactor, events, count);
    }
}

/* --- beginning and end --- */

static int watch(struct pando_reactor *reactor, struct pando_watch *watch, enum pando_watch_kind kind, int fd,
                 uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    *watch = (struct pando_watch){kind, fd};
    return epoll_ctl(reactor->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void init(struct pando_reactor *reactor, const struct pando_reactor_config *config)
{
    reactor->config = config;
    reactor->epoll = reactor->closer.to = -1;
    pando_reactor_reserve_init(reactor);
    reactor->limits = (pando_http_limits){config->max_header_bytes, config->max_target_bytes, config->max_headers};
    pando_reactor_pool_init(&reactor->pool, config->buffer_memory);
    pando_list_init(&reactor->connections);
    pando_list_init(&reactor->again);
    pando_list_init(&reactor->graveyard);
    pando_list_init(&reactor->spare);
    pando_list_init(&reactor->readers);
    pando_reactor_timers_init(reactor);
    pando_reactor_overflow_init(reactor);
    look_at_the_clock(reactor);
    reactor->told_at = reactor->now;
    pando_reactor_spool_measure(reactor);
}

static int start(struct pando_reactor *reactor)
{
    const struct pando_reactor_config *config = reactor->config;
    if (pando_channel_attach(&reactor->channel, config->channel, 1) == -1 ||
        pando_reactor_requests_begin(reactor) == -1)
        return -1;
    reactor->epoch = (uint32_t)pando_channel_new_epoch(&reactor->channel);
    reactor->turn = reactor->epoch << 24; /* so that no turn of a former reactor, which a worker may remember, looks
                                           * like one of this reactor */
    reactor->stats = &reactor->channel.shared->stats;
    reactor->fields = calloc(config->max_headers ? config->max_headers : 1, sizeof(*reactor->fields));
    reactor->scratch = calloc(1, PANDO_SCRATCH_BYTES);
    reactor->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!reactor->fields || !reactor->scratch || reactor->epoll == -1)
        return -1;
    if (watch(reactor, &reactor->wake, PANDO_WATCH_WAKE, config->wake, EPOLLIN | EPOLLET) == -1 ||
        watch(reactor, &reactor->control, PANDO_WATCH_CONTROL, config->control, EPOLLIN) == -1 ||
        pando_reactor_accept_start(reactor) == -1)
        return -1;
    pando_reactor_closer_start(reactor);
    pando_access_log_start(reactor);
    return pando_reactor_control_tell(reactor, PANDO_REACTOR_READY, 0);
}

static void stop(struct pando_reactor *reactor)
{
    pando_reactor_accept_stop(reactor);
    pando_reactor_connections_drop(reactor);
    pando_reactor_lanes_drop(reactor);
    pando_reactor_pool_drop(&reactor->pool);
    pando_addresses_drop(&reactor->addresses);
    pando_reactor_requests_drop(reactor);
    int unused = pando_access_log_stop(reactor);
    pando_reactor_closer_stop(reactor);
    pando_reactor_reserve_release(reactor);
    if (reactor->epoll != -1)
        close(reactor->epoll);
    if (reactor->channel.shared && unused)
        pando_channel_unmap(&reactor->channel);
    close(reactor->config->wake);
    close(reactor->config->control);
    free(reactor->listeners);
    free(reactor->fields);
    free(reactor->scratch);
    free(reactor);
}

int pando_reactor_run(const struct pando_reactor_config *config)
{
    struct pando_reactor *reactor = calloc(1, sizeof(*reactor));
    if (!reactor)
        return PANDO_REACTOR_FAILED;
    init(reactor, config);
    if (start(reactor) == 0) {
        loop(reactor);
    } else {
        reactor->failure = errno;
        reactor->status = PANDO_REACTOR_FAILED;
    }
    int status = reactor->status, failure = reactor->failure;
    stop(reactor);
    errno = failure;
    return status;
}
