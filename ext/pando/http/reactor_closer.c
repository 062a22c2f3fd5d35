/* Closes the files of answers and bodies in a thread of its own. Closing a nameless file frees its disk space, and a
 * file system may take 0.1 s for the 20 MB of one slow reader: this thread waits for that, and no client does. Runs
 * in the reactor. */
#include "reactor_private.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define AT_ONCE 64

static void *close_all(void *place)
{
    int from = *(int *)place, files[AT_ONCE];
    ssize_t bytes;
    while ((bytes = read(from, files, sizeof(files))) > 0 || (bytes == -1 && errno == EINTR))
        for (ssize_t i = 0; i < bytes / (ssize_t)sizeof(*files); i++) /* a pipe never splits what was written in one
                                                                       * piece */
            close(files[i]);
    return NULL;
}

void pando_reactor_closer_start(struct pando_reactor *reactor)
{
    struct pando_reactor_closer *closer = &reactor->closer;
    int ends[2];
    closer->to = -1;
    if (pipe2(ends, O_CLOEXEC) == -1)
        return;
    closer->from = ends[0];
    if (fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 && pando_thread_start(&closer->thread, close_all, &closer->from) == 0) {
        closer->to = ends[1];
        return;
    }
    close(ends[0]);
    close(ends[1]);
}

/* The serving thread closes the file itself if there is no closer thread, if the pipe is full, or if the disk has
 * less free space than the settings allow: then the space is free for the next file at once. */
void pando_reactor_closer_take(struct pando_reactor *reactor, int fd)
{
    if (fd == -1)
        return;
    int at_once = reactor->closer.to == -1 || reactor->spool_most < reactor->config->spool_total;
    if (at_once || write(reactor->closer.to, &fd, sizeof(fd)) != sizeof(fd))
        close(fd);
}

void pando_reactor_closer_stop(struct pando_reactor *reactor)
{
    struct pando_reactor_closer *closer = &reactor->closer;
    if (closer->to == -1)
        return;
    close(closer->to);
    closer->to = -1;
    pthread_join(closer->thread, NULL);
    close(closer->from);
}
