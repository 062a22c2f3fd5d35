/* Message framing, see framing.h. Runs in the reactor and in workers. Pure C. */
#include "framing.h"
#include "chars.h"

#include <string.h>

#define LONGEST_BODY 1000000000000000000u /* 10^18: no sum with it overflows */

static int refuse(const char **reason, const char *text)
{
    *reason = text;
    return 400;
}

static int equals(const char *text, uint32_t len, const char *lower)
{
    if (len != strlen(lower))
        return 0;
    for (uint32_t i = 0; i < len; i++)
        if (pando_http_lower(text[i]) != lower[i])
            return 0;
    return 1;
}

/* Finds the next element of a comma-separated list, trimmed. *pos moves past it and its comma, and past the end (len
 * + 1) after the last one. */
static int next_element(const char *text, uint32_t len, uint32_t *pos, uint32_t *start, uint32_t *size)
{
    if (*pos > len)
        return 0;
    uint32_t first = *pos, last;
    while (*pos < len && text[*pos] != ',')
        (*pos)++;
    last = *pos;
    (*pos)++;
    while (first < last && (text[first] == ' ' || text[first] == '\t'))
        first++;
    while (last > first && (text[last - 1] == ' ' || text[last - 1] == '\t'))
        last--;
    *start = first;
    *size = last - first;
    return 1;
}

static int parse_length(const char *text, uint32_t len, uint64_t *length, const char **reason)
{
    uint64_t value = 0;
    if (len == 0)
        return refuse(reason, "malformed Content-Length");
    for (uint32_t i = 0; i < len; i++) {
        if (!pando_http_is(text[i], PANDO_HTTP_DIGIT))
            return refuse(reason, "malformed Content-Length");
        value = value * 10 + (uint64_t)(text[i] - '0');
        if (value > LONGEST_BODY) {
            *reason = "Content-Length too large";
            return 413;
        }
    }
    *length = value;
    return 0;
}

/* RFC 9110 section 8.6: a list repeats one length, or is an attack. */
static int note_content_length(pando_http_parser *parser, const char *text, uint32_t len, const char **reason)
{
    uint32_t pos = 0, start, size;
    while (next_element(text, len, &pos, &start, &size)) {
        uint64_t length;
        int status = parse_length(text + start, size, &length, reason);
        if (status)
            return status;
        if (parser->has_length && parser->content_length != length)
            return refuse(reason, "differing Content-Length");
        parser->has_length = 1;
        parser->content_length = length;
    }
    return 0;
}

/* RFC 9112 section 6.1. Empty elements are refused here, though other lists may have them. */
static int note_transfer_encoding(pando_http_parser *parser, const char *text, uint32_t len, const char **reason)
{
    uint32_t pos = 0, start, size;
    while (next_element(text, len, &pos, &start, &size)) {
        if (size == 0)
            return refuse(reason, "malformed Transfer-Encoding");
        if (parser->codings < UINT8_MAX)
            parser->codings++;
        parser->chunked_last = (uint8_t)equals(text + start, size, "chunked");
        if (parser->chunked_last && parser->chunked_seen++)
            return refuse(reason, "chunked twice");
    }
    return 0;
}

static int note_connection(pando_http_parser *parser, const char *text, uint32_t len, const char **reason)
{
    uint32_t pos = 0, start, size;
    while (next_element(text, len, &pos, &start, &size)) {
        for (uint32_t i = 0; i < size; i++)
            if (!pando_http_is(text[start + i], PANDO_HTTP_TOKEN))
                return refuse(reason, "malformed Connection");
        if (equals(text + start, size, "close"))
            parser->close = 1;
        else if (equals(text + start, size, "keep-alive"))
            parser->keep_alive = 1;
        else if (equals(text + start, size, "upgrade"))
            parser->upgrade = 1;
    }
    return 0;
}

static uint8_t identify(const char *name, uint32_t len)
{
    switch (len) {
    case 4:
        return equals(name, len, "host") ? PANDO_HTTP_FIELD_HOST : PANDO_HTTP_OTHER;
    case 6:
        return equals(name, len, "expect") ? PANDO_HTTP_FIELD_EXPECT : PANDO_HTTP_OTHER;
    case 10:
        return equals(name, len, "connection") ? PANDO_HTTP_FIELD_CONNECTION : PANDO_HTTP_OTHER;
    case 14:
        return equals(name, len, "content-length") ? PANDO_HTTP_FIELD_CONTENT_LENGTH : PANDO_HTTP_OTHER;
    case 15:
        return equals(name, len, "x-forwarded-for") || equals(name, len, "x-forwarded-ssl") ? PANDO_HTTP_FIELD_FORWARDED
                                                                                            : PANDO_HTTP_OTHER;
    case 17:
        if (equals(name, len, "x-forwarded-proto"))
            return PANDO_HTTP_FIELD_FORWARDED;
        return equals(name, len, "transfer-encoding") ? PANDO_HTTP_FIELD_TRANSFER_ENCODING : PANDO_HTTP_OTHER;
    default:
        return PANDO_HTTP_OTHER;
    }
}

int pando_http_note_field(pando_http_parser *parser, const char *buffer, pando_http_field *field,
                          const char **reason)
{
    const char *value = buffer + field->value.off;
    uint32_t len = field->value.len;

    field->id = identify(buffer + field->name.off, field->name.len);
    switch (field->id) {
    case PANDO_HTTP_FIELD_HOST:
        return parser->has_host++ ? refuse(reason, "more than one Host") : 0;
    case PANDO_HTTP_FIELD_CONTENT_LENGTH:
        return note_content_length(parser, value, len, reason);
    case PANDO_HTTP_FIELD_TRANSFER_ENCODING:
        return note_transfer_encoding(parser, value, len, reason);
    case PANDO_HTTP_FIELD_CONNECTION:
        return note_connection(parser, value, len, reason);
    case PANDO_HTTP_FIELD_FORWARDED:
        parser->forwarded = 1;
        return 0;
    case PANDO_HTTP_FIELD_EXPECT:
        /* RFC 9110 section 10.1.1: any other expectation may be ignored. */
        if (equals(value, len, "100-continue"))
            parser->expect_continue = 1;
        return 0;
    default:
        return 0;
    }
}

/* RFC 9112 sections 6.1 and 6.3. */
int pando_http_check_framing(pando_http_parser *parser, const char **reason)
{
    if (parser->codings == 0) {
        parser->body = parser->has_length && parser->content_length > 0 ? PANDO_HTTP_SIZED_BODY : PANDO_HTTP_NO_BODY;
        return 0;
    }
    if (parser->minor == 0)
        return refuse(reason, "Transfer-Encoding in HTTP/1.0");
    if (parser->has_length)
        return refuse(reason, "both Transfer-Encoding and Content-Length");
    if (!parser->chunked_last)
        return refuse(reason, "chunked is not the last transfer coding");
    if (parser->codings > 1) {
        *reason = "unknown transfer coding";
        return 501;
    }
    parser->body = PANDO_HTTP_CHUNKED_BODY;
    return 0;
}
