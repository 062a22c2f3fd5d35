/* Nameless memory files that nobody can shrink: a process that maps one is safe from SIGBUS, whatever the others do.
 * Runs in any process. */
#ifndef PANDO_SYS_SEALED_H
#define PANDO_SYS_SEALED_H

#include <stddef.h>

/* A descriptor (close-on-exec) of so many bytes, zero except for the given first ones; or -1 with errno. */
int pando_sealed_create(const char *name, size_t bytes, const void *first, size_t first_bytes);
/* Maps it; NULL with errno. EINVAL: not sealed, or of another size. */
void *pando_sealed_map(int fd, size_t bytes, int writable);

#endif
