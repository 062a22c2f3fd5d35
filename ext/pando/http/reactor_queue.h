/* The requests that wait for a worker, in memory of the reactor alone. Clients
 * take turns: who asks for much waits behind its own requests, not before
 * those of others. All steps take constant time. A client is what
 * reactor_addresses.h takes for one. */
#ifndef PANDO_HTTP_REACTOR_QUEUE_H
#define PANDO_HTTP_REACTOR_QUEUE_H

#include "reactor_addresses.h"
#include "reactor_list.h"

#include <stdint.h>

#define PANDO_QUEUE_BUCKETS 4096u

struct pando_connection;

/* One with requests in the queue. */
struct pando_queue_client {
    struct pando_node turn;             /* in the queue's turns */
    struct pando_node peers;            /* in the list of those that wait for as many */
    struct pando_node requests;         /* the oldest first */
    struct pando_queue_client *next;    /* of those with the same hash, or the spare ones */
    uint64_t network;
    uint32_t family;
    uint32_t count;
};

struct pando_queue {
    struct pando_node turns;            /* clients, the next one first */
    struct pando_node *by_count;        /* clients by how many of their requests wait; the last list: or more */
    uint32_t most, heaviest;            /* the last list, and the last that is not empty */
    uint32_t count;                     /* requests */
    struct pando_queue_client *clients[PANDO_QUEUE_BUCKETS], *spare;
    uint64_t seed;                      /* nobody can choose addresses with the same hash */
};

/* For so many requests. 0, or -1: no memory. */
int pando_queue_init(struct pando_queue *queue, uint32_t limit);
void pando_queue_drop(struct pando_queue *queue);
/* Behind its client's others; or before all, if it has waited already. 0, or -1: no memory. */
int pando_queue_push(struct pando_queue *queue, struct pando_connection *connection);
int pando_queue_push_back(struct pando_queue *queue, struct pando_connection *connection);
/* The next one; NULL: there is none. */
struct pando_connection *pando_queue_shift(struct pando_queue *queue);
void pando_queue_remove(struct pando_queue *queue, struct pando_connection *connection);
/* The newest request of the client that has most of them here; NULL: there is none. */
struct pando_connection *pando_queue_heaviest(const struct pando_queue *queue);
/* The same, if it has more than this one would have with one more.
 * NULL: it is this one's turn to go without. */
struct pando_connection *pando_queue_victim(const struct pando_queue *queue, const struct pando_connection *newcomer);

#endif
