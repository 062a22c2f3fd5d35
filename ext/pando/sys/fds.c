#include "fds.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* One atomic step: unlike close and open, no other thread can be given the
 * number in between. The former open file only loses this process's reference,
 * so that a peer that another process still talks to hears nothing. */
int pando_replace_fd(int target, int source)
{
    int flags = fcntl(target, F_GETFD);
    if (flags == -1) return -1;
    if (target == source) return 0;
    while (dup3(source, target, flags & FD_CLOEXEC ? O_CLOEXEC : 0) == -1) {
        if (errno != EINTR && errno != EBUSY) return -1; /* EBUSY: a race with an open(2), see dup(2) */
    }
    return 0;
}
