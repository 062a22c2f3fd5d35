/* The request queue, see reactor_queue.h. Runs in the reactor. */
#include "reactor_queue.h"

#include "reactor_private.h"

#include <stdlib.h>
#include <sys/random.h>

#define MOST 65536u /* requests of one client that are counted exactly */

int pando_queue_init(struct pando_queue *queue, uint32_t limit)
{
    pando_list_init(&queue->turns);
    queue->most = limit < 1 ? 1 : limit > MOST ? MOST : limit;
    queue->by_count = calloc(queue->most + 1, sizeof(*queue->by_count));
    if (getrandom(&queue->seed, sizeof(queue->seed), GRND_NONBLOCK) != sizeof(queue->seed))
        queue->seed = (uintptr_t)queue->by_count;
    return queue->by_count ? 0 : -1;
}

void pando_queue_drop(struct pando_queue *queue)
{
    while (queue->spare) {
        struct pando_queue_client *first = queue->spare;
        queue->spare = first->next;
        free(first);
    }
    free(queue->by_count);
    queue->by_count = NULL;
}

/* --- clients --- */

/* A hash: multiply and fold, twice. */
static struct pando_queue_client **chain_of(struct pando_queue *queue, uint64_t network, uint32_t family)
{
    uint64_t mixed = (network ^ queue->seed) + family;
    mixed = (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ queue->seed >> 7 ^ mixed >> 29) * 0xd6e8feb86659fd93u;
    return &queue->clients[(uint32_t)(mixed >> 32) % PANDO_QUEUE_BUCKETS];
}

static struct pando_queue_client *find(const struct pando_queue *queue, const struct pando_address *origin)
{
    struct pando_queue_client *client =
        *chain_of((struct pando_queue *)(uintptr_t)queue, origin->network, origin->family);
    while (client && (client->network != origin->network || client->family != origin->family))
        client = client->next;
    return client;
}

static struct pando_queue_client *allocate(struct pando_queue *queue)
{
    struct pando_queue_client *client = queue->spare;
    if (!client)
        return malloc(sizeof(*client));
    queue->spare = client->next;
    return client;
}

static struct pando_queue_client *find_or_add(struct pando_queue *queue, const struct pando_address *origin)
{
    struct pando_queue_client *client = find(queue, origin);
    if (client || !(client = allocate(queue)))
        return client;
    struct pando_queue_client **chain = chain_of(queue, origin->network, origin->family);
    *client = (struct pando_queue_client){.network = origin->network, .family = origin->family, .next = *chain};
    pando_list_init(&client->peers);
    pando_list_init(&client->requests);
    pando_list_init(&client->turn);
    *chain = client;
    return client;
}

static void leave(struct pando_queue *queue, struct pando_queue_client *client)
{
    struct pando_queue_client **link = chain_of(queue, client->network, client->family);
    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    pando_list_remove(&client->turn);
    client->next = queue->spare;
    queue->spare = client;
}

/* --- clients by the number of their requests --- */

static struct pando_node *peers_of(struct pando_queue *queue, uint32_t count)
{
    struct pando_node *list = &queue->by_count[count < queue->most ? count : queue->most];
    if (!list->next)
        pando_list_init(list);
    return list;
}

/* The count changes by one only, so the heaviest client is never more than one list away. */
static void change_count(struct pando_queue *queue, struct pando_queue_client *client, int change)
{
    client->count = (uint32_t)((int64_t)client->count + change);
    queue->count = (uint32_t)((int64_t)queue->count + change);
    pando_list_remove(&client->peers);
    if (client->count > 0)
        pando_list_append(peers_of(queue, client->count), &client->peers);
    uint32_t list = client->count < queue->most ? client->count : queue->most;
    if (list > queue->heaviest)
        queue->heaviest = list;
    else if (queue->heaviest > 0 && pando_list_empty(peers_of(queue, queue->heaviest)))
        queue->heaviest--;
}

/* --- requests --- */

static void prepend(struct pando_node *list, struct pando_node *node)
{
    pando_list_append(list->next, node);
}

static int push(struct pando_queue *queue, struct pando_connection *connection, int first)
{
    struct pando_queue_client *client = find_or_add(queue, &connection->origin);
    if (!client)
        return -1;
    connection->client = client;
    if (first) {
        prepend(&client->requests, &connection->queued);
        pando_list_remove(&client->turn);
        prepend(&queue->turns, &client->turn);
    } else {
        pando_list_append(&client->requests, &connection->queued);
        if (client->count == 0)
            pando_list_append(&queue->turns, &client->turn);
    }
    change_count(queue, client, 1);
    return 0;
}

int pando_queue_push(struct pando_queue *queue, struct pando_connection *connection)
{
    return push(queue, connection, 0);
}

int pando_queue_push_back(struct pando_queue *queue, struct pando_connection *connection)
{
    return push(queue, connection, 1);
}

void pando_queue_remove(struct pando_queue *queue, struct pando_connection *connection)
{
    struct pando_queue_client *client = connection->client;
    connection->client = NULL;
    pando_list_remove(&connection->queued);
    change_count(queue, client, -1);
    if (client->count == 0)
        leave(queue, client);
}

struct pando_connection *pando_queue_shift(struct pando_queue *queue)
{
    if (queue->count == 0)
        return NULL;
    struct pando_queue_client *client = pando_owner(queue->turns.next, struct pando_queue_client, turn);
    struct pando_connection *first = pando_owner(client->requests.next, struct pando_connection, queued);
    pando_list_remove(&client->turn); /* its turn is over: the others come first now */
    pando_list_append(&queue->turns, &client->turn);
    pando_queue_remove(queue, first);
    return first;
}

struct pando_connection *pando_queue_heaviest(const struct pando_queue *queue)
{
    if (queue->heaviest == 0)
        return NULL;
    struct pando_node *heaviest = queue->by_count[queue->heaviest].next;
    const struct pando_queue_client *client = pando_owner(heaviest, struct pando_queue_client, peers);
    return pando_owner(client->requests.prev, struct pando_connection, queued);
}

struct pando_connection *pando_queue_victim(const struct pando_queue *queue, const struct pando_connection *newcomer)
{
    struct pando_connection *newest = pando_queue_heaviest(queue);
    const struct pando_queue_client *own = find(queue, &newcomer->origin);
    if (!newest || newest->client == own || newest->client->count <= (own ? own->count : 0) + 1)
        return NULL;
    return newest;
}
