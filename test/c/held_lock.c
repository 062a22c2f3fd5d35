/* A library with a thread of its own that takes a lock and keeps it: what a fork must not catch.
 * Loaded by applications under test. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t taken;

static void *hold(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    sem_post(&taken);
    for (;;) pause();
    return NULL;
}

/* Returns when a thread named "flusher" has the lock. */
int held_lock_start(void)
{
    pthread_t thread;
    static int started;
    if (started++) return 0;
    sem_init(&taken, 0, 0);
    if (pthread_create(&thread, NULL, hold, NULL) != 0) return -1;
    pthread_setname_np(thread, "flusher");
    pthread_detach(thread);
    return sem_wait(&taken);
}

static void *flicker(void *unused)
{
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        usleep(4000);
        pthread_mutex_unlock(&lock);
        usleep(6000);
    }
    return NULL;
}

/* From now on a thread has the lock now and then. */
int held_lock_flicker(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, flicker, NULL) != 0) return -1;
    return pthread_detach(thread);
}

/* For ever, where that thread has it. */
int held_lock_take(void)
{
    pthread_mutex_lock(&lock);
    return pthread_mutex_unlock(&lock);
}
