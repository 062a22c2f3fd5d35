/*
 * An open-loop load generator for HTTP/1.1: requests come when their time has come, however the server is
 * doing, and a request's latency counts from the moment it was meant to be sent. A closed loop would wait for
 * a slow answer before it asks again, and so leave out just the requests that would have been slow.
 *
 * Two kinds of requests are mixed, fast and slow ones, and reported apart. At most one request is under way on
 * each connection (no pipelining). A request that finds them all busy waits here, and its clock runs.
 *
 *   openload --port P --connections N --rate REQUESTS_PER_SECOND --seconds S [--warmup S] [--drain S]
 *            [--fast PATH] [--slow PATH] [--slow-share 0..1] [--seed N]
 *            [--arrivals poisson|fixed] [--assign free|bound] [--host N]
 *
 * The connections come from 127.0.0.N and are opened during the first half of the warm-up, whose requests are not
 * counted.
 *
 *   free:  a request takes any idle connection, as from a proxy's pool
 *   bound: a request belongs to one connection from the start, drawn by lot, as a browser's does
 *
 * Prints one line of JSON, times in milliseconds.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "client.h"

enum { FAST, SLOW, KINDS };
enum { UNOPENED, CONNECTING, IDLE, BUSY };
enum { EVENTS = 64 };

struct request {
    uint64_t intended;
    int kind;
};

/* First in, first out; grows as it must. */
struct queue {
    struct request *items;
    size_t first, count, room;
};

struct connection {
    int fd, state, place; /* place: among the idle ones */
    uint64_t opens;
    struct request request;
    struct queue waiting; /* of a bound client */
    struct reply reply;
};

struct samples {
    uint64_t *values;
    size_t count, room;
};

static struct {
    const char *path[KINDS];
    int port, connections, poisson, bound, host;
    double rate, seconds, warmup, drain, slow_share;
    uint64_t seed;
} options = {.path = {"/fast", "/slow"}, .connections = 1, .poisson = 1, .host = 1, .rate = 100, .seconds = 10, .drain = 10, .seed = 1};

static struct connection *connections;
static struct connection **idle;
static int idle_count, epoll, timer;
static struct queue waiting;
static struct samples latency[KINDS], lag;
static uint64_t arrivals_rng, assign_rng, measured_from, stops;
static size_t sent, failed, unanswered, in_flight;
static char head[KINDS][1024];

static void enqueue(struct queue *queue, struct request request) {
    if (queue->count == queue->room) {
        size_t room = queue->room ? queue->room * 2 : 64;
        struct request *items = must(malloc(room * sizeof *items));
        for (size_t i = 0; i < queue->count; i++)
            items[i] = queue->items[(queue->first + i) % queue->room];
        free(queue->items);
        *queue = (struct queue){items, 0, queue->count, room};
    }
    queue->items[(queue->first + queue->count++) % queue->room] = request;
}

static struct request dequeue(struct queue *queue) {
    struct request request = queue->items[queue->first];
    queue->first = (queue->first + 1) % queue->room;
    queue->count--;
    return request;
}

static void note(struct samples *samples, uint64_t value) {
    if (samples->count == samples->room) {
        samples->room = samples->room ? samples->room * 2 : 4096;
        samples->values = must(realloc(samples->values, samples->room * sizeof *samples->values));
    }
    samples->values[samples->count++] = value;
}

static void measured(const struct request *request, uint64_t now) {
    if (request->intended >= measured_from)
        note(&latency[request->kind], now - request->intended);
}

/* --- connections */

static void watch(struct connection *connection, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(epoll, operation, connection->fd, &event) < 0)
        die("epoll_ctl");
}

static void make_idle(struct connection *connection) {
    connection->state = IDLE;
    connection->place = idle_count;
    idle[idle_count++] = connection;
}

static void take(struct connection *connection) {
    idle[connection->place] = idle[--idle_count];
    idle[connection->place]->place = connection->place;
}

static void open_connection(struct connection *connection) {
    connection->state = CONNECTING;
    connection->fd = connect_to(options.port, options.host, 0);
    watch(connection, EPOLL_CTL_ADD, EPOLLOUT);
}

