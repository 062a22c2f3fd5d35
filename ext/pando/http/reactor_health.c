/* Answers the health checks of load balancers and orchestrators in the reactor itself, so that no worker need be
 * free, or alive. Ready: new requests are welcome. Live: reactor and monitor are at work. Runs in the reactor. */
#include "date.h"
#include "reactor_health.h"
#include "reactor_private.h"

#include <stdio.h>
#include <string.h>

void pando_reactor_health_told(struct pando_reactor *reactor, int welcome)
{
    reactor->welcome = (uint8_t)welcome;
    reactor->told_at = reactor->now;
}

static int live(const struct pando_reactor *reactor)
{
    uint32_t silence = reactor->config->monitor_silence;
    return !reactor->orphaned && (silence == 0 || reactor->now - reactor->told_at <= silence);
}

static int ready(const struct pando_reactor *reactor)
{
    return reactor->welcome && !reactor->draining;
}

static int asks_at(const struct pando_connection *connection, const char *path)
{
    pando_http_span asked = connection->parser.path;
    return path && asked.len == strlen(path) && memcmp(connection->in.data + asked.off, path, asked.len) == 0;
}

/* RFC 9112 section 9.3: an HTTP/1.0 client must be told that its connection persists, an HTTP/1.1 client that it does
 * not. */
static const char *persistence(const struct pando_connection *connection)
{
    if (!connection->persistent)
        return "connection: close\r\n";
    return connection->parser.minor > 0 ? "" : "connection: keep-alive\r\n";
}

static void answer(struct pando_reactor *reactor, struct pando_connection *connection, int well)
{
    char text[512], later[48] = "";
    const char *body = well ? "OK\n" : "Service Unavailable\n";
    if (connection->parser.body != PANDO_HTTP_NO_BODY) { /* the body is never read, so no request can follow */
        connection->persistent = 0;
        connection->linger = 1;
    }
    if (!well) /* RFC 9110 section 10.2.3 */
        snprintf(later, sizeof(later), "retry-after: %u\r\n", reactor->config->retry_after);
    int length = snprintf(text, sizeof(text),
                          "HTTP/1.1 %s\r\ncontent-type: text/plain\r\ncache-control: no-store\r\n"
                          "content-length: %zu\r\n%s%s%s\r\n%s",
                          well ? "200 OK" : "503 Service Unavailable", strlen(body), later, pando_http_date_line(),
                          persistence(connection), connection->head_only ? "" : body);

    pando_stat_add(well ? &reactor->stats->health_well : &reactor->stats->health_unwell, 1);
    pando_reactor_timer_stop(reactor, connection);
    pando_reactor_exchange_ignore(connection);
    connection->state = PANDO_FINISHING;
    pando_reactor_output_bytes(reactor, connection, text, (size_t)length, !connection->persistent);
    if (connection->state != PANDO_CLOSED)
        pando_reactor_connection_answered(reactor, connection, 1);
}

int pando_reactor_health_asked(struct pando_reactor *reactor, struct pando_connection *connection)
{
    const struct pando_reactor_config *config = reactor->config;
    if (!connection->read_only)
        return 0;
    if (asks_at(connection, config->ready_path))
        answer(reactor, connection, ready(reactor));
    else if (asks_at(connection, config->live_path))
        answer(reactor, connection, live(reactor));
    else
        return 0;
    return 1;
}
