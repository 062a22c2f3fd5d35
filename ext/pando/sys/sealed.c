/* Sealed memory files, see sealed.h. Runs in any process. */
#include "sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int fill(int fd, size_t bytes, const void *first, size_t first_bytes)
{
    if (ftruncate(fd, (off_t)bytes) == -1) return -1;
    if (pwrite(fd, first, first_bytes, 0) != (ssize_t)first_bytes) return -1;
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

int pando_sealed_create(const char *name, size_t bytes, const void *first, size_t first_bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd == -1) return -1;
    if (fill(fd, bytes, first, first_bytes) == 0) return fd;
    int failure = errno;
    close(fd);
    errno = failure;
    return -1;
}

void *pando_sealed_map(int fd, size_t bytes, int writable)
{
    struct stat status;
    if (fstat(fd, &status) == -1) return NULL;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals == -1 || !(seals & F_SEAL_SHRINK) || status.st_size != (off_t)bytes) return errno = EINVAL, NULL;
    void *mapping = mmap(NULL, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    return mapping == MAP_FAILED ? NULL : mapping;
}
