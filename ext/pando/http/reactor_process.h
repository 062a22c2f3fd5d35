/* The process that the reactor is. It has a program of its own, of a few hundred
 * KiB, in which there is no Ruby; where that cannot be executed it is a fork of
 * the monitor, in which no Ruby ever runs, and keeps the monitor's memory. */
#ifndef PANDO_HTTP_REACTOR_PROCESS_H
#define PANDO_HTTP_REACTOR_PROCESS_H

#include "reactor_papers.h"

#include <sys/types.h>

/* The environment variable that tells the program which descriptor its papers are. */
#define PANDO_REACTOR_VARIABLE "PANDO_REACTOR"

/* Each starts a process that ends with the reactor's status. It keeps the
 * descriptors that the papers name and the standard ones, no others. Its pid,
 * or -1 with errno. */
pid_t pando_reactor_spawn(int program, struct pando_reactor_papers *papers);
pid_t pando_reactor_fork(struct pando_reactor_papers *papers);

/* The rest of such a process's life. */
__attribute__((noreturn)) void pando_reactor_live(const struct pando_reactor_config *config, pid_t monitor);

#endif
