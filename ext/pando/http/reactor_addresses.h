/* How many connections each address has: a hash table of one size, made once.
 * An IPv6 client owns a network, so its first 64 bits are what counts. */
#ifndef PANDO_HTTP_REACTOR_ADDRESSES_H
#define PANDO_HTTP_REACTOR_ADDRESSES_H

#include <stdint.h>

struct pando_address {
    uint64_t network;                   /* IPv4: the address; IPv6: its first half */
    uint32_t family;
    uint32_t count;                     /* 0: nobody; the entry is free */
};

struct pando_addresses {
    struct pando_address *entries;      /* NULL: nothing is counted */
    uint32_t mask, used;
    uint64_t seed;                      /* nobody can choose addresses that meet in the table */
};

/* The part of a client's address that is counted, from the address as inet_ntop writes it; count is 0 if the client has
 * none, as on a UNIX socket. */
struct pando_address pando_address_of(const char *remote);

/* For as many addresses at once, within reason. 0, or -1: no memory. */
int pando_addresses_init(struct pando_addresses *addresses, uint32_t most);
void pando_addresses_drop(struct pando_addresses *addresses);
/* One connection more: how many it has now. 0: there is no room to count it; do not take it away again. */
uint32_t pando_addresses_add(struct pando_addresses *addresses, const struct pando_address *address);
/* One connection less, of those that were added. */
void pando_addresses_remove(struct pando_addresses *addresses, const struct pando_address *address);

#endif
