/* Reads request heads, and the PROXY header before the first. Runs in the reactor. Input stays where it was received:
 * the head at the start of the connection's buffer, whatever follows behind it. */
#include "proxy.h"
#include "reactor_health.h"
#include "reactor_private.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define LOOKED_AT 64 /* requests examined to find one to refuse in favour of a new one */

int pando_reactor_input_lies_at(const struct pando_connection *connection, const char *path)
{
    pando_http_span asked = connection->parser.path;
    const char *text = connection->in.data + asked.off;
    size_t length = strlen(path);
    return length > 0 && asked.len >= length && memcmp(text, path, length) == 0 &&
           (asked.len == length || path[length - 1] == '/' || text[length] == '/');
}

int pando_reactor_input_silent(const struct pando_connection *connection)
{
    return connection->in_end == 0 &&
           (connection->state == PANDO_READING_PROXY || connection->state == PANDO_READING_HEAD);
}

void pando_reactor_input_unfinished(struct pando_reactor *reactor, struct pando_connection *connection, int status,
                                    _Atomic uint64_t *reason)
{
    if (connection->in_end == 0 || connection->state == PANDO_READING_PROXY)
        pando_reactor_connection_close(reactor, connection);
    else
        pando_reactor_refuse_for(reactor, connection, status, reason);
}

size_t pando_reactor_input_receive(struct pando_reactor *reactor, struct pando_connection *connection, char *place,
                                   size_t room)
{
    ssize_t bytes;
    if (!connection->readable)
        return 0;
    do {
        bytes = recv(connection->watch.fd, place, room, MSG_DONTWAIT);
    } while (bytes == -1 && errno == EINTR);

    if (bytes > 0) {
        /* Fewer bytes than there was room for: the socket is empty, and epoll reports more. Not after RDHUP, whose
         * edge has already been seen. */
        if ((size_t)bytes < room && !connection->read_ended)
            connection->readable = 0;
        reactor->work += (uint32_t)bytes;
        return (size_t)bytes;
    }
    if (bytes == -1 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        connection->readable = 0;
        return 0;
    }
    connection->readable = 0;
    connection->read_ended = 1;
    if (bytes == 0)
        pando_reactor_input_unfinished(reactor, connection, 400, &reactor->stats->refused_cut_off); /* it may read it */
    else
        pando_reactor_connection_close(reactor, connection);
    return 0;
}

void pando_reactor_input_release(struct pando_reactor *reactor, struct pando_connection *connection)
{
    pando_reactor_pool_return(&reactor->pool, &connection->in);
    pando_reactor_pool_return(&reactor->pool, &connection->fields);
    connection->parser.fields = reactor->fields;
    connection->in_end = connection->head_bytes = connection->body_bytes = connection->raw = 0;
    if (connection->spool != -1)
        pando_reactor_spool_close(reactor, connection);
}

void pando_reactor_input_rest(struct pando_reactor *reactor, struct pando_connection *connection)
{
    uint32_t rest = connection->in_end - connection->raw;
    if (rest == 0) {
        pando_reactor_input_release(reactor, connection);
    } else {
        if (connection->raw > 0)
            memmove(connection->in.data, connection->in.data + connection->raw, rest);
        connection->in_end = rest;
        connection->head_bytes = connection->body_bytes = connection->raw = 0;
        if (connection->spool != -1)
            pando_reactor_spool_close(reactor, connection);
    }
    pando_http_parser_reset(&connection->parser);
}

/* The largest buffer among the connections that have run this timer for longest. */
static struct pando_connection *largest_of(const struct pando_reactor *reactor, enum pando_timer_kind kind)
{
    const struct pando_node *list = &reactor->timers[kind];
    struct pando_connection *largest = NULL;
    int left = LOOKED_AT;
    for (struct pando_node *node = list->next; node != list && left > 0; node = node->next, left--) {
        struct pando_connection *one = pando_owner(node, struct pando_connection, timer.node);
        if (one->in.data && (!largest || one->in.capacity > largest->in.capacity))
            largest = one;
    }
    return largest;
}

int pando_reactor_input_give_way(struct pando_reactor *reactor)
{
    struct pando_connection *slow = largest_of(reactor, PANDO_TIMER_HEADER);
    if (!slow)
        slow = largest_of(reactor, PANDO_TIMER_BODY);
    if (slow)
        pando_reactor_shed(reactor, slow, &reactor->stats->shed_memory);
    return slow != NULL;
}

/* A head that arrives in pieces keeps its fields in memory of its connection; all other heads use the reactor's
 * array. */
static int keep_fields(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->fields.data)
        return 0;
    uint32_t bytes = reactor->limits.max_fields * (uint32_t)sizeof(pando_http_field);
    if (pando_reactor_pool_reserve(&reactor->pool, &connection->fields, bytes, 0) == -1)
        return -1;
    memcpy(connection->fields.data, reactor->fields, bytes);
    connection->parser.fields = (pando_http_field *)(void *)connection->fields.data;
    return 0;
}

/* Requests meant for a proxy, or for an https server: no application behind Pando is one. */
static int not_for_us(const pando_http_parser *parser)
{
    if (parser->form == PANDO_HTTP_AUTHORITY_FORM)
        return 501;
    return parser->https ? 421 : 0;
}