static void reopen(struct connection *connection) {
    if (connection->state == IDLE)
        take(connection);
    if (connection->state == BUSY) {
        failed += connection->request.intended >= measured_from;
        in_flight--;
    }
    close(connection->fd);
    open_connection(connection);
}

static void send_request(struct connection *connection, struct request request) {
    take(connection);
    connection->state = BUSY;
    connection->request = request;
    connection->reply = (struct reply){0};
    in_flight++;
    sent++;
    const char *bytes = head[request.kind];
    if (send(connection->fd, bytes, strlen(bytes), MSG_NOSIGNAL) != (ssize_t)strlen(bytes))
        reopen(connection);
}

/* What waits for this connection, if anything does. */
static void serve(struct connection *connection) {
    if (connection->waiting.count)
        send_request(connection, dequeue(&connection->waiting));
    else if (waiting.count)
        send_request(connection, dequeue(&waiting));
}

static void connected(struct connection *connection) {
    if (socket_error(connection->fd)) {
        reopen(connection);
        return;
    }
    watch(connection, EPOLL_CTL_MOD, EPOLLIN);
    make_idle(connection);
    serve(connection);
}

static void answered(struct connection *connection) {
    if (connection->reply.status == 200)
        measured(&connection->request, now_ns());
    else
        failed += connection->request.intended >= measured_from;
    in_flight--;
    make_idle(connection);
    if (connection->reply.closes)
        reopen(connection);
    else
        serve(connection);
}

static void readable(struct connection *connection) {
    static char buffer[65536];
    ssize_t got = recv(connection->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (connection->state != BUSY) {
        reopen(connection); /* closed while idle, or it said what nobody asked for */
        return;
    }
    switch (got > 0 ? reply_feed(&connection->reply, buffer, (size_t)got) : reply_eof(&connection->reply)) {
    case REPLY_DONE: answered(connection); break;
    case REPLY_BAD: reopen(connection); break;
    default: break;
    }
}

/* --- arrivals */

static uint64_t interval(void) {
    double mean = 1e9 / options.rate;
    return (uint64_t)(options.poisson ? -log1p(-random_unit(&arrivals_rng)) * mean : mean);
}

static void arrive(uint64_t intended) {
    struct request request = {intended, random_unit(&arrivals_rng) < options.slow_share ? SLOW : FAST};
    struct connection *connection = NULL;
    if (intended >= measured_from)
        note(&lag, now_ns() - intended); /* our own */
    if (options.bound)
        connection = &connections[random_below(&assign_rng, (uint64_t)options.connections)];
    else if (idle_count)
        connection = idle[random_below(&assign_rng, (uint64_t)idle_count)];
    if (connection && connection->state == IDLE)
        send_request(connection, request);
    else
        enqueue(connection ? &connection->waiting : &waiting, request);
}

static void set_timer(uint64_t when) {
    struct itimerspec spec = {.it_value = {(time_t)(when / 1000000000u), (long)(when % 1000000000u)}};
    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL) < 0)
        die("timerfd_settime");
}

static void handle_events(void) {
    struct epoll_event events[EVENTS];
    int count = epoll_wait(epoll, events, EVENTS, 1000);
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        uint64_t expirations;
        if (!connection)
            (void)!read(timer, &expirations, sizeof expirations);
        else if (connection->state == CONNECTING)
            connected(connection);
        else
            readable(connection);
    }
}

/* During the first half of the warm-up, one after another: a crowd at an idle server would all be one process's. */
static void open_connections(uint64_t now) {
    for (int i = 0; i < options.connections; i++)
        if (connections[i].state == UNOPENED && connections[i].opens <= now)
            open_connection(&connections[i]);
}

static void plan_connections(uint64_t first) {
    for (int i = 0; i < options.connections; i++)
        connections[i].opens = first + (uint64_t)(options.warmup * 5e8) * (uint64_t)i / (uint64_t)options.connections;
}

static size_t left(void) {
    size_t count = waiting.count + in_flight;
    for (int i = 0; i < options.connections; i++)
        count += connections[i].waiting.count;
    return count;
}

