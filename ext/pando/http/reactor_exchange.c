/* Follows each exchange, and counts it when it is over. Runs in the reactor. */
#include "log_line.h"
#include "reactor_private.h"

#include <string.h>

void pando_reactor_exchange_begin(struct pando_connection *connection)
{
    connection->exchange = (struct pando_exchange){
        .begun = pando_reactor_nanoseconds(), .method = PANDO_METHOD_other, .sent_before = connection->sent};
}

static uint8_t method_of(const struct pando_connection *connection)
{
    static const char *const names[] = {
#define NAME(name) #name,
        PANDO_STATS_METHODS(NAME)
#undef NAME
    };
    pando_http_span method = connection->parser.method;
    const char *text = connection->in.data + method.off;
    for (uint8_t i = 0; i < PANDO_METHOD_other; i++)
        if (method.len == strlen(names[i]) && memcmp(text, names[i], method.len) == 0)
            return i;
    return PANDO_METHOD_other;
}

void pando_reactor_exchange_parsed(struct pando_connection *connection)
{
    struct pando_exchange *exchange = &connection->exchange;
    exchange->open = exchange->parsed = 1;
    exchange->method = method_of(connection);
}

void pando_reactor_exchange_ignore(struct pando_connection *connection)
{
    connection->exchange.open = 0;
}

void pando_reactor_exchange_complete(struct pando_connection *connection)
{
    connection->exchange.complete = connection->request.arrived;
}

void pando_reactor_exchange_settled(struct pando_connection *connection, const struct pando_reactor_lane *lane,
                                    uint64_t queued)
{
    struct pando_exchange *exchange = &connection->exchange;
    exchange->queued = queued;
    exchange->retried = connection->request.retried;
    if (lane) {
        exchange->slot = lane->slot;
        exchange->generation = lane->generation;
        exchange->taken = 1;
    }
}

/* --- the answer --- */

static int is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* "HTTP/1.1 200": a worker may have written anything. 0: no status. */
static uint16_t status_in(const char *head, size_t bytes)
{
    if (bytes < 12 || memcmp(head, "HTTP/1.", 7) != 0 || !is_digit(head[9]) || !is_digit(head[10]) ||
        !is_digit(head[11]))
        return 0;
    return (uint16_t)((head[9] - '0') * 100 + (head[10] - '0') * 10 + head[11] - '0');
}

/* Finds the end of the head, and the request's id in it. */
static void note_head(struct pando_exchange *exchange, const char *head, size_t bytes)
{
    pando_http_span id;
    exchange->head_bytes = pando_line_head_bytes(head, bytes);
    if (pando_line_field(head, exchange->head_bytes, "x-request-id", &id) && id.len <= PANDO_REQUEST_ID) {
        memcpy(exchange->id, head + id.off, id.len);
        exchange->id_bytes = (uint8_t)id.len;
    }
}

void pando_reactor_exchange_answer(const struct pando_reactor *reactor, struct pando_connection *connection,
                                   const char *head, size_t bytes)
{
    connection->exchange.status = status_in(head, bytes);
    connection->exchange.sent_before = connection->sent; /* a 100 Continue is no part of it */
    if (reactor->access_log)
        note_head(&connection->exchange, head, bytes);
}

void pando_reactor_exchange_answered(struct pando_connection *connection)
{
    connection->exchange.answered = pando_reactor_nanoseconds();
}

void pando_reactor_exchange_refused(struct pando_connection *connection, int status)
{
    if (connection->exchange.begun == 0) /* its client is refused before it has said a word */
        pando_reactor_exchange_begin(connection);
    connection->exchange.open = 1;
    connection->exchange.status = (uint16_t)status;
    connection->exchange.sent_before = connection->sent;
}

/* --- the end --- */

static unsigned class_of(uint16_t status)
{
    unsigned hundreds = status / 100u;
    return hundreds < PANDO_STATS_CLASSES ? hundreds : 0;
}

uint64_t pando_reactor_exchange_received(const struct pando_connection *connection)
{
    int all_in_file = connection->spooled > 0 && connection->head_bytes > PANDO_SLOT_BYTES;
    return (all_in_file ? 0 : connection->head_bytes) + connection->body_bytes + connection->spooled;
}

static void count(struct pando_reactor *reactor, const struct pando_connection *connection)
{
    const struct pando_exchange *exchange = &connection->exchange;
    struct pando_pool_stats *stats = &reactor->stats->pools[exchange->pool];
    pando_stat_add(&stats->answers[exchange->method][class_of(exchange->status)], 1);
    pando_stat_add(&stats->received_bytes, pando_reactor_exchange_received(connection));
    pando_stat_add(&stats->sent_bytes, connection->sent - exchange->sent_before);
    if (exchange->complete > 0) {
        uint64_t end = exchange->answered ? exchange->answered : pando_reactor_nanoseconds();
        pando_histogram_add(&stats->duration, end > exchange->complete ? end - exchange->complete : 0);
    }
}

void pando_reactor_exchange_end(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_exchange *exchange = &connection->exchange;
    if (exchange->open) {
        if (exchange->status == 0 && !connection->streamed) /* else its worker may have answered by itself */
            exchange->status = PANDO_CLIENT_GONE;
        count(reactor, connection);
        if (reactor->access_log)
            pando_access_log_note(reactor, connection);
    }
    exchange->begun = 0;
    exchange->open = 0;
}
