/* Whose malloc this process has: the C library's, or a jemalloc that was loaded before it. */
#ifndef PANDO_SYS_ALLOCATOR_H
#define PANDO_SYS_ALLOCATOR_H

/* "5.3.0-0-g54ea...", of static duration; NULL: it is not jemalloc. */
const char *pando_jemalloc_version(void);
/* Gives free pages back to the kernel. Of no effect where neither glibc nor jemalloc is in use. */
void pando_trim_memory(void);

#endif
