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

static pid_t process; /* that is followed: its children have inherited the hook, and not the memory */
static _Atomic uint32_t *users;
static _Atomic uint32_t unpublished;
static void (*freed)(void *);
static void *freed_data;

/* What is known of a thread: the job that it serves, and in the lowest bit whether it is among the users. */
#define USES ((uintptr_t)1)
_Static_assert(_Alignof(struct pando_job) > USES, "the lowest bit of a job's address is free");

#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET

/* Ruby 3.3 and later: a thread that wakes another reports READY for it, so the thread is the event's. */
static rb_internal_thread_specific_key_t key;
#define THREAD_OF(event) ((event)->thread)

static uintptr_t known(VALUE thread)
{
    return (uintptr_t)rb_internal_thread_specific_get(thread, key);
}

static void know(VALUE thread, uintptr_t what)
{
    rb_internal_thread_specific_set(thread, key, (void *)what);
}

static void make_key(void)
{
    key = rb_internal_thread_specific_key_create();
}

#else

/* Ruby 3.2: each thread reports its own events. */
static _Thread_local uintptr_t known_of_this;
#define THREAD_OF(event) Qnil

static uintptr_t known(VALUE thread)
{
    return known_of_this;
}

static void know(VALUE thread, uintptr_t what)
{
    known_of_this = what;
}

static void make_key(void) {}

#endif

static void note(VALUE thread, enum pando_lock_state state)
{
    struct pando_job *served = (struct pando_job *)(known(thread) & ~USES);
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

static void use(VALUE thread)
{
    if (known(thread) & USES) return;
    know(thread, known(thread) | USES);
    atomic_fetch_add(users, 1);
}

static void leave(VALUE thread)
{
    if (!(known(thread) & USES)) return;
    know(thread, known(thread) & ~USES);
    if (atomic_fetch_sub(users, 1) == (PANDO_LANE_LOCK | 1) && freed) freed(freed_data);
}

static void on_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *nothing)
{
    if (process != pando_pid()) return;
    VALUE thread = THREAD_OF(data);
    switch (event) {
    case RUBY_INTERNAL_THREAD_EVENT_READY:
        use(thread);
        note(thread, PANDO_LOCK_WANTED);
        break;
    case RUBY_INTERNAL_THREAD_EVENT_RESUMED:
        use(thread);
        note(thread, PANDO_LOCK_HELD);
        break;
    default: /* SUSPENDED, EXITED */
        note(thread, PANDO_LOCK_FREE);
        leave(thread);
    }
}

void pando_lock_follow(struct pando_job *job)
{
    if (process != pando_pid()) return;
    VALUE thread = rb_thread_current();
    know(thread, (uintptr_t)job | (known(thread) & USES));
    note(thread, PANDO_LOCK_HELD);
}

void pando_lock_forget(const void *data)
{
    if (data == freed_data) process = 0;
}

/* A forked child inherits the hook with all else, and starts with the thread that calls this. */
int pando_lock_watch(_Atomic uint32_t *count, void (*when_freed)(void *), void *data)
{
    static int hooked;
    if (!hooked) make_key();
    users = count ? count : &unpublished;
    freed = when_freed;
    freed_data = data;
    know(rb_thread_current(), USES);
    atomic_store(users, PANDO_LANE_LOCK | 1);
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

void pando_lock_forget(const void *data) {}

int pando_lock_watch(_Atomic uint32_t *count, void (*when_freed)(void *), void *data)
{
    return 0;
}

#endif
