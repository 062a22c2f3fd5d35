/* Parses the request target, see target.h. Runs in the reactor and in workers. Pure C. */
#include "target.h"
#include "chars.h"
#include "host.h"

#include <string.h>

static int refuse(const char **reason, const char *text)
{
    *reason = text;
    return 400;
}

/* Splits the path at "?" from the query. RFC 3986 sections 3.3 and 3.4. The path's percent-encoding must be complete;
 * the query's is left to the application. */
static int split_path(pando_http_parser *parser, const char *buffer, uint32_t pos, uint32_t end)
{
    parser->path.off = pos;
    while (pos < end && buffer[pos] != '?') {
        if (buffer[pos] == '%') {
            if (end - pos < 3 || !pando_http_is(buffer[pos + 1], PANDO_HTTP_HEX) ||
                !pando_http_is(buffer[pos + 2], PANDO_HTTP_HEX))
                return 0;
            pos += 3;
        } else if (pando_http_is(buffer[pos], PANDO_HTTP_PATH)) {
            pos++;
        } else {
            return 0;
        }
    }
    parser->path.len = pos - parser->path.off;
    parser->query.off = pos < end ? pos + 1 : end;
    parser->query.len = end - parser->query.off;
    return 1;
}

static int set_authority(pando_http_parser *parser, const char *buffer, pando_http_span authority)
{
    pando_http_authority parts;
    if (!pando_http_authority_parse(buffer + authority.off, authority.len, &parts))
        return 0;
    parser->authority = authority;
    parser->host = (pando_http_span){authority.off, (uint32_t)parts.host_len};
    parser->port = (pando_http_span){authority.off + (uint32_t)parts.port_off, (uint32_t)parts.port_len};
    return 1;
}

static int begins_with(const char *text, uint32_t len, const char *lower)
{
    uint32_t wanted = (uint32_t)strlen(lower);
    if (len < wanted)
        return 0;
    for (uint32_t i = 0; i < wanted; i++)
        if (pando_http_lower(text[i]) != lower[i])
            return 0;
    return 1;
}

static int check_absolute(pando_http_parser *parser, const char *buffer, const char **reason)
{
    const char *target = buffer + parser->target.off;
    uint32_t pos = parser->target.off, end = pos + parser->target.len;

    if (begins_with(target, parser->target.len, "http://"))
        pos += 7;
    else if (begins_with(target, parser->target.len, "https://"))
        pos += 8, parser->https = 1;
    else
        return refuse(reason, "malformed target");

    uint32_t start = pos;
    while (pos < end && buffer[pos] != '/' && buffer[pos] != '?')
        pos++;
    /* "@" (userinfo, RFC 9110 section 4.2.4) is not a host character either. */
    if (!set_authority(parser, buffer, (pando_http_span){start, pos - start}))
        return refuse(reason, "malformed authority in the target");
    if (!split_path(parser, buffer, pos, end))
        return refuse(reason, "malformed target");
    parser->form = PANDO_HTTP_ABSOLUTE_FORM;
    return 0;
}

static int method_is(const pando_http_parser *parser, const char *buffer, const char *name)
{
    return parser->method.len == strlen(name) && memcmp(buffer + parser->method.off, name, parser->method.len) == 0;
}

static const pando_http_field *find_host(const pando_http_parser *parser)
{
    for (uint32_t i = 0; i < parser->field_count; i++)
        if (parser->fields[i].id == PANDO_HTTP_FIELD_HOST)
            return &parser->fields[i];
    return NULL;
}

/* RFC 9112 section 3.2: HTTP/1.1 requires one valid Host; an empty one is legal and names nothing. */
static int check_host(pando_http_parser *parser, const char *buffer, const char **reason)
{
    if (!parser->has_host)
        return parser->minor >= 1 ? refuse(reason, "Host is missing") : 0;
    const pando_http_field *field = find_host(parser);
    if (field->value.len > 0 && !set_authority(parser, buffer, field->value))
        return refuse(reason, "malformed Host");
    return 0;
}

int pando_http_check_target(pando_http_parser *parser, const char *buffer, const char **reason)
{
    const char *target = buffer + parser->target.off;
    uint32_t pos = parser->target.off, end = pos + parser->target.len;
    int status = check_host(parser, buffer, reason);
    if (status)
        return status;

    if (method_is(parser, buffer, "CONNECT")) {
        if (!set_authority(parser, buffer, parser->target) || parser->port.len == 0)
            return refuse(reason, "CONNECT wants host:port");
        parser->form = PANDO_HTTP_AUTHORITY_FORM;
        return 0;
    }
    if (target[0] == '/') {
        parser->form = PANDO_HTTP_ORIGIN_FORM;
        return split_path(parser, buffer, pos, end) ? 0 : refuse(reason, "malformed target");
    }
    if (target[0] == '*' && parser->target.len == 1) {
        if (!method_is(parser, buffer, "OPTIONS"))
            return refuse(reason, "only OPTIONS may ask for *");
        parser->form = PANDO_HTTP_ASTERISK_FORM;
        parser->path = parser->target;
        return 0;
    }
    /* RFC 9112 section 3.2.2: the target's authority replaces Host. */
    return check_absolute(parser, buffer, reason);
}
