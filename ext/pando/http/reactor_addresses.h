/* Counts the connections of each client address, in a hash table of fixed size. Used by the reactor. An IPv6 client
 * usually has a whole network, so only the first 64 bits count. */
#ifndef PANDO_HTTP_REACTOR_ADDRESSES_H
#define PANDO_HTTP_REACTOR_ADDRESSES_H

#include <stdint.h>

struct pando_address {
    uint64_t network;                   /* IPv4: the address; IPv6: its first half */
    uint32_t family;
    uint32_t count;                     /* 0: the entry is free */
};

struct pando_addresses {
    struct pando_address *entries;      /* NULL: addresses are not counted */
    uint32_t mask, used;
    uint64_t seed;                      /* so that nobody can choose addresses that collide */
};

/* The counted part of a client's address, given as inet_ntop writes it; count is 0 if the client has no address, as
 * on a UNIX socket. */
struct pando_address pando_address_of(const char *remote);

/* Room for `most` addresses at once, up to a limit. 0, or -1: no memory. */
int pando_addresses_init(struct pando_addresses *addresses, uint32_t most);
void pando_addresses_drop(struct pando_addresses *addresses);
/* Adds a connection and returns how many the address has now. 0: no room to count it; do not remove it later. */
uint32_t pando_addresses_add(struct pando_addresses *addresses, const struct pando_address *address);
/* Removes a connection that was added. */
void pando_addresses_remove(struct pando_addresses *addresses, const struct pando_address *address);

#endif
