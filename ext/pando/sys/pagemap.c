/* Reads /proc/PID/pagemap, see pagemap.h. Runs in any process. */
#include "pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

uintptr_t pando_page_bytes = 4096;

__attribute__((constructor)) static void ask_for_page_size(void)
{
    long bytes = sysconf(_SC_PAGESIZE);
    if (bytes > 0) pando_page_bytes = (uintptr_t)bytes;
}

int pando_pagemap_open(void)
{
    return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

void pando_pagemap_close(int pagemap)
{
    int saved = errno;
    close(pagemap);
    errno = saved;
}

ssize_t pando_pagemap_read(int pagemap, uint64_t entries[PANDO_PAGEMAP_ENTRIES], uintptr_t from, uintptr_t to)
{
    size_t left = (to - from) / PANDO_PAGE, size = sizeof(*entries);
    size_t wanted = left < PANDO_PAGEMAP_ENTRIES ? left : PANDO_PAGEMAP_ENTRIES;
    ssize_t got;
    do got = pread(pagemap, entries, wanted * size, (off_t)(from / PANDO_PAGE * size));
    while (got == -1 && errno == EINTR);
    return got == -1 ? -1 : got / (ssize_t)size;
}
