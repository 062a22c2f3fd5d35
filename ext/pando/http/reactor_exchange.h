/* An exchange: a client's request and its answer, from the first byte received to the last one sent, as the statistics
 * and the access log see it. One of each connection. Used by the reactor only. */
#ifndef PANDO_HTTP_REACTOR_EXCHANGE_H
#define PANDO_HTTP_REACTOR_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#define PANDO_REQUEST_ID 64u
#define PANDO_CLIENT_GONE 499u        /* the status of a request whose client left before its answer began */

struct pando_connection;
struct pando_reactor;
struct pando_reactor_lane;

/* Times in nanoseconds. */
struct pando_exchange {
    uint64_t begun;                   /* when its first byte arrived; 0: no byte has */
    uint64_t complete;                /* when the request first joined the queue; 0: it did not */
    uint64_t queued;                  /* how long it waited until the worker that answered took it */
    uint64_t answered;                /* when the worker had answered; 0: it has not, or none was asked */
    uint64_t sent_before;             /* bytes sent on the connection before the answer */
    uint32_t head_bytes;              /* of the answer, as far as known: only with an access log */
    uint32_t slot, generation;        /* of the worker that took it */
    uint16_t status;                  /* 0: not known */
    uint8_t open;                     /* there is one to count */
    uint8_t parsed;                   /* its head is complete */
    uint8_t taken;                    /* a worker has taken it */
    uint8_t method;
    uint8_t pool;                     /* as soon as its path has decided that */
    uint8_t retried;
    uint8_t id_bytes;
    char id[PANDO_REQUEST_ID];        /* the answer's x-request-id: only with an access log */
};

/* The steps of an exchange, in their order. */
/* A first byte of a request is here. */
void pando_reactor_exchange_begin(struct pando_connection *connection);
/* Its head is complete. */
void pando_reactor_exchange_parsed(struct pando_connection *connection);
/* The reactor answers health checks without counting them as requests. */
void pando_reactor_exchange_ignore(struct pando_connection *connection);
/* It has joined the queue. */
void pando_reactor_exchange_complete(struct pando_connection *connection);
/* A worker is done with it, or will not be. NULL: no worker has claimed it. */
void pando_reactor_exchange_settled(struct pando_connection *connection, const struct pando_reactor_lane *lane,
                                    uint64_t queued);
/* The first bytes of a worker's answer: its head, or a part of it. */
void pando_reactor_exchange_answer(const struct pando_reactor *reactor, struct pando_connection *connection,
                                   const char *head, size_t bytes);
void pando_reactor_exchange_answered(struct pando_connection *connection);
/* The reactor itself answers. */
void pando_reactor_exchange_refused(struct pando_connection *connection, int status);
/* Bytes of the request, head and body. */
uint64_t pando_reactor_exchange_received(const struct pando_connection *connection);
/* The last byte is sent, or the connection ends: counts it, and logs it. */
void pando_reactor_exchange_end(struct pando_reactor *reactor, struct pando_connection *connection);

#endif
