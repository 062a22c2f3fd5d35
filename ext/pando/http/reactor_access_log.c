/* Composes the lines of the access log. Runs in the reactor; log_writer.c writes them.
 *
 * Clients choose much of a line: values are escaped, and long ones are cut. */
#include "log_line.h"
#include "reactor_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TARGET_BYTES 4096u /* of a value: more is cut off */
#define FIELD_BYTES 1024u
#define STOP 1000u         /* milliseconds that the last lines may take when the reactor ends */

/* --- the time --- */

static void set_clock(struct pando_access_log *log, time_t second)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm date = {0};
    if (log->config->format == PANDO_LOG_JSON) {
        gmtime_r(&second, &date);
        strftime(log->clock, sizeof(log->clock), "%Y-%m-%dT%H:%M:%S", &date);
    } else { /* strftime would write the month in the language of the locale */
        localtime_r(&second, &date);
        long minutes = date.tm_gmtoff / 60;
        snprintf(log->clock, sizeof(log->clock), "%02u/%.3s/%04u:%02u:%02u:%02u %c%02u%02u",
                 (unsigned)date.tm_mday % 100, months + 3 * (date.tm_mon % 12), (unsigned)(date.tm_year + 1900) % 10000,
                 (unsigned)date.tm_hour % 100, (unsigned)date.tm_min % 100, (unsigned)date.tm_sec % 100,
                 minutes < 0 ? '-' : '+', (unsigned)(labs(minutes) / 60) % 100, (unsigned)labs(minutes) % 60);
    }
    log->second = second;
}

/* Returns the milliseconds of the second. */
static unsigned look_at_the_clock(struct pando_access_log *log)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != log->second)
        set_clock(log, now.tv_sec);
    return (unsigned)(now.tv_nsec / 1000000);
}

/* --- common and combined --- */

static pando_http_span field_of(const struct pando_connection *connection, const char *name)
{
    pando_http_span value = {0};
    if (connection->exchange.parsed)
        pando_line_field(connection->in.data, connection->head_bytes, name, &value);
    if (value.len > FIELD_BYTES)
        value.len = FIELD_BYTES;
    return value;
}

static void put_target(struct pando_line *line, int json, const struct pando_connection *connection)
{
    pando_http_span target = connection->parser.target;
    pando_line_escaped(line, json, connection->in.data + target.off, target.len < TARGET_BYTES ? target.len : TARGET_BYTES);
}

static void put_request(struct pando_line *line, const struct pando_connection *connection)
{
    if (!connection->exchange.parsed) {
        pando_line_text(line, "\"-\"");
        return;
    }
    pando_line_text(line, "\"");
    pando_line_put(line, connection->in.data + connection->parser.method.off, connection->parser.method.len);
    pando_line_text(line, " ");
    put_target(line, 0, connection);
    pando_line_text(line, connection->parser.minor > 0 ? " HTTP/1.1\"" : " HTTP/1.0\"");
}

static void put_quoted(struct pando_line *line, const struct pando_connection *connection, const char *name)
{
    pando_http_span value = field_of(connection, name);
    pando_line_text(line, "\"");
    if (value.len > 0)
        pando_line_escaped(line, 0, connection->in.data + value.off, value.len);
    else
        pando_line_text(line, "-");
    pando_line_text(line, "\"");
}

/* Bytes of the body, as the format wants it. */
static uint64_t body_sent(const struct pando_connection *connection)
{
    uint64_t sent = connection->sent - connection->exchange.sent_before;
    return sent > connection->exchange.head_bytes ? sent - connection->exchange.head_bytes : 0;
}

static void compose_common(struct pando_access_log *log, struct pando_line *line, const struct pando_connection *connection)
{
    look_at_the_clock(log);
    pando_line_text(line, connection->remote[0] ? connection->remote : "-");
    pando_line_text(line, " - - [");
    pando_line_text(line, log->clock);
    pando_line_text(line, "] ");
    put_request(line, connection);
    pando_line_text(line, " ");
    pando_line_number(line, connection->exchange.status);
    pando_line_text(line, " ");
    pando_line_number(line, body_sent(connection));
    if (log->config->format == PANDO_LOG_COMBINED) {
        pando_line_text(line, " ");
        put_quoted(line, connection, "referer");
        pando_line_text(line, " ");
        put_quoted(line, connection, "user-agent");
    }
}

/* --- JSON --- */

/* The key comes as ,"key": */
static void put_json(struct pando_line *line, const char *key, const char *text, size_t bytes)
{
    pando_line_text(line, key);
    pando_line_text(line, "\"");
    pando_line_escaped(line, 1, text, bytes);
    pando_line_text(line, "\"");
}

static void put_json_number(struct pando_line *line, const char *key, uint64_t number)
{
    pando_line_text(line, key);
    pando_line_number(line, number);
}

static void put_json_seconds(struct pando_line *line, const char *key, uint64_t nanoseconds)
{
    pando_line_text(line, key);
    pando_line_seconds(line, nanoseconds);
}

static void put_json_field(struct pando_line *line, const char *key, const struct pando_connection *connection,
                           const char *name)
{
    pando_http_span value = field_of(connection, name);
    if (value.len > 0)
        put_json(line, key, connection->in.data + value.off, value.len);
}

static void put_json_request(struct pando_line *line, const struct pando_connection *connection)
{
    const pando_http_parser *parser = &connection->parser;
    if (!connection->exchange.parsed)
        return;
    put_json(line, ",\"method\":", connection->in.data + parser->method.off, parser->method.len);
    pando_line_text(line, ",\"path\":\"");
    put_target(line, 1, connection);
    pando_line_text(line, parser->minor > 0 ? "\",\"protocol\":\"HTTP/1.1\"" : "\",\"protocol\":\"HTTP/1.0\"");
    put_json_field(line, ",\"host\":", connection, "host");
}

