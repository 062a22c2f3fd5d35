/* What a server sends on the connections of connections.c: handshakes, frames, chunks, and the app's texts. Every byte is
 * checked. */
#ifndef BENCH_REPLIES_H
#define BENCH_REPLIES_H

#include "connection.h"

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

/* --- what has come on one connection */

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

#endif
