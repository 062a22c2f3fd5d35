/* Reading bodies: sized or chunked, kept behind the head while both fit into
 * a slot, in a file as soon as they do not. */
#include "reactor_private.h"

#include <string.h>

#define CHUNKED_PORTION 16384u /* what is left of it, behind the body, must fit into memory */

static const char continue_line[] = "HTTP/1.1 100 Continue\r\n\r\n"; /* RFC 9110 section 10.1.1 */

/* 0: done, or refused */
static int too_large(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t bytes)
{
    if (bytes <= reactor->config->max_body_bytes)
        return 0;
    pando_reactor_refuse(reactor, connection, 413);
    return 1;
}

/* From now on the body, and a head that fits into no slot, go to a file. 0: refused. */
static int spool(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t expected)
{
    const char *body = connection->in.data + connection->head_bytes;
    if (pando_reactor_spool_open(reactor, connection, expected) == 0) {
        if (connection->head_bytes > PANDO_SLOT_BYTES) {
            if (pando_reactor_spool_write(reactor, connection, connection->in.data, connection->head_bytes) == 0)
                return 1;
        } else if (pando_reactor_spool_write(reactor, connection, body, connection->body_bytes) == 0) {
            connection->body_bytes = 0;
            return 1;
        }
    }
    pando_reactor_refuse(reactor, connection, 503);
    return 0;
}

/* 0: refused */
static int keep(struct pando_reactor *reactor, struct pando_connection *connection, const char *data, size_t bytes)
{
    uint64_t behind = (uint64_t)connection->head_bytes + connection->body_bytes;
    if (connection->spool == -1 && behind + bytes <= PANDO_SLOT_BYTES) {
        memmove(connection->in.data + behind, data, bytes);
        connection->body_bytes += (uint32_t)bytes;
        return 1;
    }
    if (connection->spool == -1 && !spool(reactor, connection, PANDO_REACTOR_NO_LIMIT))
        return 0;
    if (pando_reactor_spool_write(reactor, connection, data, bytes) == 0)
        return 1;
    pando_reactor_refuse(reactor, connection, 503);
    return 0;
}

static uint64_t body_size(const struct pando_connection *connection)
{
    uint64_t head = connection->head_bytes > PANDO_SLOT_BYTES ? connection->head_bytes : 0;
    return connection->spool == -1 ? connection->body_bytes : connection->spooled - head;
}

static void complete(struct pando_reactor *reactor, struct pando_connection *connection)
{
    /* A head that fits into no slot goes to a file even without a body. */
    if (connection->head_bytes > PANDO_SLOT_BYTES && connection->spool == -1 && !spool(reactor, connection, 0))
        return;
    pando_reactor_request_publish(reactor, connection);
}

/* Takes what belongs to the body; *used says how much that was. 1: more is wanted. */
static int feed_sized(struct pando_reactor *reactor, struct pando_connection *connection, const char *input,
                      size_t bytes,
                      size_t *used)
{
    size_t mine = bytes < connection->body_left ? bytes : (size_t)connection->body_left;
    *used = mine;
    connection->body_left -= mine;
    if (!keep(reactor, connection, input, mine))
        return -1;
    return connection->body_left > 0;
}

static int feed_chunked(struct pando_reactor *reactor, struct pando_connection *connection, const char *input,
                        size_t bytes, size_t *used)
{
    pando_http_chunked *chunked = &connection->chunked;
    for (;;) {
        switch (pando_http_chunked_next(chunked, input, bytes, used)) {
        case PANDO_HTTP_CHUNK_MORE:
            return 1;
        case PANDO_HTTP_CHUNK_DONE:
            return 0;
        case PANDO_HTTP_CHUNK_DATA:
            if (too_large(reactor, connection, body_size(connection) + chunked->data_len) ||
                !keep(reactor, connection, input + chunked->data_off, chunked->data_len))
                return -1;
            break;
        default:
            pando_reactor_refuse(reactor, connection, 400);
            return -1;
        }
    }
}

/* 1: more is wanted; 0: complete; -1: refused */
static int feed(struct pando_reactor *reactor, struct pando_connection *connection, const char *input, size_t bytes,
                size_t *used)
{
    *used = 0;
    if (connection->parser.body == PANDO_HTTP_CHUNKED_BODY)
        return feed_chunked(reactor, connection, input, bytes, used);
    return feed_sized(reactor, connection, input, bytes, used);
}

/* What lies behind the head. Decoded data never overtakes what is decoded, so both share the buffer. */
static int feed_from_memory(struct pando_reactor *reactor, struct pando_connection *connection)
{
    size_t used;
    int more = feed(reactor, connection, connection->in.data + connection->raw, connection->in_end - connection->raw,
                    &used);
    if (more == -1)
        return 0;
    connection->raw += (uint32_t)used;
    if (more) {
        connection->raw = connection->in_end = connection->head_bytes + connection->body_bytes;
        return 1;
    }
    complete(reactor, connection);
    return 0;
}

