/* Descriptors that keep their number while what is beneath them changes, and
 * those that a new process must not have. */
#ifndef PANDO_SYS_FDS_H
#define PANDO_SYS_FDS_H

#include <stddef.h>

/* Makes `target` refer to the open file of `source`; its close-on-exec flag
 * stays as it was. 0 or -1 with errno (EBADF: `target` is not open). */
int pando_replace_fd(int target, int source);

/* Closes all descriptors but stdin, stdout, stderr and these, which it sorts.
 * Allocates nothing: fit for a child of fork. 0 or -1 with errno. */
int pando_close_all_but(int *kept, size_t count);

/* A file in memory that holds these bytes and can never hold others (memfd_create(2)); close-on-exec.
 * Its number, or -1 with errno. */
int pando_sealed_memory(const char *name, const char *bytes, size_t length);

/* Wakes whoever watches an eventfd, edge-triggered too, that nobody reads: one whose count is full takes no more, so that
 * it is emptied first. */
void pando_eventfd_signal(int fd);

#endif
