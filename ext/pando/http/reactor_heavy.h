/* Heavy requests, see reactor_heavy.c. Included by reactor_private.h, for the parts of the reactor that queue
 * requests and keep answers. */
#ifndef PANDO_HTTP_REACTOR_HEAVY_H
#define PANDO_HTTP_REACTOR_HEAVY_H

#include <stdint.h>

struct pando_connection;
struct pando_reactor;
struct pando_reactor_line;

#define PANDO_REACTOR_ROUTES 1024u

/* A path whose answer has waited in a file. */
struct pando_reactor_route {
    uint32_t route;                     /* a hash of the path */
    uint32_t times;                     /* answers taken in time before the entry is forgotten; 0: forgotten */
};

/* Whether clients together leave so much unread that heavy requests are held back. */
int pando_reactor_heavy_times(const struct pando_reactor *reactor);
/* More of the answer to this connection's request has moved to a file: if that is much, its path becomes heavy. */
void pando_reactor_heavy_note(struct pando_reactor *reactor, struct pando_connection *connection);
/* An answer is complete. */
void pando_reactor_heavy_answered(struct pando_reactor *reactor, const struct pando_connection *connection);
/* A reader was cut. */
void pando_reactor_heavy_cut(struct pando_reactor *reactor);
/* offer: the request goes to a worker; settle: the worker no longer has it. */
void pando_reactor_heavy_offer(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_heavy_settle(struct pando_reactor *reactor, struct pando_connection *connection);
/* Sets a waiting heavy request aside while there is little room. 0: it is light, or there is no memory. */
int pando_reactor_heavy_set_aside(struct pando_reactor *reactor, struct pando_connection *connection);
/* Number of requests of a line that were set aside and may be served now. */
uint32_t pando_reactor_heavy_due(const struct pando_reactor *reactor, const struct pando_reactor_line *line);
/* Whether any are set aside. */
int pando_reactor_heavy_waits(const struct pando_reactor *reactor);
/* The next of all requests that wait in a line, or the next light one; NULL: none for now. */
struct pando_connection *pando_reactor_heavy_next(struct pando_reactor *reactor, struct pando_reactor_line *line);
struct pando_connection *pando_reactor_heavy_next_light(struct pando_reactor *reactor, struct pando_reactor_line *line);
/* The request to refuse from a full line, among those set aside. */
struct pando_connection *pando_reactor_heavy_victim(struct pando_reactor *reactor,
                                                    const struct pando_connection *newcomer);

#endif