/* From the scratch buffer into the file; only what follows the body is kept in memory. */
static int feed_from_scratch(struct pando_reactor *reactor, struct pando_connection *connection, size_t bytes)
{
    size_t used;
    int more = feed(reactor, connection, reactor->scratch, bytes, &used);
    if (more == -1)
        return 0;
    if (more)
        return 1;
    uint32_t rest = (uint32_t)(bytes - used), end = connection->in_end;
    if (rest > 0) {
        if (pando_reactor_pool_reserve(&reactor->pool, &connection->in, end + rest, end) == -1) {
            pando_reactor_refuse(reactor, connection, 503);
            return 0;
        }
        memcpy(connection->in.data + end, reactor->scratch + used, rest);
        connection->in_end += rest;
    }
    complete(reactor, connection);
    return 0;
}

/* The path is one of those to be streamed, or below one. */
static int is_streamed(const struct pando_reactor *reactor, const struct pando_connection *connection)
{
    pando_http_span path = connection->parser.path;
    const char *one = reactor->config->stream_paths;
    for (size_t length; one && (length = strlen(one)) > 0; one += length + 1)
        if (path.len >= length && memcmp(connection->in.data + path.off, one, length) == 0 &&
            (path.len == length || one[length - 1] == '/' || connection->in.data[path.off + length] == '/'))
            return 1;
    return 0;
}

void pando_reactor_body_begin(struct pando_reactor *reactor, struct pando_connection *connection)
{
    const pando_http_parser *parser = &connection->parser;
    if (parser->body == PANDO_HTTP_NO_BODY) {
        complete(reactor, connection);
        return;
    }
    connection->body_left = parser->body == PANDO_HTTP_SIZED_BODY ? parser->content_length : 0;
    if (too_large(reactor, connection, connection->body_left))
        return;
    if (connection->head_bytes <= PANDO_SLOT_BYTES && is_streamed(reactor, connection)) {
        connection->streamed = 1;
        connection->persistent = 0;
        pando_reactor_request_publish(reactor, connection);
        return;
    }
    if (connection->head_bytes + connection->body_left > PANDO_SLOT_BYTES &&
        !spool(reactor, connection, connection->body_left))
        return;
    pando_http_chunked_init(&connection->chunked);
    connection->state = PANDO_READING_BODY;
    pando_reactor_pace_begin(reactor, connection);
    pando_reactor_timer_start(reactor, connection, PANDO_TIMER_BODY);

    int waits_for_us = parser->expect_continue && parser->minor > 0 && connection->raw == connection->in_end;
    if (waits_for_us)
        pando_reactor_output_bytes(reactor, connection, continue_line, sizeof(continue_line) - 1, 0);
}

static size_t receive_body(struct pando_reactor *reactor, struct pando_connection *connection)
{
    int chunked = connection->parser.body == PANDO_HTTP_CHUNKED_BODY;
    if (connection->spool != -1) {
        size_t room = chunked ? CHUNKED_PORTION : PANDO_SCRATCH_BYTES;
        if (!chunked && connection->body_left < room)
            room = (size_t)connection->body_left;
        return pando_reactor_input_receive(reactor, connection, reactor->scratch, room);
    }
    uint32_t wanted = chunked ? connection->in_end + 1 : connection->in_end + (uint32_t)connection->body_left;
    if (pando_reactor_pool_reserve(&reactor->pool, &connection->in, wanted, connection->in_end) == -1) {
        pando_reactor_refuse(reactor, connection, 503);
        return 0;
    }
    size_t bytes = pando_reactor_input_receive(reactor, connection, connection->in.data + connection->in_end,
                                       connection->in.capacity - connection->in_end);
    if (connection->state == PANDO_READING_BODY)
        connection->in_end += (uint32_t)bytes;
    return bytes;
}

int pando_reactor_body_step(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->raw < connection->in_end)
        return feed_from_memory(reactor, connection);
    int to_scratch = connection->spool != -1;
    size_t bytes = receive_body(reactor, connection);
    if (bytes == 0)
        return 0;
    if (!pando_reactor_pace_moved(reactor, connection, bytes, reactor->config->body_timeout)) {
        pando_reactor_refuse(reactor, connection, 408);
        return 0;
    }
    pando_reactor_timer_start(reactor, connection, PANDO_TIMER_BODY);
    return to_scratch ? feed_from_scratch(reactor, connection, bytes) : feed_from_memory(reactor, connection);
}
