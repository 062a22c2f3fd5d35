/* A wrapper of kcmp(2), see kcmp.h. Runs in any process. */
#include "kcmp.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

int pando_open_file_shared(pid_t one, int fd, pid_t other, int other_fd)
{
    long order = syscall(SYS_kcmp, one, other, KCMP_FILE, (unsigned long)fd, (unsigned long)other_fd);
    return order == -1 ? -1 : order == 0;
}
