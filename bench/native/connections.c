/*
 * Many connections that stay open, of one kind, and a check of every byte that arrives on them:
 *
 *   echo:   WebSockets (RFC 6455) of an app that repeats each text after its process's pid (apps/echo.ru)
 *   cable:  WebSockets of Action Cable, each subscribed to one channel, whose messages are a pid first and then
 *           numbers, each one more than the last (apps/cable.ru)
 *   events: streams of Server-Sent Events, each a pid and a number, one more than the last (apps/waiting.ru)
 *
 *   connections --port P --kind KIND --path PATH [--hosts N]
 *
 * They come from --hosts addresses, 127.0.0.1 and those that follow. Obeys stdin, and answers each line when it has
 * done what the line says, with the number of connections for which that went as it must:
 *
 *   open N    connects N further ones: the handshake is right, and the first message has come
 *   ask N     sends a text on each of N, which must come back: most are short, some take a length of 16 or of 64 bits
 *   ping N    sends a ping on each of N, whose pong must have the same bytes
 *   close N   closes N of them, with a close frame that the server must answer with its own
 *   await N   waits until the broadcast with that number has come on all of them
 *   watch N   waits N milliseconds
 *   part 0    waits until the server has ended all of them; answers 1 if it has
 *   report    one line of JSON: open; ended (by the server, of these cut: without a close frame, or in the middle of a
 *             response), codes of its close frames, farewells (of Action Cable); wrong (bytes that must not be);
 *             refused (no connection, or a wrong handshake); messages; workers: open ones by pid
 *
 * It ends with stdin.
 */
#include <poll.h>
#include <sys/resource.h>

#include "replies.h"

enum { BATCH = 256, AT_ONCE = 64, PATIENCE_MS = 60000, MOST_WORKERS = 256 };

/* --- connecting, and what epoll reports */

static void request(struct connection *connection) {
    char head[1024];
    int size = options.kind == EVENTS
                   ? snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", options.path)
                   : snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                              "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n"
                              "Origin: http://localhost\r\n%s\r\n", options.path, KEY,
                              options.kind == CABLE ? "Sec-WebSocket-Protocol: actioncable-v1-json\r\n" : "");
    connection->state = HANDSHAKE;
    transmit(connection, head, (size_t)size);
}

static void attend(struct connection *connection, uint32_t events) {
    if (connection->state == CONNECTING && socket_error(connection->fd))
        end(connection);
    else if (connection->state == CONNECTING && events & EPOLLOUT)
        request(connection);
    else if (events & EPOLLOUT && connection->unsent_size)
        flush(connection);
    if (connection->state != ENDED && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        receive(connection);
}

static void turn(int milliseconds) {
    static struct epoll_event events[BATCH];
    int found = epoll_wait(epoll, events, BATCH, milliseconds);
    for (int i = 0; i < found; i++) {
        if (events[i].data.ptr) {
            struct connection *connection = events[i].data.ptr;
            if (connection->state != ENDED) /* one of the events before may have ended it */
                attend(connection, events[i].events);
        }
    }
}

/* --- orders */

static void expect(struct connection *connection) {
    connection->busy = 1;
    busy++;
}

/* Waits until no more than that many connections are expected to do something. */
static void wait_until(size_t most, uint64_t deadline) {
    while (busy > most && now_ns() < deadline)
        turn(20);
}

static uint64_t patience(void) { return now_ns() + PATIENCE_MS * 1000000ull; }

static void add(void) {
    if (count == room)
        all = must(realloc(all, (room = room ? room * 2 : 1024) * sizeof *all));
    struct connection *connection = must(calloc(1, sizeof *connection));
    connection->host = 1 + (int)(count % (size_t)options.hosts);
    connection->fd = connect_to(options.port, connection->host, 0);
    connection->state = CONNECTING;
    all[count++] = connection;
    watch(connection, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
    expect(connection);
}

static void open_more(size_t number) {
    for (size_t i = 0; i < number && busy <= AT_ONCE; i++) {
        add();
        wait_until(AT_ONCE, patience());
    }
    wait_until(0, patience());
}

static void ask(struct connection *connection) {
    uint64_t dice = random_below(&rng, 20);
    connection->asked_size = 3 + random_below(&rng, dice == 0 ? 100000 : dice < 4 ? 1000 : 20);
    connection->asked = random_next(&rng) | 1;
    char *text = text_of(connection->asked, connection->asked_size);
    transmit_frame(connection, TEXT, text, connection->asked_size);
    free(text);
}

static void ping(struct connection *connection) {
    connection->pinged = random_next(&rng) | 1;
    transmit_frame(connection, PING, (char *)&connection->pinged, PING_SIZE);
}

static void say_goodbye(struct connection *connection) {
    connection->state = CLOSING;
    if (options.kind != EVENTS) {
        transmit_frame(connection, CLOSE, "\x03\xe8", 2);
        return;
    }
    settle(connection, 1);
    drop(connection);
}

/* Does that with some of the open ones, chosen by lot. */
static void with_some(size_t number, void (*action)(struct connection *)) {
    struct connection **some = must(malloc((count + 1) * sizeof *some));
    size_t open = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i]->state == OPEN)
            some[open++] = all[i];
    for (size_t i = 0; i < number && i < open; i++) {
        size_t other = i + random_below(&rng, open - i);
        struct connection *chosen = some[other];
        some[other] = some[i];
        wait_until(AT_ONCE, patience());
        if (chosen->state != OPEN)
            continue;
        expect(chosen);
        action(chosen);
    }
    free(some);
    wait_until(0, patience());
}

