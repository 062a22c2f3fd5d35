/* Writes and reads the papers of a reactor, see reactor_papers.h. Sealing runs in the monitor, reading in the
 * reactor. */
#include "reactor_papers.h"

#include "sys/fds.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *text(const char *place)
{
    return place[0] ? place : NULL;
}

const struct pando_reactor_config *pando_reactor_papers_config(struct pando_reactor_papers *papers)
{
    struct pando_reactor_config *config = &papers->config;
    config->listeners = papers->listeners;
    config->pool_paths = papers->pool_paths;
    config->stream_paths = papers->stream_paths;
    config->ready_path = text(papers->ready_path);
    config->live_path = text(papers->live_path);
    config->spool_directory = text(papers->spool_directory);
    config->access_log.path = text(papers->access_log);
    config->access_log.pool_names = papers->pool_names;
    return config;
}

int pando_reactor_papers_seal(struct pando_reactor_papers *papers)
{
    papers->version = PANDO_REACTOR_PAPERS_VERSION;
    papers->bytes = sizeof(*papers);
    papers->monitor = getpid();
    return pando_sealed_memory("pando reactor", (const char *)papers, sizeof(*papers));
}

/* A list of strings ends with an empty one. */
static int list_ends(const char *list, size_t room)
{
    return !list[room - 1] && !list[room - 2];
}

static int all_end(const struct pando_reactor_papers *papers)
{
    return list_ends(papers->pool_paths, sizeof(papers->pool_paths)) &&
           list_ends(papers->stream_paths, sizeof(papers->stream_paths)) &&
           list_ends(papers->pool_names, sizeof(papers->pool_names)) &&
           !papers->ready_path[sizeof(papers->ready_path) - 1] && !papers->live_path[sizeof(papers->live_path) - 1] &&
           !papers->spool_directory[sizeof(papers->spool_directory) - 1] &&
           !papers->access_log[sizeof(papers->access_log) - 1];
}

int pando_reactor_papers_read(struct pando_reactor_papers *papers, int file)
{
    struct stat found;
    if (fstat(file, &found) == -1) return -1;
    if (found.st_size == sizeof(*papers)) {
        ssize_t got = pread(file, papers, sizeof(*papers), 0);
        if (got == -1) return -1;
        if (got == sizeof(*papers) && papers->version == PANDO_REACTOR_PAPERS_VERSION &&
            papers->bytes == sizeof(*papers) && papers->config.listener_count <= PANDO_REACTOR_LISTENERS &&
            papers->config.pools >= 1 && papers->config.pools <= PANDO_REACTOR_POOLS && all_end(papers))
            return 0;
    }
    errno = EPROTO;
    return -1;
}
