/* The table of addresses beside a list that is too simple to be wrong: as many
 * random steps as the argument says. */
#include "http/reactor_addresses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PEOPLE 200
#define REQUIRE(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

static void fail(const char *condition, int line)
{
    fprintf(stderr, "addresses.c:%d: %s\n", line, condition);
    exit(1);
}

static int same(const char *one, const char *other)
{
    struct pando_address a = pando_address_of(one), b = pando_address_of(other);
    REQUIRE(a.count == 1 && b.count == 1);
    return a.network == b.network && a.family == b.family;
}

static void who_is_who(void)
{
    REQUIRE(same("192.0.2.1", "192.0.2.1") && !same("192.0.2.1", "192.0.2.2"));
    REQUIRE(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::9") && !same("2001:db8:1:2::1", "2001:db8:1:3::1"));
    REQUIRE(!same("0.0.0.0", "::"));
    REQUIRE(pando_address_of("").count == 0);
}

static void random_steps(long steps)
{
    struct pando_addresses table;
    uint32_t counts[PEOPLE] = {0}, others = 0;
    REQUIRE(pando_addresses_init(&table, PEOPLE / 2) == 0);
    for (long step = 0; step < steps; step++) {
        uint32_t who = (uint32_t)rand() % PEOPLE;
        struct pando_address one = {.network = who << 8, .family = who % 2 ? AF_INET : AF_INET6};
        if (rand() % 2) {
            uint32_t count = pando_addresses_add(&table, &one);
            if (count > 0) {
                others += counts[who] == 0;
                REQUIRE(count == ++counts[who]);
            } else {
                REQUIRE(counts[who] == 0 && others > table.mask / 2);
            }
        } else if (counts[who] > 0) {
            pando_addresses_remove(&table, &one);
            others -= --counts[who] == 0;
        }
        REQUIRE(table.used == others);
    }
    pando_addresses_drop(&table);
}

int main(int count, char **arguments)
{
    who_is_who();
    srand(count > 2 ? (unsigned)atoi(arguments[2]) : 1);
    random_steps(count > 1 ? atol(arguments[1]) : 1000);
    puts("all hold");
    return 0;
}
