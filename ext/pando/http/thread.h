/* Threads of the reactor beside the one that serves: with a small stack, and without signals. */
#ifndef PANDO_HTTP_THREAD_H
#define PANDO_HTTP_THREAD_H

#include <pthread.h>

/* 0, or -1: the kernel gives none. */
int pando_thread_start(pthread_t *thread, void *(*work)(void *), void *place);

#endif
