/* The decoder for chunked bodies, see chunked.h. Runs in the reactor and in workers. Pure C. */
#include "chunked.h"
#include "chars.h"

#include <string.h>

#define PLAIN_DIGITS 8 /* of a size that is read in one step */

enum {
    STATE_SIZE,
    STATE_BEFORE_SEMICOLON, /* white space after the size or after an extension */
    STATE_BEFORE_EXT_NAME,
    STATE_EXT_NAME,
    STATE_AFTER_EXT_NAME, /* white space: "=", ";" or nothing else may follow */
    STATE_BEFORE_EXT_VALUE,
    STATE_EXT_VALUE,
    STATE_EXT_QUOTED,
    STATE_EXT_ESCAPED,
    STATE_EXT_END, /* after a quoted value */
    STATE_SIZE_LF,
    STATE_DATA,
    STATE_DATA_CR,
    STATE_DATA_LF,
    STATE_TRAILER,
    STATE_TRAILER_NAME,
    STATE_TRAILER_VALUE,
    STATE_TRAILER_LF,
    STATE_END_LF,
    STATE_DONE,
    STATE_ERROR
};

void pando_http_chunked_init(pando_http_chunked *chunked)
{
    memset(chunked, 0, sizeof(*chunked));
}

static int fail(pando_http_chunked *chunked, const char *reason)
{
    chunked->state = STATE_ERROR;
    chunked->reason = reason;
    return 0;
}

static int go(pando_http_chunked *chunked, uint8_t state)
{
    chunked->state = state;
    return 1;
}

static int is_space(char byte)
{
    return byte == ' ' || byte == '\t';
}

static int read_size(pando_http_chunked *chunked, char byte)
{
    if (pando_http_is(byte, PANDO_HTTP_HEX)) {
        if (chunked->digits++ == PANDO_HTTP_CHUNK_MAX_DIGITS)
            return fail(chunked, "chunk size too long");
        chunked->left = chunked->left << 4 | pando_http_hex(byte);
        return 1;
    }
    if (chunked->digits == 0)
        return fail(chunked, "malformed chunk size");
    if (byte == '\r')
        return go(chunked, STATE_SIZE_LF);
    if (byte == ';')
        return go(chunked, STATE_BEFORE_EXT_NAME);
    return is_space(byte) ? go(chunked, STATE_BEFORE_SEMICOLON) : fail(chunked, "malformed chunk size");
}

/* chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ), RFC 9112 section 7.1.1 */
static int read_extension(pando_http_chunked *chunked, char byte)
{
    if (chunked->extension_bytes++ == PANDO_HTTP_CHUNK_MAX_EXTENSIONS)
        return fail(chunked, "too many chunk extensions");

    switch (chunked->state) {
    case STATE_BEFORE_SEMICOLON:
        if (is_space(byte))
            return 1;
        return byte == ';' ? go(chunked, STATE_BEFORE_EXT_NAME) : fail(chunked, "malformed chunk size");
    case STATE_BEFORE_EXT_NAME:
        if (is_space(byte))
            return 1;
        if (pando_http_is(byte, PANDO_HTTP_TOKEN))
            return go(chunked, STATE_EXT_NAME);
        break;
    case STATE_EXT_NAME:
        if (pando_http_is(byte, PANDO_HTTP_TOKEN))
            return 1;
        if (byte == '\r')
            return go(chunked, STATE_SIZE_LF);
        if (is_space(byte))
            return go(chunked, STATE_AFTER_EXT_NAME);
        /* fall through */
    case STATE_AFTER_EXT_NAME:
        if (byte == '=')
            return go(chunked, STATE_BEFORE_EXT_VALUE);
        if (byte == ';')
            return go(chunked, STATE_BEFORE_EXT_NAME);
        if (is_space(byte))
            return 1;
        break;
    case STATE_BEFORE_EXT_VALUE:
        if (is_space(byte))
            return 1;
        if (byte == '"')
            return go(chunked, STATE_EXT_QUOTED);
        if (pando_http_is(byte, PANDO_HTTP_TOKEN))
            return go(chunked, STATE_EXT_VALUE);
        break;
    case STATE_EXT_VALUE:
        if (pando_http_is(byte, PANDO_HTTP_TOKEN))
            return 1;
        /* fall through */
    case STATE_EXT_END:
        if (byte == '\r')
            return go(chunked, STATE_SIZE_LF);
        if (byte == ';')
            return go(chunked, STATE_BEFORE_EXT_NAME);
        if (is_space(byte))
            return go(chunked, STATE_BEFORE_SEMICOLON);
        break;
    case STATE_EXT_QUOTED:
        if (byte == '"')
            return go(chunked, STATE_EXT_END);
        if (byte == '\\')
            return go(chunked, STATE_EXT_ESCAPED);
        if (pando_http_is(byte, PANDO_HTTP_VALUE))
            return 1;
        break;
    case STATE_EXT_ESCAPED:
        if (pando_http_is(byte, PANDO_HTTP_VALUE))
            return go(chunked, STATE_EXT_QUOTED);
        break;
    }
    return fail(chunked, "malformed chunk extension");
}

