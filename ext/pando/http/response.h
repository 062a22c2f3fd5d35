/* Rules for the names and values that an application puts into a response head. Used by workers. */
#ifndef PANDO_HTTP_RESPONSE_H
#define PANDO_HTTP_RESPONSE_H

#include <stddef.h>
#include <stdint.h>

/* Response fields that decide about framing, or that the server writes itself. */
enum {
    PANDO_HTTP_RESPONSE_OTHER,
    PANDO_HTTP_RESPONSE_CONTENT_LENGTH,
    PANDO_HTTP_RESPONSE_TRANSFER_ENCODING,
    PANDO_HTTP_RESPONSE_CONNECTION,
    PANDO_HTTP_RESPONSE_DATE,
    PANDO_HTTP_RESPONSE_HIDDEN /* "rack.*" and "status": not for the client */
};

/* A token, RFC 9110 section 5.1. */
int pando_http_name_valid(const char *name, size_t len);

/* Field content without CR, LF, NUL and other controls, RFC 9110 section 5.5. */
int pando_http_value_valid(const char *value, size_t len);

int pando_http_response_field(const char *name, size_t len);

/* Writes the line before a chunk's data, the size in hexadecimal and CRLF, and returns its length. */
#define PANDO_HTTP_CHUNK_LINE_MAX 18
size_t pando_http_chunk_line(uint64_t size, char line[PANDO_HTTP_CHUNK_LINE_MAX]);

#endif
