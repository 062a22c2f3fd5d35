/* The request head parser, see parser.h. Runs in the reactor and in workers. Pure C. */
#include "parser.h"
#include "chars.h"
#include "framing.h"
#include "target.h"

#include <string.h>

enum {
    STATE_START,
    STATE_START_LF,
    STATE_METHOD,
    STATE_TARGET,
    STATE_VERSION,
    STATE_LINE_LF,
    STATE_FIELD,
    STATE_NAME,
    STATE_BEFORE_VALUE,
    STATE_VALUE,
    STATE_VALUE_LF,
    STATE_END_LF,
    STATE_DONE,
    STATE_ERROR
};

static const char version_pattern[] = "HTTP/d.d";
#define VERSION_LENGTH ((uint32_t)sizeof(version_pattern) - 1)

void pando_http_parser_init(pando_http_parser *parser, pando_http_limits limits, pando_http_field *fields)
{
    if (limits.max_head > PANDO_HTTP_HEAD_CEILING)
        limits.max_head = PANDO_HTTP_HEAD_CEILING;
    parser->limits = limits;
    parser->fields = fields;
    pando_http_parser_reset(parser);
}

void pando_http_parser_reset(pando_http_parser *parser)
{
    pando_http_limits limits = parser->limits;
    pando_http_field *fields = parser->fields;
    memset(parser, 0, sizeof(*parser));
    parser->limits = limits;
    parser->fields = fields;
}

static pando_http_result fail(pando_http_parser *parser, int status, const char *reason)
{
    parser->state = STATE_ERROR;
    parser->status = (uint16_t)status;
    parser->reason = reason;
    return PANDO_HTTP_ERROR;
}

static pando_http_span span_from_mark(const pando_http_parser *parser, uint32_t end)
{
    return (pando_http_span){parser->mark, end - parser->mark};
}

/* Skips bytes of one class and returns where they end. */
static uint32_t skip(const char *buffer, uint32_t pos, uint32_t end, int classes)
{
    while (pos < end && pando_http_is(buffer[pos], classes))
        pos++;
    return pos;
}

static pando_http_result read_method(pando_http_parser *parser, const char *buffer, uint32_t end)
{
    parser->pos = skip(buffer, parser->pos, end, PANDO_HTTP_TOKEN);
    /* RFC 9112 section 3: a method longer than any known one gets 501. */
    if (parser->pos - parser->mark > PANDO_HTTP_MAX_METHOD)
        return fail(parser, 501, "method too long");
    if (parser->pos == end)
        return PANDO_HTTP_MORE;
    if (buffer[parser->pos] != ' ' || parser->pos == parser->mark)
        return fail(parser, 400, "malformed method");
    parser->method = span_from_mark(parser, parser->pos);
    parser->mark = ++parser->pos;
    parser->state = STATE_TARGET;
    return PANDO_HTTP_MORE;
}

static pando_http_result read_target(pando_http_parser *parser, const char *buffer, uint32_t end)
{
    parser->pos = skip(buffer, parser->pos, end, PANDO_HTTP_QUERY);
    if (parser->pos - parser->mark > parser->limits.max_target)
        return fail(parser, 414, "target too long");
    if (parser->pos == end)
        return PANDO_HTTP_MORE;
    if (buffer[parser->pos] != ' ' || parser->pos == parser->mark)
        return fail(parser, 400, "malformed target");
    parser->target = span_from_mark(parser, parser->pos);
    parser->mark = ++parser->pos;
    parser->state = STATE_VERSION;
    return PANDO_HTTP_MORE;
}

static pando_http_result read_version(pando_http_parser *parser, const char *buffer, uint32_t end)
{
    while (parser->pos < end && parser->pos - parser->mark < VERSION_LENGTH) {
        char wanted = version_pattern[parser->pos - parser->mark], byte = buffer[parser->pos];
        if (wanted == 'd' ? !pando_http_is(byte, PANDO_HTTP_DIGIT) : byte != wanted)
            return fail(parser, 400, "malformed version");
        parser->pos++;
    }
    if (parser->pos == end)
        return PANDO_HTTP_MORE;
    if (buffer[parser->pos] != '\r')
        return fail(parser, 400, "malformed request line");
    if (buffer[parser->mark + 5] != '1')
        return fail(parser, 505, "unknown major version");
    parser->minor = (uint8_t)(buffer[parser->mark + 7] - '0');
    parser->pos++;
    parser->state = STATE_LINE_LF;
    return PANDO_HTTP_MORE;
}

static pando_http_result read_name(pando_http_parser *parser, const char *buffer, uint32_t end)
{
    parser->pos = skip(buffer, parser->pos, end, PANDO_HTTP_TOKEN);
    if (parser->pos == end)
        return PANDO_HTTP_MORE;
    /* Also refuses white space before the colon and folded lines (RFC 9112 sections 5.1, 5.2). */
    if (buffer[parser->pos] != ':' || parser->pos == parser->mark)
        return fail(parser, 400, "malformed field name");
    if (parser->field_count == parser->limits.max_fields)
        return fail(parser, 431, "too many fields");
    parser->fields[parser->field_count].name = span_from_mark(parser, parser->pos);
    parser->pos++;
    parser->state = STATE_BEFORE_VALUE;
    return PANDO_HTTP_MORE;
}

