/* Keeps descriptors in reserve for new lanes. At the limit of open files (EMFILE), an order to open a lane would
 * arrive without its descriptors, and the worker could not be heard. Runs in the reactor. */
#include "reactor_private.h"

#include <fcntl.h>
#include <unistd.h>

void pando_reactor_reserve_init(struct pando_reactor *reactor)
{
    for (int i = 0; i < PANDO_RESERVE; i++)
        reactor->reserve[i] = -1;
}

/* Fills as many as possible; a later turn fills the rest. */
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
