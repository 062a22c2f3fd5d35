/* Character classes of RFC 9110 and RFC 3986, one table look-up for each byte. Used by the parser, in the reactor and
 * in workers. */
#ifndef PANDO_HTTP_CHARS_H
#define PANDO_HTTP_CHARS_H

#include <stdint.h>

enum {
    PANDO_HTTP_TOKEN = 1,  /* tchar, RFC 9110 section 5.6.2 */
    PANDO_HTTP_PATH = 2,   /* pchar and "/", without "%"; also [ ] | which browsers send unescaped */
    PANDO_HTTP_QUERY = 4,  /* query characters and "%"; also [ ] { } | \ ^ ` as above */
    PANDO_HTTP_VALUE = 8,  /* field-vchar, SP and HTAB, RFC 9110 section 5.5 */
    PANDO_HTTP_HOST = 16,  /* reg-name without "%", RFC 3986 section 3.2.2 */
    PANDO_HTTP_HEX = 32,
    PANDO_HTTP_DIGIT = 64
};

extern const uint8_t pando_http_chars[256];

static inline int pando_http_is(char byte, int classes)
{
    return pando_http_chars[(uint8_t)byte] & classes;
}

static inline char pando_http_lower(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

/* The value of a hexadecimal digit; the caller has checked its class. */
static inline unsigned pando_http_hex(char byte)
{
    return byte <= '9' ? (unsigned)(byte - '0') : (unsigned)((byte | 0x20) - 'a' + 10);
}

#endif
