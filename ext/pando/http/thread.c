/* Starts threads of the reactor, see thread.h. */
#include "thread.h"

#include <limits.h>
#include <signal.h>

#define STACK_BYTES (PTHREAD_STACK_MIN > 65536 ? PTHREAD_STACK_MIN : 65536)

/* Only the thread that serves handles signals. */
int pando_thread_start(pthread_t *thread, void *(*work)(void *), void *place)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return -1;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failure = pthread_create(thread, &attributes, work, place);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failure == 0 ? 0 : -1;
}
