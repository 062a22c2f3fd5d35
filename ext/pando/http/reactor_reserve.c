/* Descriptors that are kept for a lane's: at the limit of open files (EMFILE), the order that opens it would come
 * without them, and a worker could not be heard. */
#include "reactor_private.h"

#include <fcntl.h>
#include <unistd.h>

void pando_reactor_reserve_init(struct pando_reactor *reactor)
{
    for (int i = 0; i < PANDO_RESERVE; i++)
        reactor->reserve[i] = -1;
}

/* As far as there is room: the rest in a later turn. */
void pando_reactor_reserve_fill(struct pando_reactor *reactor)
{
    for (int i = 0; i < PANDO_RESERVE; i++)
        if (reactor->reserve[i] == -1)
            reactor->reserve[i] = fcntl(reactor->epoll, F_DUPFD_CLOEXEC, 0);
}

void pando_reactor_reserve_release(struct pando_reactor *reactor)
{
    for (int i = 0; i < PANDO_RESERVE; i++)
        if (reactor->reserve[i] != -1)
            close(reactor->reserve[i]);
    pando_reactor_reserve_init(reactor);
}