static const char *pool_name(const struct pando_access_log *log, uint8_t pool)
{
    const char *name = log->config->pool_names;
    for (; name && *name && pool > 0; pool--)
        name += strlen(name) + 1;
    return name ? name : "";
}

static void put_json_worker(struct pando_access_log *log, struct pando_line *line, const struct pando_exchange *exchange)
{
    const char *pool = pool_name(log, exchange->pool);
    if (*pool && exchange->complete > 0)
        put_json(line, ",\"pool\":", pool, strlen(pool));
    if (!exchange->taken)
        return;
    put_json_number(line, ",\"worker\":", exchange->slot);
    put_json_number(line, ",\"generation\":", exchange->generation);
    if (exchange->retried > 0)
        put_json_number(line, ",\"retried\":", exchange->retried);
}

/* How long it took from the first byte to the last one, the wait for a worker, and the worker's own time. */
static void put_json_times(struct pando_line *line, const struct pando_exchange *exchange)
{
    uint64_t now = pando_reactor_nanoseconds();
    put_json_seconds(line, ",\"duration\":", now - exchange->begun);
    if (exchange->complete == 0)
        return;
    put_json_seconds(line, ",\"queue\":", exchange->queued);
    uint64_t taken = exchange->complete + exchange->queued;
    if (exchange->answered > taken)
        put_json_seconds(line, ",\"service\":", exchange->answered - taken);
}

static void compose_json(struct pando_access_log *log, struct pando_line *line, const struct pando_connection *connection)
{
    const struct pando_exchange *exchange = &connection->exchange;
    unsigned milliseconds = look_at_the_clock(log);
    const char fraction[] = {'.', (char)('0' + milliseconds / 100), (char)('0' + milliseconds / 10 % 10),
                             (char)('0' + milliseconds % 10), 'Z', '"'};
    pando_line_text(line, "{\"time\":\"");
    pando_line_text(line, log->clock);
    pando_line_put(line, fraction, sizeof(fraction));
    if (connection->remote[0])
        put_json(line, ",\"remote\":", connection->remote, strlen(connection->remote));
    put_json_request(line, connection);
    if (exchange->status > 0)
        put_json_number(line, ",\"status\":", exchange->status);
    put_json_number(line, ",\"sent\":", connection->sent - exchange->sent_before);
    put_json_number(line, ",\"received\":", pando_reactor_exchange_received(connection));
    put_json_times(line, exchange);
    put_json_worker(log, line, exchange);
    if (exchange->id_bytes > 0)
        put_json(line, ",\"request_id\":", exchange->id, exchange->id_bytes);
    else
        put_json_field(line, ",\"request_id\":", connection, "x-request-id");
    put_json_field(line, ",\"forwarded_for\":", connection, "x-forwarded-for");
    put_json_field(line, ",\"referer\":", connection, "referer");
    put_json_field(line, ",\"user_agent\":", connection, "user-agent");
    pando_line_text(line, "}");
}

/* --- the log --- */

/* Whether this exchange is in the sample: a share of all, and each that the server failed. Xorshift, Marsaglia 2003. */
static int is_chosen(struct pando_access_log *log, const struct pando_exchange *exchange)
{
    if (log->config->sample == 0 || exchange->status >= 500)
        return 1;
    log->random ^= log->random << 13;
    log->random ^= log->random >> 17;
    log->random ^= log->random << 5;
    return log->random < log->config->sample;
}

void pando_access_log_note(struct pando_reactor *reactor, const struct pando_connection *connection)
{
    struct pando_access_log *log = reactor->access_log;
    if (!is_chosen(log, &connection->exchange))
        return;
    struct pando_line line = {log->line, log->line + sizeof(log->line) - 1};
    if (log->config->format == PANDO_LOG_JSON)
        compose_json(log, &line, connection);
    else
        compose_common(log, &line, connection);
    *line.at++ = '\n';
    int put = pando_log_writer_put(&log->writer, log->line, (size_t)(line.at - log->line));
    pando_stat_add(put ? &reactor->stats->log_lines : &reactor->stats->log_dropped, 1);
    log->unannounced = 1;
}

void pando_access_log_turn(struct pando_reactor *reactor)
{
    struct pando_access_log *log = reactor->access_log;
    if (!log || !log->unannounced)
        return;
    log->unannounced = 0;
    pando_log_writer_nudge(&log->writer);
}

void pando_access_log_reopen(struct pando_reactor *reactor)
{
    if (reactor->access_log)
        pando_log_writer_reopen(&reactor->access_log->writer);
}

void pando_access_log_start(struct pando_reactor *reactor)
{
    const struct pando_access_log_config *config = &reactor->config->access_log;
    if (!config->path)
        return;
    struct pando_access_log *log = calloc(1, sizeof(*log));
    if (!log || pando_log_writer_start(&log->writer, config->path, &reactor->stats->log_error) == -1) {
        pando_stat_set(&reactor->stats->log_error, (uint64_t)errno);
        free(log);
        return;
    }
    log->config = config;
    log->second = -1;
    log->random = (uint32_t)pando_reactor_nanoseconds() | 1;
    reactor->access_log = log;
}

int pando_access_log_stop(struct pando_reactor *reactor)
{
    struct pando_access_log *log = reactor->access_log;
    if (log && !pando_log_writer_stop(&log->writer, STOP))
        return 0;
    free(log);
    reactor->access_log = NULL;
    return 1;
}
