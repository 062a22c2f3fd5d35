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
#include <sys/epoll.h>
#include <sys/resource.h>

#include "client.h"

enum kind { ECHO, CABLE, EVENTS, KINDS };
enum state { UNUSED, CONNECTING, HANDSHAKE, OPEN, CLOSING, ENDED };
enum { TEXT = 1, CLOSE = 8, PING = 9, PONG = 10 };
enum { BATCH = 256, AT_ONCE = 64, PATIENCE_MS = 60000, PING_SIZE = 8, MOST_CODES = 16, MOST_WORKERS = 256, TOLD = 10 };

struct connection {
    int fd, host;
    enum state state;
    int busy;           /* the order at hand waits for it */
    long worker;        /* pid, 0: not known */
    long last;          /* number of the last message */
    uint64_t asked;     /* seed of the text that must come back, 0: none */
    size_t asked_size;
    uint64_t pinged;    /* the bytes that must come back */
    int code;           /* of the server's close frame, 0: none has come */
    char *bytes;        /* what has come and is not complete yet */
    size_t size, room;
    char *unsent;
    size_t unsent_size;
};

static const char *const kinds[KINDS] = {"echo", "cable", "events"};
/* The example of RFC 6455: the server proves that it has read the key. */
static const char KEY[] = "dGhlIHNhbXBsZSBub25jZQ==", ACCEPT[] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

static struct {
    int port, kind, hosts;
    const char *path;
} options = {.kind = ECHO, .hosts = 64, .path = "/"};

static struct connection **all;
static size_t count, room, busy, right;
static long awaited;
static int epoll, told;
static size_t ended, cut, farewells, wrong, refused, messages;
static struct { int code; size_t times; } codes[MOST_CODES];
static uint64_t rng = 1;

/* --- faults */

static void tell(const struct connection *connection, const char *what) {
    if (told++ < TOLD)
        fprintf(stderr, "connections: worker %ld: %s\n", connection->worker, what);
}

/* What the order at hand wanted of this connection has come, or will not come any more. */
static void settle(struct connection *connection, int well) {
    if (!connection->busy)
        return;
    connection->busy = 0;
    busy--;
    right += well;
}

static void drop(struct connection *connection) {
    close(connection->fd); /* which also takes it out of the epoll set */
    connection->fd = -1;
    connection->state = ENDED;
    connection->asked = connection->pinged = 0;
    free(connection->bytes);
    free(connection->unsent);
    connection->bytes = connection->unsent = NULL;
    connection->size = connection->room = connection->unsent_size = 0;
}

static void fault(struct connection *connection, const char *what) {
    wrong++;
    tell(connection, what);
    settle(connection, 0);
    drop(connection);
}

static void count_code(int code) {
    for (int i = 0; i < MOST_CODES; i++)
        if (codes[i].code == code || !codes[i].code) {
            codes[i].code = code;
            codes[i].times++;
            return;
        }
}

/* The server has ended it. */
static void end(struct connection *connection) {
    if (connection->state == CONNECTING || connection->state == HANDSHAKE) {
        refused++;
        tell(connection, "no connection");
        settle(connection, 0);
    } else if (connection->state == CLOSING) {
        settle(connection, connection->code == 1000);
    } else {
        ended++;
        cut += !connection->code;
        settle(connection, 0);
    }
    drop(connection);
}

/* --- sending */

static void watch(struct connection *connection, uint32_t events, int operation) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(epoll, operation, connection->fd, &event) < 0)
        die("epoll_ctl");
}