static void skip_space_before_value(pando_http_parser *parser, const char *buffer, uint32_t end)
{
    while (parser->pos < end && (buffer[parser->pos] == ' ' || buffer[parser->pos] == '\t'))
        parser->pos++;
    if (parser->pos < end) {
        parser->mark = parser->pos;
        parser->state = STATE_VALUE;
    }
}

static pando_http_result read_value(pando_http_parser *parser, const char *buffer, uint32_t end)
{
    parser->pos = skip(buffer, parser->pos, end, PANDO_HTTP_VALUE);
    if (parser->pos == end)
        return PANDO_HTTP_MORE;
    if (buffer[parser->pos] != '\r')
        return fail(parser, 400, "malformed field value");

    uint32_t last = parser->pos;
    while (last > parser->mark && (buffer[last - 1] == ' ' || buffer[last - 1] == '\t'))
        last--;
    parser->fields[parser->field_count].value = span_from_mark(parser, last);
    parser->pos++;
    parser->state = STATE_VALUE_LF;

    const char *reason = NULL;
    int status = pando_http_note_field(parser, buffer, &parser->fields[parser->field_count], &reason);
    if (status)
        return fail(parser, status, reason);
    parser->field_count++;
    return PANDO_HTTP_MORE;
}

static pando_http_result finish(pando_http_parser *parser, const char *buffer)
{
    const char *reason = NULL;
    int status = pando_http_check_target(parser, buffer, &reason);
    if (!status)
        status = pando_http_check_framing(parser, &reason);
    if (status)
        return fail(parser, status, reason);
    parser->head_len = parser->pos;
    parser->state = STATE_DONE;
    return PANDO_HTTP_DONE;
}

/* Takes the LF that must follow a CR. */
static pando_http_result read_lf(pando_http_parser *parser, const char *buffer, uint8_t next)
{
    if (buffer[parser->pos] != '\n')
        return fail(parser, 400, "CR without LF");
    parser->mark = ++parser->pos;
    parser->state = next;
    return PANDO_HTTP_MORE;
}

/* RFC 9112 section 2.2: an empty line before the request line is ignored. */
static pando_http_result read_start(pando_http_parser *parser, const char *buffer)
{
    if (buffer[parser->pos] != '\r') {
        parser->mark = parser->pos;
        parser->state = STATE_METHOD;
        return PANDO_HTTP_MORE;
    }
    if (parser->blank_lines++ == PANDO_HTTP_MAX_BLANK_LINES)
        return fail(parser, 400, "too many empty lines before the request");
    parser->pos++;
    parser->state = STATE_START_LF;
    return PANDO_HTTP_MORE;
}

static void begin_field(pando_http_parser *parser, const char *buffer)
{
    parser->mark = parser->pos;
    if (buffer[parser->pos] == '\r') {
        parser->pos++;
        parser->state = STATE_END_LF;
    } else {
        parser->state = STATE_NAME;
    }
}

static pando_http_result step(pando_http_parser *parser, const char *buffer, uint32_t end)
{
    switch (parser->state) {
    case STATE_START:
        return read_start(parser, buffer);
    case STATE_START_LF:
        return read_lf(parser, buffer, STATE_START);
    case STATE_METHOD:
        return read_method(parser, buffer, end);
    case STATE_TARGET:
        return read_target(parser, buffer, end);
    case STATE_VERSION:
        return read_version(parser, buffer, end);
    case STATE_LINE_LF:
    case STATE_VALUE_LF:
        return read_lf(parser, buffer, STATE_FIELD);
    case STATE_FIELD:
        begin_field(parser, buffer);
        return PANDO_HTTP_MORE;
    case STATE_NAME:
        return read_name(parser, buffer, end);
    case STATE_BEFORE_VALUE:
        skip_space_before_value(parser, buffer, end);
        return PANDO_HTTP_MORE;
    case STATE_VALUE:
        return read_value(parser, buffer, end);
    case STATE_END_LF:
        if (read_lf(parser, buffer, STATE_DONE) == PANDO_HTTP_ERROR)
            return PANDO_HTTP_ERROR;
        return finish(parser, buffer);
    default:
        return PANDO_HTTP_ERROR;
    }
}

pando_http_result pando_http_parser_run(pando_http_parser *parser, const char *buffer, size_t len)
{
    if (parser->state == STATE_DONE)
        return PANDO_HTTP_DONE;
    if (parser->state == STATE_ERROR)
        return PANDO_HTTP_ERROR;

    uint32_t limit = parser->limits.max_head;
    uint32_t end = len < limit ? (uint32_t)len : limit;
    pando_http_result result = PANDO_HTTP_MORE;
    while (result == PANDO_HTTP_MORE && parser->pos < end)
        result = step(parser, buffer, end);

    if (result == PANDO_HTTP_MORE && parser->pos == limit) {
        if (parser->state == STATE_TARGET)
            return fail(parser, 414, "target too long");
        return fail(parser, 431, "head too large");
    }
    return result;
}
