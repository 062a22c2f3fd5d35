/* The table of client addresses, see reactor_addresses.h. Runs in the reactor. */
#include "reactor_addresses.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

#define SMALLEST 64u
#define LARGEST (1u << 20) /* entries: 16 MiB, of which only used pages take memory */

struct pando_address pando_address_of(const char *remote)
{
    struct pando_address address = {.count = 1};
    uint64_t halves[2] = {0, 0};
    if (inet_pton(AF_INET, remote, halves) == 1)
        address.family = AF_INET;
    else if (inet_pton(AF_INET6, remote, halves) == 1)
        address.family = AF_INET6;
    else
        address.count = 0;
    address.network = halves[0];
    return address;
}

int pando_addresses_init(struct pando_addresses *addresses, uint32_t most)
{
    uint32_t size = SMALLEST;
    while (size < LARGEST && size / 2 < most)
        size *= 2;
    addresses->entries = calloc(size, sizeof(*addresses->entries));
    addresses->mask = size - 1;
    addresses->used = 0;
    if (getrandom(&addresses->seed, sizeof(addresses->seed), GRND_NONBLOCK) != sizeof(addresses->seed))
        addresses->seed = (uintptr_t)addresses->entries;
    return addresses->entries ? 0 : -1;
}

void pando_addresses_drop(struct pando_addresses *addresses)
{
    free(addresses->entries);
    addresses->entries = NULL;
}

/* Where the search for an address begins. The hash: multiply and fold, twice. */
static uint32_t home(const struct pando_addresses *addresses, const struct pando_address *address)
{
    uint64_t mixed = (address->network ^ addresses->seed) + address->family;
    mixed = (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ addresses->seed >> 7 ^ mixed >> 29) * 0xd6e8feb86659fd93u;
    return (uint32_t)(mixed >> 32) & addresses->mask;
}

static struct pando_address *find(const struct pando_addresses *addresses, const struct pando_address *address)
{
    uint32_t place = home(addresses, address);
    struct pando_address *entry = &addresses->entries[place];
    while (entry->count > 0 && (entry->network != address->network || entry->family != address->family))
        entry = &addresses->entries[place = (place + 1) & addresses->mask];
    return entry;
}

uint32_t pando_addresses_add(struct pando_addresses *addresses, const struct pando_address *address)
{
    struct pando_address *entry = find(addresses, address);
    if (entry->count == 0) {
        if (addresses->used > addresses->mask - addresses->mask / 4) /* a full table would make a search endless */
            return 0;
        addresses->used++;
        entry->network = address->network;
        entry->family = address->family;
    }
    return ++entry->count;
}

/* Closes the gap, so that no search ends at it too early: an entry whose home is not between gap and place moves up. */
static void close_gap(struct pando_addresses *addresses, uint32_t gap)
{
    uint32_t mask = addresses->mask, place = gap;
    while (addresses->entries[place = (place + 1) & mask].count > 0) {
        uint32_t wanted = home(addresses, &addresses->entries[place]);
        if (((place - wanted) & mask) < ((place - gap) & mask))
            continue;
        addresses->entries[gap] = addresses->entries[place];
        gap = place;
    }
    addresses->entries[gap] = (struct pando_address){0};
}

void pando_addresses_remove(struct pando_addresses *addresses, const struct pando_address *address)
{
    struct pando_address *entry = find(addresses, address);
    if (entry->count == 0 || --entry->count > 0)
        return;
    addresses->used--;
    close_gap(addresses, (uint32_t)(entry - addresses->entries));
}
