/* Checks uri-host [ ":" port ]: the value of Host and the authority of a target. Private to the parser, in the
 * reactor and in workers. */
#ifndef PANDO_HTTP_HOST_H
#define PANDO_HTTP_HOST_H

#include <stddef.h>

typedef struct {
    size_t host_len; /* including the brackets of an IP literal */
    size_t port_off; /* 0 if there is no port, or an empty one */
    size_t port_len;
} pando_http_authority;

/* 1 and the parts if text is a host with an optional port, else 0. RFC 9110 section 7.2, RFC 3986 section 3.2. An
 * empty host is refused. */
int pando_http_authority_parse(const char *text, size_t len, pando_http_authority *parts);

#endif
