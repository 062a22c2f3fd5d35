/* Identifies and trims the allocator, see allocator.h. Runs in any process. */
#include "allocator.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stddef.h>

typedef int control(const char *name, void *old, size_t *old_size, void *new, size_t new_size);

/* From jemalloc(3); looked up at run time, since the extension is built without it. */
static control *jemalloc_control(void)
{
    control *found;
    *(void **)&found = dlsym(RTLD_DEFAULT, "mallctl");
    return found;
}

const char *pando_jemalloc_version(void)
{
    control *ask = jemalloc_control();
    const char *version = NULL;
    size_t size = sizeof version;
    return ask && ask("version", &version, &size, NULL, 0) == 0 ? version : NULL;
}

/* This thread's cache first; 4096 stands for all arenas (MALLCTL_ARENAS_ALL). */
static void purge(control *tell)
{
    tell("thread.tcache.flush", NULL, NULL, NULL, 0);
    tell("arena.4096.purge", NULL, NULL, NULL, 0);
}

void pando_trim_memory(void)
{
    control *tell = jemalloc_control();
    if (tell) {
        purge(tell);
        return;
    }
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
