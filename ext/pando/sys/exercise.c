/* Takes and releases the C library's locks, see exercise.h. Runs in new workers and molds, and in the mold of a cold
 * boot. */
#include "exercise.h"

#include <dlfcn.h>
#include <link.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#define SMALLEST 16
#define LARGEST (16 * 1024)
#define STEP 10 /* between sizes: each takes a page or two of the forked child's own */
/* Above mmap's threshold, unless it was set by hand. */
#define MAPPED (256 * 1024)
#define BLOCKS_MAX 8

static volatile char *block(size_t size)
{
    volatile char *memory = malloc(size);
    if (memory) *memory = 1; /* else the compiler would drop the pair */
    return memory;
}

void pando_exercise_allocator(void)
{
    volatile char *blocks[BLOCKS_MAX];
    int count = 0;
    for (size_t size = SMALLEST; size <= LARGEST && count < BLOCKS_MAX - 1; size *= STEP) blocks[count++] = block(size);
    blocks[count++] = block(MAPPED);
    while (count > 0) free((void *)blocks[--count]);
}

static void *allocate(void *unused)
{
    pando_exercise_allocator();
    return unused;
}

void pando_exercise_thread(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all); /* no signal handler of the interpreter may run in this thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, allocate, NULL) == 0) pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void pando_exercise_stdio(void)
{
    FILE *const standard[] = {stdin, stdout, stderr};
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++) {
        flockfile(standard[i]);
        funlockfile(standard[i]);
    }
    FILE *null = fopen("/dev/null", "we");
    if (!null) return;
    fputs("pando\n", null);
    fclose(null);
}

void pando_exercise_clock(void)
{
    struct tm local;
    time_t now = time(NULL);
    localtime_r(&now, &local);
}

static int first_object(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)object, (void)size, (void)unused;
    return 1;
}

void pando_exercise_loader(void)
{
    /* Parts of the GNU C library that no program links with any more: a few pages each. A library stays loaded in the
     * mold of a cold boot, because unloading it writes to the loader's records of all libraries. */
    static const char *const small[] = {"libBrokenLocale.so.1", "libanl.so.1", "libutil.so.1"};
    dl_iterate_phdr(first_object, NULL); /* takes the other lock, that of the list */
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        void *library = dlopen(small[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
        if (!library) continue;
        dlclose(library);
        return;
    }
    void *self = dlopen(NULL, RTLD_LAZY); /* loads nothing new, but takes the same lock */
    if (self) dlclose(self);
}

static void look_up(const char *host, const char *service, int flags)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags}, *found;
    if (getaddrinfo(host, service, &hints, &found) == 0) freeaddrinfo(found);
}

void pando_exercise_resolver(int name_too)
{
    look_up("127.0.0.1", "80", AI_NUMERICHOST | AI_NUMERICSERV);
    look_up(NULL, "http", AI_PASSIVE);
    if (name_too) look_up("localhost", NULL, 0);
}
