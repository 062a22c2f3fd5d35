/* Health checks that the reactor answers itself, see reactor_health.c. Used in the reactor. */
#ifndef PANDO_HTTP_REACTOR_HEALTH_H
#define PANDO_HTTP_REACTOR_HEALTH_H

struct pando_reactor;
struct pando_connection;

/* The monitor has said whether new requests are welcome. */
void pando_reactor_health_told(struct pando_reactor *reactor, int welcome);
/* 1: the request was a health check, and is answered. */
int pando_reactor_health_asked(struct pando_reactor *reactor, struct pando_connection *connection);

#endif
