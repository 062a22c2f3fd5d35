/* The least rate, on a clock of its own: how long a client may go on that has been fast, for as long as the arguments
 * say: the timeout in milliseconds, the bytes that it moves at once, and those that it moves each second from then on.
 * Prints the milliseconds, or "welcome" after a day. */
#include "http/reactor_private.h"

#include <stdio.h>
#include <stdlib.h>

#define DAY 86400000u

int main(int count, char **arguments)
{
    static struct pando_reactor reactor;
    static struct pando_connection connection;
    if (count != 4)
        return 2;
    uint32_t allowance = (uint32_t)atoi(arguments[1]);
    uint64_t slow = strtoull(arguments[3], NULL, 10), began = reactor.now = 1000000;

    pando_reactor_pace_begin(&reactor, &connection);
    int welcome = pando_reactor_pace_moved(&reactor, &connection, strtoull(arguments[2], NULL, 10), allowance);
    while (welcome && reactor.now - began < DAY) {
        reactor.now += 1000;
        welcome = pando_reactor_pace_moved(&reactor, &connection, slow, allowance);
    }
    if (welcome)
        printf("welcome\n");
    else
        printf("%llu\n", (unsigned long long)(reactor.now - began));
    return 0;
}
