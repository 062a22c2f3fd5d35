/* Checks host names and ports, see host.h. Runs in the reactor and in workers. Pure C. */
#include "host.h"
#include "chars.h"

/* Reads one decimal octet without leading zeros; returns the number of its digits, or 0. */
static size_t octet_length(const char *text, size_t len)
{
    unsigned value = 0;
    size_t digits = 0;
    while (digits < len && digits < 3 && pando_http_is(text[digits], PANDO_HTTP_DIGIT)) {
        value = value * 10 + (unsigned)(text[digits] - '0');
        digits++;
    }
    if (value > 255 || (digits > 1 && text[0] == '0'))
        return 0;
    return digits;
}

static int ipv4_valid(const char *text, size_t len)
{
    size_t pos = 0;
    for (int octet = 0; octet < 4; octet++) {
        if (octet > 0 && (pos >= len || text[pos++] != '.'))
            return 0;
        size_t digits = octet_length(text + pos, len - pos);
        if (digits == 0)
            return 0;
        pos += digits;
    }
    return pos == len;
}

static int has_dot(const char *text, size_t len)
{
    for (size_t i = 0; i < len && text[i] != ':'; i++)
        if (text[i] == '.')
            return 1;
    return 0;
}

/* RFC 3986 section 3.2.2: eight groups, or fewer with one "::"; the last two may be an IPv4 address. */
static int ipv6_valid(const char *text, size_t len)
{
    size_t pos = 0;
    int groups = 0, elided = 0;

    if (len >= 2 && text[0] == ':' && text[1] == ':') {
        elided = 1;
        pos = 2;
    }
    while (pos < len) {
        if (has_dot(text + pos, len - pos)) {
            if (!ipv4_valid(text + pos, len - pos))
                return 0;
            groups += 2;
            break;
        }
        size_t digits = 0;
        while (pos < len && digits < 4 && pando_http_is(text[pos], PANDO_HTTP_HEX)) {
            digits++;
            pos++;
        }
        if (digits == 0 || ++groups > 8)
            return 0;
        if (pos == len)
            break;
        if (text[pos++] != ':' || pos == len)
            return 0;
        if (text[pos] == ':') {
            if (elided)
                return 0;
            elided = 1;
            pos++;
        }
    }
    return elided ? groups <= 7 : groups == 8;
}

/* IPvFuture: "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" ) */
static int ipvfuture_valid(const char *text, size_t len)
{
    size_t pos = 1;
    while (pos < len && pando_http_is(text[pos], PANDO_HTTP_HEX))
        pos++;
    if (pos == 1 || pos >= len || text[pos] != '.' || pos + 1 == len)
        return 0;
    for (pos++; pos < len; pos++)
        if (text[pos] != ':' && !pando_http_is(text[pos], PANDO_HTTP_HOST))
            return 0;
    return 1;
}

static size_t literal_length(const char *text, size_t len)
{
    size_t end = 1;
    while (end < len && text[end] != ']')
        end++;
    if (end >= len)
        return 0;
    const char *inside = text + 1;
    size_t inside_len = end - 1;
    if (inside_len == 0)
        return 0;
    int valid = inside[0] == 'v' || inside[0] == 'V' ? ipvfuture_valid(inside, inside_len)
                                                     : ipv6_valid(inside, inside_len);
    return valid ? end + 1 : 0;
}

static size_t name_length(const char *text, size_t len)
{
    size_t pos = 0;
    while (pos < len && text[pos] != ':') {
        if (text[pos] == '%') {
            if (len - pos < 3 || !pando_http_is(text[pos + 1], PANDO_HTTP_HEX) ||
                !pando_http_is(text[pos + 2], PANDO_HTTP_HEX))
                return 0;
            pos += 3;
        } else if (pando_http_is(text[pos], PANDO_HTTP_HOST)) {
            pos++;
        } else {
            return 0;
        }
    }
    return pos;
}

int pando_http_authority_parse(const char *text, size_t len, pando_http_authority *parts)
{
    parts->port_off = parts->port_len = 0;
    parts->host_len = len > 0 && text[0] == '[' ? literal_length(text, len) : name_length(text, len);
    if (parts->host_len == 0)
        return 0;
    if (parts->host_len == len)
        return 1;
    if (text[parts->host_len] != ':')
        return 0;

    unsigned port = 0;
    for (size_t pos = parts->host_len + 1; pos < len; pos++) {
        if (!pando_http_is(text[pos], PANDO_HTTP_DIGIT))
            return 0;
        port = port * 10 + (unsigned)(text[pos] - '0');
        if (port > 65535)
            return 0;
    }
    if (parts->host_len + 1 < len) {
        parts->port_off = parts->host_len + 1;
        parts->port_len = len - parts->port_off;
    }
    return 1;
}
