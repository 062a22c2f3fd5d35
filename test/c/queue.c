/* The reactor's queue: clients take turns, and whoever has most in it goes without its newest. */
#include "http/reactor_private.h"
#include "require.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS 3000

static struct pando_queue queue;
static struct pando_connection *connections;

static struct pando_connection *of(size_t number, const char *remote)
{
    struct pando_connection *connection = &connections[number];
    memset(connection, 0, sizeof(*connection));
    pando_list_init(&connection->queued);
    connection->origin = pando_address_of(remote);
    return connection;
}

static void push(size_t number, const char *remote)
{
    REQUIRE(pando_queue_push(&queue, of(number, remote)) == 0);
}

static void shifts(size_t number)
{
    REQUIRE(pando_queue_shift(&queue) == &connections[number]);
}

static void is_empty(void)
{
    REQUIRE(queue.count == 0 && queue.heaviest == 0 && !pando_queue_shift(&queue));
    REQUIRE(pando_list_empty(&queue.turns));
    for (size_t i = 0; i < PANDO_QUEUE_BUCKETS; i++) REQUIRE(!queue.clients[i]);
}

static void clients_take_turns(void)
{
    for (size_t i = 0; i < 4; i++) push(i, "192.0.2.1");
    push(4, "192.0.2.2");
    push(5, "2001:db8::1");
    push(6, "2001:db8:0:0:ffff::2"); /* of the same network */
    push(7, "");
    shifts(0), shifts(4), shifts(5), shifts(7);
    push(8, "192.0.2.2");
    shifts(1), shifts(6), shifts(8), shifts(2), shifts(3);
    is_empty();
}

static void what_was_taken_back_comes_first(void)
{
    push(0, "192.0.2.1");
    push(1, "192.0.2.2");
    push(2, "192.0.2.2");
    REQUIRE(pando_queue_push_back(&queue, of(3, "192.0.2.2")) == 0);
    REQUIRE(pando_queue_push_back(&queue, of(4, "192.0.2.3")) == 0);
    shifts(4), shifts(3), shifts(0), shifts(1), shifts(2);
    is_empty();
}

static void whoever_goes_leaves_its_place(void)
{
    for (size_t i = 0; i < 6; i++) push(i, i % 2 ? "192.0.2.1" : "192.0.2.2");
    pando_queue_remove(&queue, &connections[0]);
    pando_queue_remove(&queue, &connections[3]);
    shifts(2), shifts(1), shifts(4), shifts(5);
    is_empty();
}

static void the_one_with_most_goes_without_its_newest(void)
{
    REQUIRE(!pando_queue_victim(&queue, of(9, "192.0.2.9")));
    push(0, "192.0.2.1");
    REQUIRE(!pando_queue_victim(&queue, of(9, "192.0.2.9"))); /* it would have as many */
    push(1, "192.0.2.1");
    push(2, "192.0.2.2");
    REQUIRE(pando_queue_victim(&queue, of(9, "192.0.2.9")) == &connections[1]);
    REQUIRE(!pando_queue_victim(&queue, of(9, "192.0.2.1"))); /* that would be its own */
    REQUIRE(!pando_queue_victim(&queue, of(9, "192.0.2.2")));
    push(3, "192.0.2.1");
    REQUIRE(pando_queue_victim(&queue, of(9, "192.0.2.2")) == &connections[3]);
    shifts(0), shifts(2), shifts(1), shifts(3);
    is_empty();
}

/* Against what a search would find. */
static void counts_hold(void)
{
    uint32_t waiting[300] = {0}, owner[CONNECTIONS], queued = 0;
    unsigned seed = 7;
    char remote[48];
    for (int step = 0; step < 200000; step++) {
        size_t number = (size_t)rand_r(&seed) % CONNECTIONS;
        struct pando_connection *connection = &connections[number];
        if (connection->client && rand_r(&seed) % 3) {
            pando_queue_remove(&queue, connection);
        } else if (!connection->client) {
            uint32_t client = (uint32_t)rand_r(&seed) % (rand_r(&seed) % 2 ? 300 : 3);
            snprintf(remote, sizeof(remote), "10.0.%u.%u", client / 256, client % 256);
            push(number, remote);
            owner[number] = client;
            waiting[client]++, queued++;
            continue;
        } else {
            connection = pando_queue_shift(&queue);
        }
        waiting[owner[connection - connections]]--, queued--;
        uint32_t most = 0;
        for (size_t i = 0; i < 300; i++) most = waiting[i] > most ? waiting[i] : most;
        REQUIRE(queue.count == queued && queue.heaviest == (most < queue.most ? most : queue.most));
    }
    while (pando_queue_shift(&queue)) continue;
    is_empty();
}

int main(void)
{
    connections = calloc(CONNECTIONS, sizeof(*connections));
    REQUIRE(connections && pando_queue_init(&queue, 100) == 0);
    clients_take_turns();
    what_was_taken_back_comes_first();
    whoever_goes_leaves_its_place();
    the_one_with_most_goes_without_its_newest();
    counts_hold();
    pando_queue_drop(&queue);
    free(connections);
    puts("all hold");
    return 0;
}
