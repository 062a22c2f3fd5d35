/* An incremental parser for the head of an HTTP/1.x request (RFC 9112). Runs in the reactor and in workers.
 *
 * It allocates nothing and copies nothing: the caller owns one growing buffer that begins at the request's first
 * byte, and an array of fields; the result is offsets into that buffer. The buffer may move between two calls, its
 * contents may not change. What the parser accepts does not depend on how the bytes were split over calls. Where RFC
 * 9112 leaves a choice between repairing and refusing, the parser refuses. */
#ifndef PANDO_HTTP_PARSER_H
#define PANDO_HTTP_PARSER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t off;
    uint32_t len;
} pando_http_span;

/* Fields that the parser understands; all others are PANDO_HTTP_OTHER. */
enum {
    PANDO_HTTP_OTHER,
    PANDO_HTTP_FIELD_HOST,
    PANDO_HTTP_FIELD_CONTENT_LENGTH,
    PANDO_HTTP_FIELD_TRANSFER_ENCODING,
    PANDO_HTTP_FIELD_CONNECTION,
    PANDO_HTTP_FIELD_EXPECT,
    PANDO_HTTP_FIELD_FORWARDED /* X-Forwarded-For, -Proto or -Ssl */
};

typedef struct {
    pando_http_span name;
    pando_http_span value; /* without surrounding white space */
    uint8_t id;
} pando_http_field;

typedef struct {
    uint32_t max_head;   /* bytes from the first one to the empty line, at most PANDO_HTTP_HEAD_CEILING */
    uint32_t max_target; /* bytes of the request target */
    uint32_t max_fields; /* the capacity of the array of fields */
} pando_http_limits;

#define PANDO_HTTP_HEAD_CEILING (16u << 20)
#define PANDO_HTTP_MAX_METHOD 32
#define PANDO_HTTP_MAX_BLANK_LINES 2

typedef enum { PANDO_HTTP_MORE, PANDO_HTTP_DONE, PANDO_HTTP_ERROR } pando_http_result;

typedef enum {
    PANDO_HTTP_ORIGIN_FORM,   /* /path?query */
    PANDO_HTTP_ABSOLUTE_FORM, /* http://host/path?query */
    PANDO_HTTP_AUTHORITY_FORM, /* host:port, CONNECT only */
    PANDO_HTTP_ASTERISK_FORM  /* *, OPTIONS only */
} pando_http_form;

typedef enum { PANDO_HTTP_NO_BODY, PANDO_HTTP_SIZED_BODY, PANDO_HTTP_CHUNKED_BODY } pando_http_body;

typedef struct {
    pando_http_limits limits;
    pando_http_field *fields;

    /* the state of the scan */
    uint32_t pos;
    uint32_t mark; /* start of the token, value or version being read */
    uint8_t state;
    uint8_t blank_lines;

    /* the result, valid after PANDO_HTTP_DONE */
    uint32_t field_count;
    uint32_t head_len; /* the body begins here */
    pando_http_span method;
    pando_http_span target;
    pando_http_span path;      /* empty for http://host and for authority-form */
    pando_http_span query;     /* without the "?" */
    pando_http_span host;      /* from the target or from Host, brackets included; may be empty */
    pando_http_span port;
    pando_http_span authority; /* the target's authority, or the value of Host */
    pando_http_form form;
    pando_http_body body;
    uint64_t content_length; /* of a sized body */
    uint8_t minor;           /* as sent; any minor above 1 means 1 */
    uint8_t https;           /* an absolute-form target names the scheme https */
    uint8_t has_length;
    uint8_t has_host;
    uint8_t close;           /* Connection: close */
    uint8_t keep_alive;      /* Connection: keep-alive */
    uint8_t upgrade;         /* Connection: upgrade */
    uint8_t expect_continue;
    uint8_t forwarded;       /* a proxy (or anyone) says which client it speaks for */

    /* after PANDO_HTTP_ERROR */
    uint16_t status;    /* the status that the request deserves */
    const char *reason; /* a constant English phrase for a log */

    /* the transfer codings seen so far */
    uint8_t codings;
    uint8_t chunked_last;
    uint8_t chunked_seen;
} pando_http_parser;

void pando_http_parser_init(pando_http_parser *parser, pando_http_limits limits, pando_http_field *fields);

/* Prepares for the next request with the same limits and fields. */
void pando_http_parser_reset(pando_http_parser *parser);

/* Continues where the last call stopped; len is the length of the whole buffer. After DONE or ERROR every further
 * call returns the same. */
pando_http_result pando_http_parser_run(pando_http_parser *parser, const char *buffer, size_t len);

#endif
