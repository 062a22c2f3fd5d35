/* Memory in a file without a name that nobody can shrink: whoever maps it is
 * safe from SIGBUS, whatever the others do. */
#ifndef PANDO_SYS_SEALED_H
#define PANDO_SYS_SEALED_H

#include <stddef.h>

/* A descriptor (close-on-exec) of so many zero bytes, the first of which are given; or -1 with errno. */
int pando_sealed_create(const char *name, size_t bytes, const void *first, size_t first_bytes);
/* Maps it; NULL with errno. EINVAL: it is not sealed, or of another size. */
void *pando_sealed_map(int fd, size_t bytes, int writable);

#endif
