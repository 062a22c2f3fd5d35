/*
 * Many slow clients at once, each on a connection of its own, all of them kept up for as long as it runs:
 *
 *   heads:   send a request's head in small pieces
 *   bodies:  send a POST's head at once and its body in small pieces
 *   readers: ask for something large and read it in small pieces, through a small receive buffer
 *   idle:    send one request, read its answer, and keep the connection
 *
 *   slowclients --port P [--heads N] [--bodies N] [--readers N] [--idle N] [--pace SECONDS] [--pieces N]
 *               [--body-bytes N] [--read-bytes N] [--large PATH] [--hosts N]
 *
 * A slow request takes --pieces pieces, one each --pace seconds; then the client begins again. Clients start at
 * random moments of the first pace. They connect from --hosts addresses, 127.0.0.1 and those that follow.
 *
 * Prints "ready" when all are connected (idle ones: answered), then obeys stdin: "poke N" sends a request on N of
 * the idle connections, each answered before the next is sent, and prints "poked ANSWERED". At the end of stdin it
 * prints one line of JSON and ends. In it, for each kind: answered, refused (a status other than 200), cut (the
 * connection ended in the middle of a request), open.
 */
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>

#include "client.h"

enum kind { HEADS, BODIES, READERS, IDLERS, KINDS };
enum state { CONNECTING, SENDING, WAITING, RESTING };
/* A short tick: steps that wait for the next one come in a burst, which no crowd of real clients is. */
enum { TICK_MS = 1, HURRY_MS = 20, CONNECTS_A_TICK = 10, POKE_WITHIN_MS = 5000, RECEIVE_BUFFER = 16384 };

struct client {
    int fd, kind, began, host;
    enum state state;
    uint64_t next; /* moment of its next step */
    size_t sent;   /* bytes of the request */
    struct reply reply;
};

static const char *const names[KINDS] = {"heads", "bodies", "readers", "idle"};

static struct {
    int port, count[KINDS], pieces, body_bytes, read_bytes, hosts;
    double pace;
    const char *large;
} options = {.pieces = 16, .body_bytes = 16384, .read_bytes = 16384, .hosts = 64, .pace = 0.5, .large = "/large"};

static struct client *clients;
static int client_count;
static char *requests[KINDS];
static size_t request_sizes[KINDS], first_sizes[KINDS], piece_sizes[KINDS];
static size_t answered[KINDS], refused[KINDS], cut[KINDS];
static uint64_t pace, rng = 1;

/* --- requests */

/* first: how much goes out at once; all the rest takes the pieces. */
static void request(enum kind kind, char *bytes, size_t first) {
    requests[kind] = bytes;
    request_sizes[kind] = strlen(bytes);
    first_sizes[kind] = first ? first : request_sizes[kind];
    piece_sizes[kind] = (request_sizes[kind] - first) / (size_t)options.pieces + 1;
}