static int expect(pando_http_chunked *chunked, char byte, char wanted, uint8_t next)
{
    return byte == wanted ? go(chunked, next) : fail(chunked, "malformed end of line in the chunked body");
}

static int read_trailer(pando_http_chunked *chunked, char byte)
{
    if (chunked->state == STATE_TRAILER && byte == '\r') /* no field, but the end */
        return go(chunked, STATE_END_LF);
    if (chunked->trailer_bytes++ == PANDO_HTTP_CHUNK_MAX_TRAILERS)
        return fail(chunked, "trailer section too large");

    switch (chunked->state) {
    case STATE_TRAILER:
        if (pando_http_is(byte, PANDO_HTTP_TOKEN))
            return go(chunked, STATE_TRAILER_NAME);
        break;
    case STATE_TRAILER_NAME:
        if (pando_http_is(byte, PANDO_HTTP_TOKEN))
            return 1;
        if (byte == ':')
            return go(chunked, STATE_TRAILER_VALUE);
        break;
    case STATE_TRAILER_VALUE:
        if (pando_http_is(byte, PANDO_HTTP_VALUE))
            return 1;
        if (byte == '\r')
            return go(chunked, STATE_TRAILER_LF);
        break;
    case STATE_TRAILER_LF:
        return expect(chunked, byte, '\n', STATE_TRAILER);
    }
    return fail(chunked, "malformed trailer field");
}

static int end_size_line(pando_http_chunked *chunked, char byte)
{
    chunked->digits = 0;
    return expect(chunked, byte, '\n', chunked->left > 0 ? STATE_DATA : STATE_TRAILER);
}

static int read_control(pando_http_chunked *chunked, char byte)
{
    switch (chunked->state) {
    case STATE_SIZE:
        return read_size(chunked, byte);
    case STATE_SIZE_LF:
        return end_size_line(chunked, byte);
    case STATE_DATA_CR:
        return expect(chunked, byte, '\r', STATE_DATA_LF);
    case STATE_DATA_LF:
        return expect(chunked, byte, '\n', STATE_SIZE);
    case STATE_END_LF:
        return expect(chunked, byte, '\n', STATE_DONE);
    case STATE_TRAILER:
    case STATE_TRAILER_NAME:
    case STATE_TRAILER_VALUE:
    case STATE_TRAILER_LF:
        return read_trailer(chunked, byte);
    default:
        return read_extension(chunked, byte);
    }
}

pando_http_chunk_result pando_http_chunked_next(pando_http_chunked *chunked, const char *input, size_t len,
                                                size_t *used)
{
    chunked->data_off = chunked->data_len = 0;
    while (chunked->state != STATE_DONE) {
        if (chunked->state == STATE_ERROR)
            return PANDO_HTTP_CHUNK_ERROR;
        if (*used >= len)
            return PANDO_HTTP_CHUNK_MORE;
        if (chunked->state == STATE_DATA) {
            size_t available = len - *used;
            chunked->data_off = *used;
            chunked->data_len = available < chunked->left ? available : (size_t)chunked->left;
            chunked->left -= chunked->data_len;
            *used += chunked->data_len;
            if (chunked->left == 0)
                chunked->state = STATE_DATA_CR;
            return PANDO_HTTP_CHUNK_DATA;
        }
        if (read_control(chunked, input[*used]))
            (*used)++;
    }
    return PANDO_HTTP_CHUNK_DONE;
}

/* The fast path: reads the end of the last chunk and the usual size line in one step. Returns the bytes read. 0: the
 * line is unusual or incomplete, and is read byte by byte. */
static size_t read_plain_size(pando_http_chunked *chunked, const char *at, size_t len)
{
    size_t from = chunked->state == STATE_DATA_CR ? 2 : 0, digits = 0;
    uint64_t size = 0;
    if (from == 0 && (chunked->state != STATE_SIZE || chunked->digits > 0))
        return 0;
    if (len <= from || (from && (at[0] != '\r' || at[1] != '\n')))
        return 0;
    at += from;
    len -= from;
    for (; digits < len && digits < PLAIN_DIGITS && pando_http_is(at[digits], PANDO_HTTP_HEX); digits++)
        size = size << 4 | pando_http_hex(at[digits]);
    if (size == 0 || len - digits < 2 || at[digits] != '\r' || at[digits + 1] != '\n')
        return 0;
    chunked->left = size;
    chunked->state = STATE_DATA;
    return from + digits + 2;
}

pando_http_chunk_result pando_http_chunked_gather(pando_http_chunked *chunked, const char *input, size_t len,
                                                  size_t *used, char *output, size_t *bytes)
{
    for (;;) {
        *used += read_plain_size(chunked, input + *used, len - *used);
        pando_http_chunk_result result = pando_http_chunked_next(chunked, input, len, used);
        if (result != PANDO_HTTP_CHUNK_DATA)
            return result;
        const char *data = input + chunked->data_off;
        char *place = output + *bytes;
        if (chunked->data_len == 1)
            *place = *data; /* a call would cost more than the byte */
        else if (place != data)
            memmove(place, data, chunked->data_len);
        *bytes += chunked->data_len;
    }
}

uint64_t pando_http_chunked_announced(const pando_http_chunked *chunked)
{
    return chunked->state == STATE_DATA ? chunked->left : 0;
}