static void await(long number) {
    awaited = number;
    for (size_t i = 0; i < count; i++)
        if (all[i]->state == OPEN && all[i]->last < number)
            expect(all[i]);
        else
            right += all[i]->state == OPEN;
    wait_until(0, patience());
    awaited = 0;
}

static void watch_for(long milliseconds) {
    uint64_t deadline = now_ns() + (uint64_t)milliseconds * 1000000u;
    while (now_ns() < deadline)
        turn(20);
}

static size_t still_open(void) {
    size_t open = 0;
    for (size_t i = 0; i < count; i++)
        open += all[i]->state == OPEN;
    return open;
}

static void part(void) {
    uint64_t deadline = patience();
    while (still_open() && now_ns() < deadline)
        turn(20);
    right = still_open() == 0;
}

static void report(void) {
    struct { long pid; size_t open; } workers[MOST_WORKERS] = {0};
    for (size_t i = 0; i < count; i++)
        for (int place = 0; place < MOST_WORKERS && all[i]->state == OPEN; place++)
            if (workers[place].pid == all[i]->worker || !workers[place].open) {
                workers[place].pid = all[i]->worker;
                workers[place].open++;
                break;
            }
    printf("{\"open\":%zu,\"ended\":%zu,\"cut\":%zu,\"farewells\":%zu,\"wrong\":%zu,\"refused\":%zu,\"messages\":%zu,"
           "\"codes\":{", still_open(), ended, cut, farewells, wrong, refused, messages);
    for (int i = 0; i < MOST_CODES && codes[i].code; i++)
        printf("%s\"%d\":%zu", i ? "," : "", codes[i].code, codes[i].times);
    printf("},\"workers\":{");
    for (int i = 0; i < MOST_WORKERS && workers[i].open; i++)
        printf("%s\"%ld\":%zu", i ? "," : "", workers[i].pid, workers[i].open);
    printf("}}\n");
}

static void obey(const char *line) {
    char word[16];
    long number = 0;
    if (sscanf(line, "%15s %ld", word, &number) < 1)
        return;
    right = busy = 0;
    for (size_t i = 0; i < count; i++)
        all[i]->busy = 0;
    if (!strcmp(word, "open")) open_more((size_t)number);
    else if (!strcmp(word, "ask")) with_some((size_t)number, ask);
    else if (!strcmp(word, "ping")) with_some((size_t)number, ping);
    else if (!strcmp(word, "close")) with_some((size_t)number, say_goodbye);
    else if (!strcmp(word, "await")) await(number);
    else if (!strcmp(word, "watch")) watch_for(number);
    else if (!strcmp(word, "part")) part();
    else if (strcmp(word, "report")) die(word);
    strcmp(word, "report") ? (void)printf("%s %zu\n", word, right) : report();
    fflush(stdout);
}

/* The orders that have come. 0: stdin has ended. */
static int read_orders(void) {
    static char text[1024];
    static size_t size;
    ssize_t got = read(0, text + size, sizeof text - 1 - size);
    if (got <= 0)
        return 0;
    text[size += (size_t)got] = '\0';
    for (char *line; (line = strchr(text, '\n'));) {
        *line = '\0';
        obey(text);
        size -= (size_t)(line + 1 - text);
        memmove(text, line + 1, size + 1);
    }
    return 1;
}

static void parse(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i] + 2, *value = argv[i + 1];
        if (!strcmp(name, "port")) options.port = atoi(value);
        else if (!strcmp(name, "hosts")) options.hosts = atoi(value);
        else if (!strcmp(name, "path")) options.path = value;
        else if (!strcmp(name, "kind"))
            for (options.kind = 0; options.kind < KINDS && strcmp(value, kinds[options.kind]);)
                options.kind++;
        else die(argv[i]);
    }
    if (argc % 2 == 0 || options.port <= 0 || options.hosts <= 0 || options.kind == KINDS)
        die("usage: connections --port P --kind echo|cable|events --path PATH [--hosts N]");
}

int main(int argc, char **argv) {
    parse(argc, argv);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    if ((epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
        die("epoll_create1");
    for (int more = 1; more;) {
        struct pollfd sources[] = {{.fd = 0, .events = POLLIN}, {.fd = epoll, .events = POLLIN}};
        if (poll(sources, 2, -1) < 0 && errno != EINTR)
            die("poll");
        turn(0);
        more = !sources[0].revents || read_orders();
    }
    return 0;
}
