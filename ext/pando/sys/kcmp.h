/* Whether two descriptors, of any two processes, are the same open file. Runs in any process. */
#ifndef PANDO_SYS_KCMP_H
#define PANDO_SYS_KCMP_H

#include <sys/types.h>

/* 1: they share an open file description, with its position and flags; 0: they do not; -1 with errno (EBADF, ESRCH,
 * EPERM; ENOSYS: the kernel lacks kcmp). */
int pando_open_file_shared(pid_t one, int fd, pid_t other, int other_fd);

#endif
