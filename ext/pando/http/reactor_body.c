/* Reads request bodies, with a content-length or chunked. A body stays behind the head while both fit into a slot,
 * and moves to a file when they do not. Runs in the reactor. */
#include "reactor_private.h"

#include <string.h>

#define PIECE 8192u      /* bytes of a decoded body that are worth a write to its file */
#define ROOM 4096u       /* room for further input meanwhile */
#define CHUNK_END 64u    /* room in a slot that is kept for bytes not yet decoded */
#define CONTROL_COST 4u  /* a byte of chunk framing costs as much time as moving so many bytes */

static const char continue_line[] = "HTTP/1.1 100 Continue\r\n\r\n"; /* RFC 9110 section 10.1.1 */

static int too_large(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t bytes)
{
    if (bytes <= reactor->config->max_body_bytes)
        return 0;
    pando_reactor_refuse_for(reactor, connection, 413, &reactor->stats->refused_body_size);
    return 1;
}

static int is_chunked(const struct pando_connection *connection)
{
    return connection->parser.body == PANDO_HTTP_CHUNKED_BODY;
}

/* Whether the disk can never have room for a body that must wait there. A body with a content-length of up to
 * body_memory need not wait there: memory that is full now may be free later. */
static int never_fits(const struct pando_reactor *reactor, const struct pando_connection *connection, uint64_t body)
{
    uint64_t head = connection->head_bytes, most = reactor->config->spool_total;
    if (head + body <= PANDO_SLOT_BYTES || (!is_chunked(connection) && body <= reactor->config->body_memory))
        return 0;
    return (head > PANDO_SLOT_BYTES ? head : 0) + body > most;
}

static int too_large_to_keep(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t bytes)
{
    if (!never_fits(reactor, connection, bytes))
        return 0;
    pando_reactor_refuse_for(reactor, connection, 413, &reactor->stats->refused_spool_size);
    return 1;
}

/* 0: refused */
static int write_out(struct pando_reactor *reactor, struct pando_connection *connection, const char *data, size_t bytes)
{
    if (pando_reactor_spool_write(reactor, connection, data, bytes) == 0)
        return 1;
    pando_reactor_refuse(reactor, connection, 503);
    return 0;
}

/* Moves the part of the body in memory to the file, preceded by a head that fits into no slot. 0: refused. */
static int move_to_file(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t expected)
{
    uint32_t from = connection->head_bytes, bytes = connection->body_bytes;
    if (connection->spool == -1) {
        if (pando_reactor_spool_open(reactor, connection, expected) == -1) {
            pando_reactor_refuse(reactor, connection, 503);
            return 0;
        }
        if (connection->head_bytes > PANDO_SLOT_BYTES) {
            bytes += from;
            from = 0;
        }
    }
    connection->body_bytes = 0;
    return write_out(reactor, connection, connection->in.data + from, bytes);
}

/* Whether head and body, as far as its size is known, exceed a slot. */
static int needs_file(const struct pando_connection *connection)
{
    uint64_t body = is_chunked(connection) ? connection->body_bytes + CHUNK_END : connection->parser.content_length;
    return connection->spool != -1 || connection->head_bytes + body > PANDO_SLOT_BYTES;
}

static uint64_t body_size(const struct pando_connection *connection)
{
    uint64_t head = connection->head_bytes > PANDO_SLOT_BYTES ? connection->head_bytes : 0;
    uint64_t in_file = connection->spool == -1 ? 0 : connection->spooled - head;
    return in_file + connection->body_bytes;
}

static void complete(struct pando_reactor *reactor, struct pando_connection *connection)
{
    int file = connection->spool == -1 ? connection->head_bytes > PANDO_SLOT_BYTES : connection->body_bytes > 0;
    if (file && !move_to_file(reactor, connection, connection->body_bytes))
        return;
    pando_reactor_request_publish(reactor, connection);
}

/* --- a body with a content-length --- */

/* Takes what belongs to the body; *used says how much. 1: more is wanted; 0: complete; -1: refused. The file is
 * opened for the first byte of a body, not for a client that only announces one. */
static int feed_sized(struct pando_reactor *reactor, struct pando_connection *connection, const char *input,
                      size_t bytes, size_t *used)
{
    size_t mine = bytes < connection->body_left ? bytes : (size_t)connection->body_left;
    *used = mine;
    connection->body_left -= mine;
    if (!needs_file(connection)) {
        connection->body_bytes += (uint32_t)mine; /* it stays where it is */
        return connection->body_left > 0;
    }
    if (mine > 0 && connection->spool == -1 &&
        !move_to_file(reactor, connection, connection->parser.content_length))
        return -1;
    if (!write_out(reactor, connection, input, mine))
        return -1;
    return connection->body_left > 0;
}

/* --- a chunked body --- */