static void flush(struct connection *connection) {
    ssize_t sent = send(connection->fd, connection->unsent, connection->unsent_size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
        connection->unsent_size -= (size_t)sent;
        memmove(connection->unsent, connection->unsent + sent, connection->unsent_size);
    } /* an error shows when it is read */
    watch(connection, connection->unsent_size ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
}

static void transmit(struct connection *connection, const void *bytes, size_t size) {
    connection->unsent = must(realloc(connection->unsent, connection->unsent_size + size));
    memcpy(connection->unsent + connection->unsent_size, bytes, size);
    connection->unsent_size += size;
    flush(connection);
}

/* A frame, masked as a client's must be. */
static void transmit_frame(struct connection *connection, int opcode, const char *payload, size_t size) {
    char *frame = must(malloc(size + 14));
    size_t head = 2;
    frame[0] = (char)(0x80 | opcode);
    if (size < 126) {
        frame[1] = (char)(0x80 | size);
    } else {
        int wide = size > 0xffff, length = wide ? 8 : 2;
        frame[1] = (char)(0x80 | (wide ? 127 : 126));
        for (int i = 0; i < length; i++)
            frame[head++] = (char)(size >> (8 * (length - 1 - i)));
    }
    uint64_t mask = random_next(&rng);
    memcpy(frame + head, &mask, 4);
    for (size_t i = 0; i < size; i++)
        frame[head + 4 + i] = (char)(payload[i] ^ frame[head + i % 4]);
    transmit(connection, frame, head + 4 + size);
    free(frame);
}

/* --- the app's texts */

/* A text that only its seed and its size tell: letters, and at its end a character of two bytes. */
static char *text_of(uint64_t seed, size_t size) {
    char *text = must(malloc(size + 1));
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + random_next(&seed) % 26);
    memcpy(text + size - 2, "\xc3\xa9", 2);
    text[size] = '\0';
    return text;
}

static void understand_echo(struct connection *connection, const char *text, size_t size) {
    char *rest;
    connection->worker = strtol(text, &rest, 10);
    int same = connection->asked && *rest == ' ' && size == (size_t)(rest + 1 - text) + connection->asked_size;
    if (same) {
        char *expected = text_of(connection->asked, connection->asked_size);
        same = !memcmp(rest + 1, expected, connection->asked_size);
        free(expected);
    }
    if (!same) {
        fault(connection, "a text that was not sent to it");
        return;
    }
    connection->asked = 0;
    settle(connection, 1);
}

/* The next number, if it follows the last one. */
static void take_number(struct connection *connection, const char *text) {
    long number = strtol(text, NULL, 10);
    if (connection->last && number != connection->last + 1) {
        fault(connection, number <= connection->last ? "a message came twice" : "a message is missing");
        return;
    }
    connection->last = number;
    if (awaited && number >= awaited)
        settle(connection, 1);
}

static void understand_cable(struct connection *connection, const char *text) {
    static const char subscribe[] = "{\"command\":\"subscribe\","
                                    "\"identifier\":\"{\\\"channel\\\":\\\"News::Channel\\\"}\"}";
    const char *worker = strstr(text, "\"message\":{\"worker\":"), *number = strstr(text, "\"message\":{\"number\":");
    if (strstr(text, "\"type\":\"welcome\"")) {
        transmit_frame(connection, TEXT, subscribe, sizeof subscribe - 1);
    } else if (strstr(text, "\"type\":\"disconnect\"")) {
        farewells++;
        transmit_frame(connection, CLOSE, "\x03\xe8", 2); /* as Rails' own client does */
    } else if (worker) {
        connection->worker = atol(worker + 20);
        settle(connection, 1);
    } else if (number) {
        take_number(connection, number + 20);
    } else if (!strstr(text, "\"type\":\"ping\"") && !strstr(text, "\"type\":\"confirm_subscription\"")) {
        fault(connection, text);
    }
}

/* --- frames */

static void understand_close(struct connection *connection, const char *payload, size_t size) {
    if (size == 1) {
        fault(connection, "a close frame of one byte");
        return;
    }
    connection->code = size ? (unsigned char)payload[0] << 8 | (unsigned char)payload[1] : 1005;
    if (connection->state == CLOSING)
        return;
    count_code(connection->code);
    transmit_frame(connection, CLOSE, payload, size ? 2 : 0);
}

static void understand(struct connection *connection, int opcode, char *payload, size_t size) {
    char after = payload[size]; /* the next frame's */
    if (connection->code && connection->state != CLOSING) {
        fault(connection, "a frame after the close frame");
        return;
    }
    switch (opcode) {
    case TEXT:
        messages++;
        payload[size] = '\0';
        options.kind == ECHO ? understand_echo(connection, payload, size) : understand_cable(connection, payload);
        if (connection->state != ENDED)
            payload[size] = after;
        break;
    case PING: transmit_frame(connection, PONG, payload, size); break;
    case PONG:
        if (connection->pinged && size == PING_SIZE && !memcmp(payload, &connection->pinged, PING_SIZE)) {
            connection->pinged = 0;
            settle(connection, 1);
        } else {
            fault(connection, "a pong to no ping");
        }
        break;
    case CLOSE: understand_close(connection, payload, size); break;
    default: fault(connection, "a frame of an unknown kind");
    }
}

