/* Checks response fields and writes chunk size lines, see response.h. Runs in workers. Pure C. */
#include "response.h"
#include "chars.h"

#include <string.h>

static int only(const char *text, size_t len, int classes)
{
    for (size_t i = 0; i < len; i++)
        if (!pando_http_is(text[i], classes))
            return 0;
    return 1;
}

int pando_http_name_valid(const char *name, size_t len)
{
    return len > 0 && only(name, len, PANDO_HTTP_TOKEN);
}

int pando_http_value_valid(const char *value, size_t len)
{
    return only(value, len, PANDO_HTTP_VALUE);
}

static int equals(const char *text, const char *lower, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (pando_http_lower(text[i]) != lower[i])
            return 0;
    return 1;
}

int pando_http_response_field(const char *name, size_t len)
{
    if (len > 5 && equals(name, "rack.", 5))
        return PANDO_HTTP_RESPONSE_HIDDEN;
    switch (len) {
    case 4:
        return equals(name, "date", len) ? PANDO_HTTP_RESPONSE_DATE : PANDO_HTTP_RESPONSE_OTHER;
    case 6:
        return equals(name, "status", len) ? PANDO_HTTP_RESPONSE_HIDDEN : PANDO_HTTP_RESPONSE_OTHER;
    case 10:
        return equals(name, "connection", len) || equals(name, "keep-alive", len) ? PANDO_HTTP_RESPONSE_CONNECTION
                                                                                  : PANDO_HTTP_RESPONSE_OTHER;
    case 14:
        return equals(name, "content-length", len) ? PANDO_HTTP_RESPONSE_CONTENT_LENGTH : PANDO_HTTP_RESPONSE_OTHER;
    case 17:
        return equals(name, "transfer-encoding", len) ? PANDO_HTTP_RESPONSE_TRANSFER_ENCODING
                                                      : PANDO_HTTP_RESPONSE_OTHER;
    default:
        return PANDO_HTTP_RESPONSE_OTHER;
    }
}

size_t pando_http_chunk_line(uint64_t size, char line[PANDO_HTTP_CHUNK_LINE_MAX])
{
    static const char digits[] = "0123456789abcdef";
    size_t len = 1;
    for (uint64_t rest = size >> 4; rest > 0; rest >>= 4)
        len++;
    for (size_t i = len; i > 0; i--, size >>= 4)
        line[i - 1] = digits[size & 15];
    line[len] = '\r';
    line[len + 1] = '\n';
    return len + 2;
}