static int is_method(const struct pando_connection *connection, const char *name)
{
    pando_http_span method = connection->parser.method;
    return method.len == strlen(name) && memcmp(connection->in.data + method.off, name, method.len) == 0;
}

/* RFC 9112 section 9.3 */
static void note_head(struct pando_reactor *reactor, struct pando_connection *connection)
{
    const pando_http_parser *parser = &connection->parser;
    uint32_t most = reactor->config->max_requests;

    connection->head_only = (uint8_t)is_method(connection, "HEAD");
    connection->read_only = connection->head_only || is_method(connection, "GET");
    connection->safe = connection->read_only || is_method(connection, "OPTIONS");
    connection->persistent = parser->minor > 0 ? !parser->close : parser->keep_alive && !parser->close;
    if (pando_reactor_must_end(reactor, connection) || (most > 0 && connection->requests + 1 >= most))
        connection->persistent = 0;
    connection->head_bytes = connection->raw = parser->head_len;
    connection->body_bytes = 0;
    connection->spooled = 0;
    connection->streamed = 0;
    pando_reactor_exchange_parsed(connection);
}

static void head_complete(struct pando_reactor *reactor, struct pando_connection *connection)
{
    note_head(reactor, connection);
    pando_reactor_pool_return(&reactor->pool, &connection->fields);
    connection->parser.fields = reactor->fields;
    int status = not_for_us(&connection->parser);
    if (status)
        pando_reactor_refuse(reactor, connection, status);
    else if (!pando_reactor_health_asked(reactor, connection))
        pando_reactor_body_begin(reactor, connection);
}

/* Makes room for a head of the maximum length and one byte more, so that the parser decides, not the buffer. Without
 * memory, a new head takes the place of the slowest one, and a head that needs more is refused. */
static int make_room(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->in.data && connection->in_end < connection->in.capacity)
        return 0;
    uint32_t bytes = connection->in.data ? connection->in.capacity + 1 : 1;
    int result = pando_reactor_pool_reserve(&reactor->pool, &connection->in, bytes, connection->in_end);
    while (result == -1 && errno == ENOBUFS && !connection->in.data && pando_reactor_input_give_way(reactor))
        result = pando_reactor_pool_reserve(&reactor->pool, &connection->in, bytes, 0);
    return result;
}

static int receive_head(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (make_room(reactor, connection) == -1) {
        pando_reactor_refuse(reactor, connection, 503);
        return 0;
    }
    int first = connection->in_end == 0;
    size_t bytes = pando_reactor_input_receive(reactor, connection, connection->in.data + connection->in_end,
                                       connection->in.capacity - connection->in_end);
    if (bytes == 0) {
        if (connection->in_end == 0)
            pando_reactor_pool_return(&reactor->pool, &connection->in);
        return 0;
    }
    connection->in_end += (uint32_t)bytes;
    if (first) {
        pando_reactor_timer_start(reactor, connection, PANDO_TIMER_HEADER);
        pando_reactor_exchange_begin(connection);
    }
    return 1;
}

/* 0: too many connections come from the client's address. */
static int introduced(struct pando_reactor *reactor, struct pando_connection *connection,
                      const pando_proxy_header *header)
{
    if (!header->local)
        memcpy(connection->remote, header->address, sizeof(connection->remote));
    connection->in_end -= header->bytes;
    memmove(connection->in.data, connection->in.data + header->bytes, connection->in_end);
    connection->state = PANDO_READING_HEAD;
    return pando_reactor_accept_admit(reactor, connection);
}

/* A client that does not speak the PROXY protocol here may not speak HTTP either: it gets no answer. */
int pando_reactor_input_proxy(struct pando_reactor *reactor, struct pando_connection *connection)
{
    pando_proxy_header header;
    if (!receive_head(reactor, connection))
        return 0;
    switch (pando_proxy_parse(connection->in.data, connection->in_end, &header)) {
    case PANDO_PROXY_DONE:
        return introduced(reactor, connection, &header);
    case PANDO_PROXY_MORE:
        return 1;
    default:
        pando_stat_add(&reactor->stats->refused_proxy, 1);
        pando_reactor_connection_close(reactor, connection);
        return 0;
    }
}

int pando_reactor_input_head(struct pando_reactor *reactor, struct pando_connection *connection)
{
    /* Parses the bytes that followed the last request before it receives more. */
    int fresh = connection->in_end > 0 && connection->parser.pos == 0;
    if (!fresh && !receive_head(reactor, connection))
        return 0;
    switch (pando_http_parser_run(&connection->parser, connection->in.data, connection->in_end)) {
    case PANDO_HTTP_DONE:
        head_complete(reactor, connection);
        return connection->state == PANDO_READING_BODY;
    case PANDO_HTTP_ERROR:
        pando_reactor_refuse(reactor, connection, connection->parser.status);
        return 0;
    default:
        if (keep_fields(reactor, connection) == 0)
            return 1;
        pando_reactor_refuse(reactor, connection, 503);
        return 0;
    }
}