/* Decodes the bytes behind the head in place: output never overtakes input. Returns as feed_sized does. */
static int feed_chunked(struct pando_reactor *reactor, struct pando_connection *connection, size_t *used)
{
    char *behind = connection->in.data + connection->head_bytes;
    size_t decoded = connection->body_bytes;
    pando_http_chunk_result result =
        pando_http_chunked_gather(&connection->chunked, connection->in.data + connection->raw,
                                  connection->in_end - connection->raw, used, behind, &decoded);
    reactor->work += CONTROL_COST * (uint32_t)(*used - (decoded - connection->body_bytes));
    connection->body_bytes = (uint32_t)decoded;
    if (result == PANDO_HTTP_CHUNK_ERROR) {
        pando_reactor_refuse(reactor, connection, 400);
        return -1;
    }
    uint64_t size = body_size(connection) + pando_http_chunked_announced(&connection->chunked);
    if (too_large(reactor, connection, size) || too_large_to_keep(reactor, connection, size))
        return -1;
    int piece = connection->spool == -1 ? needs_file(connection) : connection->body_bytes >= PIECE;
    if (piece && !move_to_file(reactor, connection, PANDO_REACTOR_NO_LIMIT))
        return -1;
    return result == PANDO_HTTP_CHUNK_MORE;
}

/* --- both --- */

/* Takes the bytes behind the head. */
static int feed_from_memory(struct pando_reactor *reactor, struct pando_connection *connection)
{
    size_t used = 0;
    int more = is_chunked(connection)
                   ? feed_chunked(reactor, connection, &used)
                   : feed_sized(reactor, connection, connection->in.data + connection->raw,
                                connection->in_end - connection->raw, &used);
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

/* Whether the path is a stream path, or lies below one. */
static int is_streamed(const struct pando_reactor *reactor, const struct pando_connection *connection)
{
    const char *one = reactor->config->stream_paths;
    for (size_t length; one && (length = strlen(one)) > 0; one += length + 1)
        if (pando_reactor_input_lies_at(connection, one))
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
    if (too_large_to_keep(reactor, connection, connection->body_left))
        return;
    pando_http_chunked_init(&connection->chunked);
    connection->state = PANDO_READING_BODY;
    connection->exchange.body_begun = pando_reactor_nanoseconds();
    pando_reactor_pace_begin(reactor, connection);
    pando_reactor_timer_start(reactor, connection, PANDO_TIMER_BODY);

    int waits_for_us = parser->expect_continue && parser->minor > 0 && connection->raw == connection->in_end;
    if (waits_for_us)
        pando_reactor_output_bytes(reactor, connection, continue_line, sizeof(continue_line) - 1, 0);
}

/* A chunked body is decoded in memory and moves from there to its file. A body with a content-length goes to its file
 * by way of the scratch buffer. */
static int by_scratch(const struct pando_connection *connection)
{
    return !is_chunked(connection) && needs_file(connection);
}

static uint32_t room_wanted(const struct pando_connection *connection)
{
    if (!is_chunked(connection))
        return (uint32_t)connection->body_left;
    return connection->spool == -1 ? 1 : ROOM;
}

static size_t receive_to_memory(struct pando_reactor *reactor, struct pando_connection *connection)
{
    uint32_t end = connection->in_end;
    if (pando_reactor_pool_reserve(&reactor->pool, &connection->in, end + room_wanted(connection), end) == -1) {
        pando_reactor_refuse(reactor, connection, 503);
        return 0;
    }
    size_t bytes = pando_reactor_input_receive(reactor, connection, connection->in.data + end,
                                               connection->in.capacity - end);
    if (connection->state == PANDO_READING_BODY)
        connection->in_end += (uint32_t)bytes;
    return bytes;
}

/* Never receives more than belongs to the body. */
static size_t receive_to_scratch(struct pando_reactor *reactor, struct pando_connection *connection)
{
    size_t room = connection->body_left < PANDO_SCRATCH_BYTES ? (size_t)connection->body_left : PANDO_SCRATCH_BYTES;
    return pando_reactor_input_receive(reactor, connection, reactor->scratch, room);
}

static int feed_from_scratch(struct pando_reactor *reactor, struct pando_connection *connection, size_t bytes)
{
    size_t used;
    int more = feed_sized(reactor, connection, reactor->scratch, bytes, &used);
    if (more == 0)
        complete(reactor, connection);
    return more == 1;
}

int pando_reactor_body_step(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->raw < connection->in_end)
        return feed_from_memory(reactor, connection);
    int to_scratch = by_scratch(connection);
    size_t bytes = to_scratch ? receive_to_scratch(reactor, connection) : receive_to_memory(reactor, connection);
    if (bytes == 0)
        return 0;
    if (!pando_reactor_pace_moved(reactor, connection, bytes, reactor->config->body_timeout)) {
        pando_reactor_refuse(reactor, connection, 408);
        return 0;
    }
    pando_reactor_timer_start(reactor, connection, PANDO_TIMER_BODY);
    return to_scratch ? feed_from_scratch(reactor, connection, bytes) : feed_from_memory(reactor, connection);
}
