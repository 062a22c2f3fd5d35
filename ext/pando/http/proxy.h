/* The PROXY protocol, versions 1 and 2: a header in which a proxy that passes a connection on says where it came
 * from, before any HTTP. (HAProxy's "The PROXY protocol", sections 2.1 and 2.2.) Runs in the reactor and in workers.
 *
 * The parser keeps no state: a call looks at all bytes received so far, which are never many, and the result does not
 * depend on how they were split. */
#ifndef PANDO_HTTP_PROXY_H
#define PANDO_HTTP_PROXY_H

#include <stddef.h>
#include <stdint.h>

#define PANDO_PROXY_V1_BYTES 107u  /* the longest line, including its end */
#define PANDO_PROXY_V2_BYTES 4096u /* our limit for a header with the TLVs that proxies append */

typedef enum { PANDO_PROXY_MORE, PANDO_PROXY_DONE, PANDO_PROXY_BAD } pando_proxy_result;

typedef struct {
    uint32_t bytes;   /* HTTP begins here */
    uint8_t local;    /* no address was given: use the connection's own (LOCAL, UNKNOWN, UNSPEC) */
    uint16_t port;    /* of the client; 0 without an address */
    char address[48]; /* of the client, terminated; empty if local, or if it came by a UNIX socket */
} pando_proxy_header;

/* Fills in header if it returns DONE. */
pando_proxy_result pando_proxy_parse(const char *bytes, size_t len, pando_proxy_header *header);

#endif
