/* A peer's address as text. Used by the reactor and by workers. An IPv4-mapped IPv6 address is written as IPv4 (RFC
 * 4291 section 2.5.5.2). */
#ifndef PANDO_HTTP_ADDRESS_H
#define PANDO_HTTP_ADDRESS_H

#include <stddef.h>
#include <sys/socket.h>

/* 1; 0 and an empty text if it is neither an IPv4 nor an IPv6 address, or does not fit. */
int pando_http_address_text(int family, const void *address, char *text, size_t size);
/* The same for an address that accept(2) filled in. */
int pando_http_peer_text(const struct sockaddr_storage *peer, char *text, size_t size);

#endif
