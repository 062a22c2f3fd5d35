/* All that a reactor is told at its start, in one piece without a pointer that
 * anybody follows: what can be handed to a process that shares no memory with
 * its monitor. Both sides are built together; whoever finds another layout
 * refuses it. */
#ifndef PANDO_HTTP_REACTOR_PAPERS_H
#define PANDO_HTTP_REACTOR_PAPERS_H

#include "reactor.h"

#include <limits.h>
#include <sys/types.h>

#define PANDO_REACTOR_PAPERS_VERSION 1u
#define PANDO_REACTOR_STREAM_PATHS 4096u
#define PANDO_REACTOR_HEALTH_PATH 256u

struct pando_reactor_papers {
    uint32_t version;
    uint32_t bytes;
    pid_t monitor;
    struct pando_reactor_config config; /* numbers only: see pando_reactor_papers_config */
    struct pando_listener listeners[PANDO_REACTOR_LISTENERS];
    char stream_paths[PANDO_REACTOR_STREAM_PATHS];
    char ready_path[PANDO_REACTOR_HEALTH_PATH], live_path[PANDO_REACTOR_HEALTH_PATH]; /* "": none */
    char spool_directory[PATH_MAX];                                                   /* "": none */
};

/* The settings, whose pointers lead into these papers from now on. */
const struct pando_reactor_config *pando_reactor_papers_config(struct pando_reactor_papers *papers);

/* A file in memory that holds them, for good; close-on-exec. Its number, or -1 with errno. */
int pando_reactor_papers_seal(struct pando_reactor_papers *papers);

/* Reads what was sealed. 0, or -1 with errno (EPROTO: it is something else). */
int pando_reactor_papers_read(struct pando_reactor_papers *papers, int file);

#endif
