/* Which malloc this process uses: the C library's, or a jemalloc loaded before it. Runs in any process. */
#ifndef PANDO_SYS_ALLOCATOR_H
#define PANDO_SYS_ALLOCATOR_H

/* "5.3.0-0-g54ea...", with static lifetime; NULL: it is not jemalloc. */
const char *pando_jemalloc_version(void);
/* Gives free pages back to the kernel. Does nothing with other allocators than glibc's and jemalloc. */
void pando_trim_memory(void);

#endif
