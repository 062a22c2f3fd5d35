/* What the kernel says about each page of a process: /proc/PID/pagemap (Linux's pagemap.rst). Runs in any process.
 * Allocates nothing. */
#ifndef PANDO_SYS_PAGEMAP_H
#define PANDO_SYS_PAGEMAP_H

#include <stdint.h>
#include <sys/types.h>

/* The kernel's page size, which may differ from 4,096 (aarch64: 16 and 64 KiB). A test may set another. */
extern uintptr_t pando_page_bytes;
#define PANDO_PAGE pando_page_bytes
#define PANDO_PAGE_MAX 65536
#define PANDO_PAGEMAP_ENTRIES 8192 /* entries read at once, at most */

#define PANDO_PAGE_PRESENT (UINT64_C(1) << 63)
#define PANDO_PAGE_OF_FILE (UINT64_C(1) << 61)   /* or of shared memory */
#define PANDO_PAGE_EXCLUSIVE (UINT64_C(1) << 56) /* no other process maps it */
#define PANDO_PAGE_OWN (PANDO_PAGE_PRESENT | PANDO_PAGE_EXCLUSIVE)

/* Opens this process's own. -1 and errno. */
int pando_pagemap_open(void);
/* Leaves errno unchanged. */
void pando_pagemap_close(int pagemap);
/* Reads the entries of the first pages between two addresses. Their number; 0: the process has ended; -1 and errno. */
ssize_t pando_pagemap_read(int pagemap, uint64_t entries[PANDO_PAGEMAP_ENTRIES], uintptr_t from, uintptr_t to);

#endif
