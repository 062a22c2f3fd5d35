/* The process that the reactor is: a plain fork of the monitor, in which no
 * Ruby ever runs. */
#ifndef PANDO_HTTP_REACTOR_PROCESS_H
#define PANDO_HTTP_REACTOR_PROCESS_H

#include "reactor.h"

#include <sys/types.h>

/* Forks, and runs the reactor in the child, which ends with the reactor's
 * status. It keeps the config's descriptors and the standard ones, no others.
 * -1 with errno. */
pid_t pando_reactor_fork(const struct pando_reactor_config *config);

#endif
