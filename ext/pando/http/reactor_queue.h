/* The queue of requests that wait for a worker, in private memory of the reactor. Clients take turns: a client that
 * sends many requests waits behind its own, not ahead of those of others. All steps take constant time.
 * reactor_addresses.h defines what counts as one client. */
#ifndef PANDO_HTTP_REACTOR_QUEUE_H
#define PANDO_HTTP_REACTOR_QUEUE_H

#include "reactor_addresses.h"
#include "reactor_list.h"

#include <stdint.h>

#define PANDO_QUEUE_BUCKETS 4096u

struct pando_connection;

/* A client with requests in the queue. */
struct pando_queue_client {
    struct pando_node turn;             /* in the queue's turns */
    struct pando_node peers;            /* in the list of clients with as many requests */
    struct pando_node requests;         /* oldest first */
    struct pando_queue_client *next;    /* with the same hash, or in the spare list */
    uint64_t network;
    uint32_t family;
    uint32_t count;
};

struct pando_queue {
    struct pando_node turns;            /* clients, the next one first */
    struct pando_node *by_count;        /* clients by the number of their requests; the last list: that many or more */
    uint32_t most, heaviest;            /* index of the last list, and of the last one that is not empty */
    uint32_t count;                     /* requests */
    struct pando_queue_client *clients[PANDO_QUEUE_BUCKETS], *spare;
    uint64_t seed;                      /* so that nobody can choose addresses with the same hash */
};

/* Room for `limit` requests. 0, or -1: no memory. */
int pando_queue_init(struct pando_queue *queue, uint32_t limit);
void pando_queue_drop(struct pando_queue *queue);
/* push: behind the client's other requests. push_back: before all others, for a request that has waited already. 0,
 * or -1: no memory. */
int pando_queue_push(struct pando_queue *queue, struct pando_connection *connection);
int pando_queue_push_back(struct pando_queue *queue, struct pando_connection *connection);
/* Removes and returns the next request; NULL: the queue is empty. */
struct pando_connection *pando_queue_shift(struct pando_queue *queue);
void pando_queue_remove(struct pando_queue *queue, struct pando_connection *connection);
/* The newest request of the client with most requests in the queue; NULL: the queue is empty. */
struct pando_connection *pando_queue_heaviest(const struct pando_queue *queue);
/* The same, if that client has more requests than the newcomer's would have with this one. NULL: the newcomer itself
 * must be refused. */
struct pando_connection *pando_queue_victim(const struct pando_queue *queue, const struct pando_connection *newcomer);

#endif