/* Bytes of the first complete frame, 0: there is none yet. */
static size_t take_frame(struct connection *connection) {
    const unsigned char *bytes = (unsigned char *)connection->bytes;
    size_t head = 2, size;
    if (connection->size < head)
        return 0;
    size = bytes[1] & 0x7f;
    int opcode = bytes[0] & 0x0f, length = size == 127 ? 8 : size == 126 ? 2 : 0;
    if ((bytes[0] & 0xf0) != 0x80 || bytes[1] & 0x80 || (opcode >= CLOSE && length)) {
        fault(connection, "a frame that is masked, split or of an unknown extension");
        return 0;
    }
    head += (size_t)length;
    if (connection->size < head)
        return 0;
    if (length)
        size = 0;
    for (int i = 0; i < length; i++)
        size = size << 8 | bytes[2 + i];
    if (connection->size - head < size)
        return 0;
    understand(connection, opcode, connection->bytes + head, size);
    return head + size;
}

/* --- streams of events, in chunks (RFC 9112) */

static size_t take_chunk(struct connection *connection) {
    char *line = memmem(connection->bytes, connection->size, "\r\n", 2), *rest;
    if (!line)
        return 0;
    size_t size = strtoul(connection->bytes, &rest, 16), head = (size_t)(line + 2 - connection->bytes);
    if (rest != line) {
        fault(connection, "a chunk without a size");
        return 0;
    }
    if (connection->size < head + size + 2)
        return 0;
    if (size == 0) { /* the end of the response */
        connection->code = 1;
        end(connection);
        return 0;
    }
    char *data = connection->bytes + head;
    long worker = 0, number = 0;
    int used = 0;
    if (memcmp(data + size, "\r\n", 2) || size < 6 ||
        sscanf(data, "data: %ld %ld%n", &worker, &number, &used) != 2 || (size_t)used + 2 != size) {
        fault(connection, "a chunk that is no event");
        return 0;
    }
    messages++;
    connection->worker = worker;
    take_number(connection, data + used - snprintf(NULL, 0, "%ld", number));
    settle(connection, connection->state != ENDED);
    return head + size + 2;
}

/* --- one connection */

static size_t take_handshake(struct connection *connection) {
    char *blank = memmem(connection->bytes, connection->size, "\r\n\r\n", 4);
    if (!blank)
        return 0;
    blank[2] = '\0';
    struct reply reply = {0};
    snprintf(reply.head, sizeof reply.head, "%s", connection->bytes);
    int status = 0;
    const char *proof = reply_field(&reply, "sec-websocket-accept"), *coding = reply_field(&reply, "transfer-encoding");
    int known = sscanf(reply.head, "HTTP/1.1 %3d", &status) == 1 &&
                (options.kind == EVENTS ? status == 200 && coding && !strncasecmp(coding, "chunked", 7)
                                        : status == 101 && proof && !strncmp(proof, ACCEPT, sizeof ACCEPT - 1));
    if (!known) {
        refused++;
        tell(connection, reply.head);
        settle(connection, 0);
        drop(connection);
        return 0;
    }
    connection->state = OPEN;
    if (options.kind == ECHO)
        settle(connection, 1);
    return (size_t)(blank + 4 - connection->bytes);
}

static void take_all(struct connection *connection) {
    size_t used = 1;
    while (connection->size && used) {
        used = connection->state == HANDSHAKE ? take_handshake(connection)
               : options.kind == EVENTS       ? take_chunk(connection)
                                              : take_frame(connection);
        if (connection->state == ENDED)
            return;
        connection->size -= used;
        memmove(connection->bytes, connection->bytes + used, connection->size);
    }
    if (connection->size)
        return;
    free(connection->bytes); /* ten thousand idle ones need no buffers */
    connection->bytes = NULL;
    connection->room = 0;
}

static void receive(struct connection *connection) {
    static char buffer[65536];
    ssize_t got = recv(connection->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        end(connection);
        return;
    }
    if (connection->size + (size_t)got + 1 > connection->room) {
        connection->room = connection->size + (size_t)got + 1; /* and a zero, for the functions of strings */
        connection->bytes = must(realloc(connection->bytes, connection->room));
    }
    memcpy(connection->bytes + connection->size, buffer, (size_t)got);
    connection->size += (size_t)got;
    connection->bytes[connection->size] = '\0';
    take_all(connection);
}

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
