/* Writes lines to a file from a thread of its own: the file may be on a full disk, on a file server that does not
 * answer, or a pipe that nobody reads, and whoever logs never waits for it. One thread puts lines into a ring, the other
 * writes them. No Ruby and no reactor in here. Runs in the reactor. */
#ifndef PANDO_HTTP_LOG_WRITER_H
#define PANDO_HTTP_LOG_WRITER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PANDO_LOG_RING (1u << 21) /* bytes that wait to be written; a power of two */

struct pando_log_writer {
    const char *path;             /* "-": standard output */
    pthread_t thread;
    int wake, file;               /* an eventfd; the open file or -1 */
    _Atomic uint64_t *failure;    /* errno of the last failure; 0 once lines are written to the right file */
    _Atomic uint64_t put, written; /* bytes ever */
    _Atomic int asleep, reopen, stopped;
    char *ring;
};

/* 0, or -1 with errno: there is no memory, descriptor or thread. Whether the file can be opened shows in `failure`. */
int pando_log_writer_start(struct pando_log_writer *writer, const char *path, _Atomic uint64_t *failure);
/* 1, or 0: there is no room for the line. */
int pando_log_writer_put(struct pando_log_writer *writer, const char *line, size_t bytes);
/* After some lines: wakes the thread up if it sleeps. */
void pando_log_writer_nudge(struct pando_log_writer *writer);
/* Opens the path anew. If that fails, the old file is written to. */
void pando_log_writer_reopen(struct pando_log_writer *writer);
/* Lets the thread write what waits, for at most so many milliseconds. 1: it has ended, and nothing is left of the
 * writer. 0: it hangs in the kernel, and goes on using the writer and `failure` until the process ends. */
int pando_log_writer_stop(struct pando_log_writer *writer, unsigned milliseconds);

#endif
