/* An incremental decoder for the chunked transfer coding (RFC 9112 section 7.1). Runs in the reactor and in workers.
 *
 * It allocates nothing: a call says which part of the input is body data, or joins all of it. It checks and bounds
 * extensions and trailer fields, and drops them. */
#ifndef PANDO_HTTP_CHUNKED_H
#define PANDO_HTTP_CHUNKED_H

#include <stddef.h>
#include <stdint.h>

#define PANDO_HTTP_CHUNK_MAX_DIGITS 15      /* of a size: below 2^60, so that no sum overflows */
#define PANDO_HTTP_CHUNK_MAX_EXTENSIONS 8192 /* bytes, in the whole body */
#define PANDO_HTTP_CHUNK_MAX_TRAILERS 8192   /* bytes of trailer fields, including the ends of lines */

typedef enum {
    PANDO_HTTP_CHUNK_MORE,  /* all input is used */
    PANDO_HTTP_CHUNK_DATA,  /* data_off and data_len are body; call again with the rest */
    PANDO_HTTP_CHUNK_DONE,  /* the body has ended; used is where the next request begins */
    PANDO_HTTP_CHUNK_ERROR
} pando_http_chunk_result;

typedef struct {
    uint64_t left; /* bytes of the current chunk still to come; while its digits are being read, its size so far */
    uint32_t extension_bytes;
    uint32_t trailer_bytes;
    uint8_t digits;
    uint8_t state;

    size_t data_off; /* into the input of the last call */
    size_t data_len;
    const char *reason; /* after an error: a constant English phrase */
} pando_http_chunked;

void pando_http_chunked_init(pando_http_chunked *chunked);

/* Reads input from *used on and advances *used. */
pando_http_chunk_result pando_http_chunked_next(pando_http_chunked *chunked, const char *input, size_t len,
                                                size_t *used);

/* Writes all data of input from *used on to output, and adds its size to *bytes. output may be input, for output
 * never overtakes input. Never returns PANDO_HTTP_CHUNK_DATA. */
pando_http_chunk_result pando_http_chunked_gather(pando_http_chunked *chunked, const char *input, size_t len,
                                                  size_t *used, char *output, size_t *bytes);

/* Bytes of the current chunk still to come, known once its size line is complete. */
uint64_t pando_http_chunked_announced(const pando_http_chunked *chunked);

#endif