static void write_requests(void) {
    char *text = NULL;
    if (asprintf(&text, "GET /slow-head HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: slow/1.0 (a client on a bad line)\r\n"
                        "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\nAccept-Language: en\r\n"
                        "Cookie: session=0123456789abcdef0123456789abcdef\r\n\r\n") < 0)
        die("memory");
    request(HEADS, text, 1);
    char *body = must(malloc((size_t)options.body_bytes + 1));
    memset(body, 'b', (size_t)options.body_bytes);
    body[options.body_bytes] = '\0';
    int head = asprintf(&text, "POST /slow-body HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
                               "Content-Length: %d\r\n\r\n%s", options.body_bytes, body);
    if (head < 0)
        die("memory");
    request(BODIES, text, (size_t)(head - options.body_bytes));
    if (asprintf(&text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", options.large) < 0)
        die("memory");
    request(READERS, text, 0);
    if (asprintf(&text, "GET /idle HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") < 0)
        die("memory");
    request(IDLERS, text, 0);
}

/* --- one client */

static void start(struct client *client) {
    client->fd = connect_to(options.port, client->host, client->kind == READERS ? RECEIVE_BUFFER : 0);
    client->state = CONNECTING;
}

static void restart(struct client *client) {
    close(client->fd);
    start(client);
}

static void begin(struct client *client) {
    client->state = SENDING;
    client->sent = 0;
    client->reply = (struct reply){0};
}

static void finish(struct client *client) {
    if (client->reply.status == 200)
        answered[client->kind]++;
    else
        refused[client->kind]++;
    client->began = 1;
    client->state = client->kind == IDLERS ? RESTING : SENDING;
    if (client->reply.closes)
        restart(client);
    else if (client->state == SENDING)
        begin(client);
}

/* Takes what has come. 0: nothing. */
static int receive(struct client *client) {
    static char buffer[65536];
    size_t size = client->kind == READERS ? (size_t)options.read_bytes : sizeof buffer;
    ssize_t got = recv(client->fd, buffer, size < sizeof buffer ? size : sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    int quiet = client->sent == 0 && client->reply.head_size == 0;
    switch (got > 0 ? reply_feed(&client->reply, buffer, (size_t)got) : reply_eof(&client->reply)) {
    case REPLY_DONE: finish(client); break;
    case REPLY_BAD:
        cut[client->kind] += !quiet; /* a server may close between two requests */
        restart(client);
        break;
    default: break;
    }
    return 1;
}

static void send_piece(struct client *client) {
    size_t size = client->sent ? piece_sizes[client->kind] : first_sizes[client->kind];
    size_t left = request_sizes[client->kind] - client->sent;
    ssize_t done = send(client->fd, requests[client->kind] + client->sent, size < left ? size : left,
                        MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done > 0)
        client->sent += (size_t)done;
    else if (done < 0 && errno != EAGAIN) {
        cut[client->kind] += client->sent > 0;
        restart(client);
        return;
    }
    if (client->sent == request_sizes[client->kind])
        client->state = WAITING;
}

static void step(struct client *client) {
    struct pollfd writable = {.fd = client->fd, .events = POLLOUT};
    switch (client->state) {
    case CONNECTING:
        if (poll(&writable, 1, 0) == 0)
            return;
        if (socket_error(client->fd)) {
            restart(client);
            return;
        }
        client->began |= client->kind != IDLERS;
        begin(client);
        send_piece(client);
        break;
    case SENDING:
        if (!receive(client))
            send_piece(client);
        break;
    case WAITING: receive(client); break;
    case RESTING: break;
    }
}

/* --- all of them */

static uint64_t wait_for(const struct client *client) {
    int hurried = client->state == CONNECTING || (client->kind == IDLERS && client->state != RESTING);
    return hurried ? HURRY_MS * 1000000u : pace;
}

static void step_all(void) {
    uint64_t now = now_ns();
    int connects = 0;
    for (int i = 0; i < client_count; i++) {
        struct client *client = &clients[i];
        if (client->state == RESTING || client->next > now)
            continue;
        if (client->fd < 0) {
            if (connects++ == CONNECTS_A_TICK)
                break;
            start(client);
        } else {
            step(client);
        }
        client->next = now + wait_for(client);
    }
}

static int ready(void) {
    for (int i = 0; i < client_count; i++)
        if (!clients[i].began)
            return 0;
    return 1;
}

/* One more request on a connection that has rested. */
static int poke(struct client *client) {
    struct pollfd readable = {.fd = client->fd, .events = POLLIN};
    size_t before = answered[IDLERS];
    uint64_t deadline = now_ns() + POKE_WITHIN_MS * 1000000ull;
    begin(client);
    send_piece(client);
    while (client->state == WAITING && now_ns() < deadline)
        if (poll(&readable, 1, POKE_WITHIN_MS) > 0)
            receive(client);
    return answered[IDLERS] > before;
}

static int poke_some(int count) {
    int first = client_count - options.count[IDLERS], good = 0;
    for (int i = 0; i < count && options.count[IDLERS]; i++) {
        struct client *client = &clients[first + (int)random_below(&rng, (uint64_t)options.count[IDLERS])];
        good += client->state == RESTING && poke(client);
    }
    return good;
}

static int still_open(enum kind kind) {
    int count = 0;
    for (int i = 0; i < client_count; i++) {
        char byte;
        struct client *client = &clients[i];
        if (client->kind == (int)kind && client->fd >= 0 && client->state != CONNECTING)
            count += recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
    }
    return count;
}

static void report(void) {
    printf("{");
    for (int kind = 0; kind < KINDS; kind++)
        printf("%s\"%s\":{\"answered\":%zu,\"refused\":%zu,\"cut\":%zu,\"open\":%d}", kind ? "," : "", names[kind],
               answered[kind], refused[kind], cut[kind], still_open((enum kind)kind));
    printf("}\n");
}

/* A command, if one has come. 0: stdin has ended. */
static int obey(void) {
    static char line[256];
    static size_t size;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    if (poll(&input, 1, TICK_MS) <= 0)
        return 1;
    ssize_t got = read(0, line + size, sizeof line - 1 - size);
    if (got <= 0)
        return 0;
    line[size += (size_t)got] = '\0';
    int count;
    if (!strchr(line, '\n'))
        return 1;
    size = 0;
    if (sscanf(line, "poke %d", &count) == 1)
        printf("poked %d\n", poke_some(count));
    fflush(stdout);
    return 1;
}

static void parse(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i] + 2, *value = argv[i + 1];
        int kind = 0;
        while (kind < KINDS && strcmp(name, names[kind]))
            kind++;
        if (kind < KINDS) options.count[kind] = atoi(value);
        else if (!strcmp(name, "port")) options.port = atoi(value);
        else if (!strcmp(name, "pieces")) options.pieces = atoi(value);
        else if (!strcmp(name, "body-bytes")) options.body_bytes = atoi(value);
        else if (!strcmp(name, "read-bytes")) options.read_bytes = atoi(value);
        else if (!strcmp(name, "hosts")) options.hosts = atoi(value);
        else if (!strcmp(name, "pace")) options.pace = atof(value);
        else if (!strcmp(name, "large")) options.large = value;
        else die(argv[i]);
    }
    if (argc % 2 == 0 || options.port <= 0 || options.pieces <= 0 || options.hosts <= 0)
        die("usage: slowclients --port P [--heads N] [--bodies N] [--readers N] [--idle N] ...");
}

static void make_clients(void) {
    uint64_t now = now_ns();
    for (int kind = 0; kind < KINDS; kind++)
        client_count += options.count[kind];
    struct rlimit files = {(rlim_t)client_count + 64, (rlim_t)client_count + 64}, has;
    if (getrlimit(RLIMIT_NOFILE, &has) == 0 && has.rlim_cur < files.rlim_cur) {
        files.rlim_max = has.rlim_max > files.rlim_max ? has.rlim_max : files.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &files) < 0)
            die("more open files are needed");
    }
    clients = must(calloc((size_t)client_count + 1, sizeof *clients));
    for (int kind = 0, i = 0; kind < KINDS; kind++)
        for (int n = 0; n < options.count[kind]; n++, i++)
            clients[i] = (struct client){.fd = -1, .kind = kind, .host = 1 + i % options.hosts,
                                         .next = now + (uint64_t)((double)pace * random_unit(&rng))};
}

int main(int argc, char **argv) {
    parse(argc, argv);
    pace = (uint64_t)(options.pace * 1e9);
    write_requests();
    make_clients();
    for (int said = 0, more = 1; more; more = obey()) {
        step_all();
        if (!said && (said = ready())) {
            printf("ready\n");
            fflush(stdout);
        }
    }
    report();
    return 0;
}
