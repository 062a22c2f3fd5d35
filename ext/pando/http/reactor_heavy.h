/* Heavy requests, see reactor_heavy.c. Of reactor_private.h, for the parts that queue requests and keep answers. */
#ifndef PANDO_HTTP_REACTOR_HEAVY_H
#define PANDO_HTTP_REACTOR_HEAVY_H

#include <stdint.h>

struct pando_connection;
struct pando_reactor;

#define PANDO_REACTOR_ROUTES 1024u

/* Requests that are alike: the answer to one has waited in a file. */
struct pando_reactor_route {
    uint32_t route;                     /* a hash of the path */
    uint32_t times;                     /* answers that were taken in time, until it is forgotten; 0: it is */
};

/* Whether clients together leave so much unread that heavy requests are held back. */
int pando_reactor_heavy_times(const struct pando_reactor *reactor);
/* More of the answer to this connection's request is in a file now: if that is much, its like are heavy. */
void pando_reactor_heavy_note(struct pando_reactor *reactor, struct pando_connection *connection);
/* An answer is complete. */
void pando_reactor_heavy_answered(struct pando_reactor *reactor, const struct pando_connection *connection);
/* A reader had to be cut. */
void pando_reactor_heavy_cut(struct pando_reactor *reactor);
/* It is given to a worker; that has it no longer. */
void pando_reactor_heavy_offer(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_heavy_settle(struct pando_reactor *reactor, struct pando_connection *connection);
/* A request that waits is put among its like while there is little room. 0: it is light, or there is no memory. */
int pando_reactor_heavy_set_aside(struct pando_reactor *reactor, struct pando_connection *connection);
/* How many were set aside and may be served now. */
uint32_t pando_reactor_heavy_due(const struct pando_reactor *reactor);
/* The next request of all that wait, or of those that are not heavy; NULL: there is none for now. */
struct pando_connection *pando_reactor_heavy_next(struct pando_reactor *reactor);
struct pando_connection *pando_reactor_heavy_next_light(struct pando_reactor *reactor);
/* The one that was set aside, and makes room in a full queue. */
struct pando_connection *pando_reactor_heavy_victim(struct pando_reactor *reactor,
                                                    const struct pando_connection *newcomer);

#endif
