/* Whether two descriptors, of whatever processes, are one open file. */
#ifndef PANDO_SYS_KCMP_H
#define PANDO_SYS_KCMP_H

#include <sys/types.h>

/* 1: they share one open file description, and so its position and flags;
 * 0: they do not; -1 with errno (EBADF, ESRCH, EPERM; ENOSYS: a kernel without it). */
int pando_open_file_shared(pid_t one, int fd, pid_t other, int other_fd);

#endif
