/* One of the connections of connections.c: its state, the orders that wait for it, its faults, and what it sends. */
#ifndef BENCH_CONNECTION_H
#define BENCH_CONNECTION_H

#include <sys/epoll.h>

#include "client.h"

enum kind { ECHO, CABLE, EVENTS, KINDS };
enum state { UNUSED, CONNECTING, HANDSHAKE, OPEN, CLOSING, ENDED };
enum { TEXT = 1, CLOSE = 8, PING = 9, PONG = 10 };
enum { PING_SIZE = 8, MOST_CODES = 16, TOLD = 10 };

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

#endif
