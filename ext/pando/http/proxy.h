/* The PROXY protocol, versions 1 and 2: the few bytes in which a proxy that
 * passes a connection on says where it came from, before anything of HTTP.
 * (HAProxy's "The PROXY protocol", sections 2.1 and 2.2.)
 *
 * It keeps no state: a call looks at all bytes that have come so far, which are
 * never many, and what it says does not depend on how they were cut. */
#ifndef PANDO_HTTP_PROXY_H
#define PANDO_HTTP_PROXY_H

#include <stddef.h>
#include <stdint.h>

#define PANDO_PROXY_V1_BYTES 107u  /* the longest line, its end included */
#define PANDO_PROXY_V2_BYTES 4096u /* ours: of the header with all that proxies add behind the addresses */

typedef enum { PANDO_PROXY_MORE, PANDO_PROXY_DONE, PANDO_PROXY_BAD } pando_proxy_result;

typedef struct {
    uint32_t bytes;   /* HTTP begins here */
    uint8_t local;    /* no address was given: the connection's own counts (LOCAL, UNKNOWN, UNSPEC) */
    uint16_t port;    /* of the client; 0 without an address */
    char address[48]; /* of the client, terminated; empty if local, or if he came by a UNIX socket */
} pando_proxy_header;

/* header is filled in if the answer is DONE. */
pando_proxy_result pando_proxy_parse(const char *bytes, size_t len, pando_proxy_header *header);

#endif
