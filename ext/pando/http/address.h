/* A peer's address as text. An IPv4 address that an IPv6 one maps is one (RFC 4291 section 2.5.5.2). */
#ifndef PANDO_HTTP_ADDRESS_H
#define PANDO_HTTP_ADDRESS_H

#include <stddef.h>
#include <sys/socket.h>

/* 1; 0 and an empty text if it is neither an IPv4 nor an IPv6 address, or has no room. */
int pando_http_address_text(int family, const void *address, char *text, size_t size);
/* The same for what accept(2) fills in. */
int pando_http_peer_text(const struct sockaddr_storage *peer, char *text, size_t size);

#endif