static void run(void) {
    uint64_t next = now_ns() + 100000000u + interval();
    measured_from = next + (uint64_t)(options.warmup * 1e9);
    stops = measured_from + (uint64_t)(options.seconds * 1e9);
    plan_connections(now_ns());
    while (next < stops) {
        open_connections(now_ns());
        for (uint64_t now = now_ns(); next <= now && next < stops; next += interval())
            arrive(next);
        set_timer(next);
        handle_events();
    }
    uint64_t deadline = stops + (uint64_t)(options.drain * 1e9);
    set_timer(deadline);
    while (left() && now_ns() < deadline)
        handle_events();
}

/* Those never answered count with the age they reached: leaving them out would flatter the server. */
static void count_unanswered(struct queue *queue, uint64_t now) {
    for (; queue->count; unanswered++) {
        struct request request = dequeue(queue);
        measured(&request, now);
    }
}

static void count_all_unanswered(void) {
    uint64_t now = now_ns();
    count_unanswered(&waiting, now);
    for (int i = 0; i < options.connections; i++) {
        if (connections[i].state == BUSY) {
            measured(&connections[i].request, now);
            unanswered++;
        }
        count_unanswered(&connections[i].waiting, now);
    }
}

/* --- report */

static int ascending(const void *one, const void *other) {
    uint64_t left = *(const uint64_t *)one, right = *(const uint64_t *)other;
    return (left > right) - (left < right);
}

/* The smallest value that this share of all does not exceed (nearest rank). */
static double percentile(const struct samples *samples, double share) {
    size_t rank = (size_t)ceil(share * (double)samples->count);
    return samples->count ? (double)samples->values[rank ? rank - 1 : 0] / 1e6 : 0;
}

static void report(const char *name, struct samples *samples) {
    if (samples->count)
        qsort(samples->values, samples->count, sizeof *samples->values, ascending);
    printf("\"%s\":{\"requests\":%zu,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"worst\":%.3f},", name, samples->count,
           percentile(samples, 0.5), percentile(samples, 0.9), percentile(samples, 0.99), percentile(samples, 1));
}

static void parse(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--port")) options.port = atoi(value);
        else if (!strcmp(name, "--connections")) options.connections = atoi(value);
        else if (!strcmp(name, "--rate")) options.rate = atof(value);
        else if (!strcmp(name, "--seconds")) options.seconds = atof(value);
        else if (!strcmp(name, "--warmup")) options.warmup = atof(value);
        else if (!strcmp(name, "--drain")) options.drain = atof(value);
        else if (!strcmp(name, "--fast")) options.path[FAST] = value;
        else if (!strcmp(name, "--slow")) options.path[SLOW] = value;
        else if (!strcmp(name, "--slow-share")) options.slow_share = atof(value);
        else if (!strcmp(name, "--seed")) options.seed = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--arrivals")) options.poisson = !strcmp(value, "poisson");
        else if (!strcmp(name, "--host")) options.host = atoi(value);
        else if (!strcmp(name, "--assign")) options.bound = !strcmp(value, "bound");
        else die(name);
    }
    if (argc % 2 == 0 || options.port <= 0 || options.connections <= 0 || options.rate <= 0)
        die("usage: openload --port P [--connections N] [--rate R] [--seconds S] ...");
}

int main(int argc, char **argv) {
    parse(argc, argv);
    arrivals_rng = options.seed;
    assign_rng = options.seed ^ 0x9e3779b97f4a7c15u;
    for (int kind = 0; kind < KINDS; kind++)
        snprintf(head[kind], sizeof head[kind], "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", options.path[kind]);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll < 0 || timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) < 0)
        die("epoll");
    connections = must(calloc((size_t)options.connections, sizeof *connections));
    idle = must(calloc((size_t)options.connections, sizeof *idle));
    run();
    count_all_unanswered();
    /* lag: what this program itself was late; if it is not small, the figures are its own. */
    printf("{");
    report("fast", &latency[FAST]);
    report("slow", &latency[SLOW]);
    report("lag", &lag);
    printf("\"sent\":%zu,\"failed\":%zu,\"unanswered\":%zu}\n", sent, failed, unanswered);
    return 0;
}
