/* Follows which thread has the interpreter lock (GVL), by the events of Ruby 3.2 and later: READY, a thread wants the
 * lock; RESUMED, it has the lock; SUSPENDED, it has given the lock up. Each thread writes what it does into the job that
 * it serves, for kill reports. All threads together count how many have or want the lock, for the reactor, which gives a
 * worker another request only if that costs the others nothing. Runs in workers with threads. */
#include "bind_lock.h"

#include <ruby.h>
#include <ruby/thread.h>

#include "http/lane.h"
#include "sys/fork.h"

#ifdef RUBY_INTERNAL_THREAD_EVENT_READY

static _Thread_local struct pando_job *served;
static _Thread_local int uses; /* this thread is among the users */
static pid_t process;          /* that is followed: its children have inherited the hook, and not the memory */
static _Atomic uint32_t *published;
static _Atomic uint32_t users;
static void (*freed)(void *);
static void *freed_data;

static void note(enum pando_lock_state state)
{
    if (!served) return;
    uint64_t now = pando_now();
    uint64_t since = atomic_load_explicit(&served->lock_since, memory_order_relaxed);
    if (state == PANDO_LOCK_HELD &&
        atomic_load_explicit(&served->lock, memory_order_relaxed) == PANDO_LOCK_WANTED && now > since) {
        uint64_t waited = atomic_load_explicit(&served->lock_wait, memory_order_relaxed);
        atomic_store_explicit(&served->lock_wait, waited + now - since, memory_order_relaxed);
    }
    atomic_store_explicit(&served->lock_since, now, memory_order_relaxed);
    atomic_store_explicit(&served->lock, state, memory_order_release);
}

static void publish(uint32_t count)
{
    if (published) atomic_store(published, PANDO_LANE_LOCK | count);
}

static void use(void)
{
    if (uses) return;
    uses = 1;
    uint32_t count = atomic_fetch_add(&users, 1) + 1;
    publish(count);
}

static void leave(void)
{
    if (!uses) return;
    uses = 0;
    uint32_t count = atomic_fetch_sub(&users, 1) - 1;
    publish(count);
    if (count == 0 && freed) freed(freed_data);
}

static void on_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *nothing)
{
    if (process != pando_pid()) return;
    switch (event) {
    case RUBY_INTERNAL_THREAD_EVENT_READY:
        use();
        note(PANDO_LOCK_WANTED);
        break;
    case RUBY_INTERNAL_THREAD_EVENT_RESUMED:
        use();
        note(PANDO_LOCK_HELD);
        break;
    default: /* SUSPENDED, EXITED */
        note(PANDO_LOCK_FREE);
        leave();
    }
}

void pando_lock_follow(struct pando_job *job)
{
    served = job;
    if (process == pando_pid()) note(PANDO_LOCK_HELD);
}

void pando_lock_publish(_Atomic uint32_t *count, void (*when_freed)(void *), void *data)
{
    freed_data = data;
    freed = when_freed;
    published = count;
    publish(atomic_load(&users));
}

void pando_lock_forget(const void *data)
{
    if (data != freed_data) return;
    published = NULL;
    freed = NULL;
}

/* A forked child inherits the hook with all else, and starts with the thread that calls this. */
int pando_lock_watch(void)
{
    static int hooked;
    published = NULL;
    freed = NULL;
    served = NULL;
    uses = 1;
    atomic_store(&users, 1);
    process = pando_pid();
    if (!hooked)
        rb_internal_thread_add_event_hook(on_event,
                                          RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                                              RUBY_INTERNAL_THREAD_EVENT_SUSPENDED |
                                              RUBY_INTERNAL_THREAD_EVENT_EXITED,
                                          NULL);
    hooked = 1;
    return 1;
}

#else

void pando_lock_follow(struct pando_job *job) {}

void pando_lock_publish(_Atomic uint32_t *count, void (*freed)(void *), void *data) {}

void pando_lock_forget(const void *data) {}

int pando_lock_watch(void)
{
    return 0;
}

#endif
