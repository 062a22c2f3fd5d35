/* The papers: all settings of a reactor in one piece without pointers, so that the monitor can hand them to a process
 * that shares no memory with it. Both sides are built together; a reactor refuses papers of another layout. */
#ifndef PANDO_HTTP_REACTOR_PAPERS_H
#define PANDO_HTTP_REACTOR_PAPERS_H

#include "reactor.h"

#include <limits.h>
#include <sys/types.h>

#define PANDO_REACTOR_PAPERS_VERSION 3u
#define PANDO_REACTOR_STREAM_PATHS 4096u
#define PANDO_REACTOR_POOL_PATHS 4096u
#define PANDO_REACTOR_HEALTH_PATH 256u
#define PANDO_REACTOR_POOL_NAMES 1024u

struct pando_reactor_papers {
    uint32_t version;
    uint32_t bytes;
    pid_t monitor;
    struct pando_reactor_config config; /* numbers only, see pando_reactor_papers_config */
    struct pando_listener listeners[PANDO_REACTOR_LISTENERS];
    char pool_paths[PANDO_REACTOR_POOL_PATHS], stream_paths[PANDO_REACTOR_STREAM_PATHS];
    char ready_path[PANDO_REACTOR_HEALTH_PATH], live_path[PANDO_REACTOR_HEALTH_PATH]; /* "": none */
    char spool_directory[PATH_MAX], access_log[PATH_MAX];                             /* "": none */
    char pool_names[PANDO_REACTOR_POOL_NAMES];
};

/* The settings, with pointers into these papers. */
const struct pando_reactor_config *pando_reactor_papers_config(struct pando_reactor_papers *papers);

/* Writes them to a file in memory that nothing can change; close-on-exec. Its descriptor, or -1 with errno. */
int pando_reactor_papers_seal(struct pando_reactor_papers *papers);

/* Reads what was sealed. 0, or -1 with errno (EPROTO: not the papers of this version). */
int pando_reactor_papers_read(struct pando_reactor_papers *papers, int file);

#endif
