/* Starts the reactor's process, from the monitor. The reactor has a program of its own, of a few hundred KiB, without
 * Ruby. Where that program cannot be executed, the reactor is a fork of the monitor: it runs no Ruby, but keeps the
 * monitor's memory. */
#ifndef PANDO_HTTP_REACTOR_PROCESS_H
#define PANDO_HTTP_REACTOR_PROCESS_H

#include "reactor_papers.h"

#include <sys/types.h>

/* The environment variable that tells the program the descriptor of its papers. */
#define PANDO_REACTOR_VARIABLE "PANDO_REACTOR"

/* Each starts a process that exits with the reactor's status, and holds only the standard descriptors and those that
 * the papers name. Its pid, or -1 with errno. */
pid_t pando_reactor_spawn(int program, struct pando_reactor_papers *papers);
pid_t pando_reactor_fork(struct pando_reactor_papers *papers);

/* The rest of the reactor process's life. */
__attribute__((noreturn)) void pando_reactor_live(const struct pando_reactor_config *config, pid_t monitor);

#endif
