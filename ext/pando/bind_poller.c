/* Pando::Sys::Poller: epoll over anything with a descriptor, each with the Ruby object that its events concern. Runs
 * in any process. */
#include "bind_sys.h"

#include <errno.h>
#include <ruby/thread.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_A_WAIT 64

struct waiting {
    int epoll, timeout_ms, count, failure;
    struct epoll_event events[EVENTS_A_WAIT];
};

struct poller {
    int fd;
    VALUE subjects; /* descriptor => object */
    struct waiting waiting; /* not on the stack: an exception may come between the events and the caller */
};

static void poller_mark(void *data)
{
    rb_gc_mark_movable(((struct poller *)data)->subjects);
}

static void poller_compact(void *data)
{
    struct poller *poller = data;
    poller->subjects = rb_gc_location(poller->subjects);
}

static void poller_free(void *data)
{
    struct poller *poller = data;
    if (poller->fd != -1) close(poller->fd);
    xfree(poller);
}

static const rb_data_type_t poller_type = {
    .wrap_struct_name = "Pando::Sys::Poller",
    .function = {.dmark = poller_mark, .dfree = poller_free, .dcompact = poller_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE poller_allocate(VALUE klass)
{
    struct poller *poller;
    VALUE self = TypedData_Make_Struct(klass, struct poller, &poller_type, poller);
    poller->fd = -1;
    RB_OBJ_WRITE(self, &poller->subjects, Qnil);
    return self;
}

static struct poller *poller_get(VALUE self)
{
    struct poller *poller;
    TypedData_Get_Struct(self, struct poller, &poller_type, poller);
    if (poller->fd == -1) rb_raise(rb_eIOError, "closed poller");
    return poller;
}

static VALUE poller_initialize(VALUE self)
{
    struct poller *poller;
    TypedData_Get_Struct(self, struct poller, &poller_type, poller);
    RB_OBJ_WRITE(self, &poller->subjects, rb_hash_new());
    poller->fd = epoll_create1(EPOLL_CLOEXEC);
    if (poller->fd == -1) rb_sys_fail("epoll_create1");
    return self;
}

static ID exclusive, edge;

static uint32_t flags_of(VALUE manner)
{
    if (NIL_P(manner)) return 0;
    ID id = rb_to_id(manner);
    if (id == exclusive) return EPOLLEXCLUSIVE;
    if (id == edge) return EPOLLET;
    rb_raise(rb_eArgError, "nil, :exclusive or :edge, not %"PRIsVALUE, rb_inspect(manner));
}

/* add(io, subject, manner = nil). :exclusive wakes only one of several processes that wait; :edge reports each new
 * readiness once, for example of an eventfd that is written but never read. */
static VALUE poller_add(int argc, VALUE *argv, VALUE self)
{
    VALUE io, subject, manner;
    struct poller *poller = poller_get(self);
    rb_scan_args(argc, argv, "21", &io, &subject, &manner);
    int fd = pando_fd_of(io);
    struct epoll_event event = {.events = EPOLLIN | flags_of(manner), .data.fd = fd};
    if (epoll_ctl(poller->fd, EPOLL_CTL_ADD, fd, &event) == -1) rb_sys_fail("epoll_ctl(ADD)");
    rb_hash_aset(poller->subjects, INT2NUM(fd), subject);
    return self;
}

/* Call it before the descriptor is closed: a registration belongs to the open file, not to the number. */
static VALUE poller_remove(VALUE self, VALUE io)
{
    struct poller *poller = poller_get(self);
    int fd = pando_fd_of(io);
    rb_hash_delete(poller->subjects, INT2NUM(fd));
    if (epoll_ctl(poller->fd, EPOLL_CTL_DEL, fd, NULL) == -1 && errno != ENOENT && errno != EBADF)
        rb_sys_fail("epoll_ctl(DEL)");
    for (int i = 0; i < poller->waiting.count; i++)
        if (poller->waiting.events[i].data.fd == fd) poller->waiting.events[i].data.fd = -1;
    return self;
}

static void *wait_without_lock(void *data)
{
    struct waiting *waiting = data;
    waiting->count = epoll_wait(waiting->epoll, waiting->events, EVENTS_A_WAIT, waiting->timeout_ms);
    waiting->failure = errno;
    return NULL;
}

/* The subjects that are ready; none after the timeout (seconds; nil: no limit) or a signal. Reports again what an
 * exception took away, since an edge comes only once. */
static VALUE poller_wait(VALUE self, VALUE timeout)
{
    struct poller *poller = poller_get(self);
    struct waiting *waiting = &poller->waiting;
    if (waiting->count <= 0) {
        waiting->epoll = poller->fd;
        waiting->timeout_ms = NIL_P(timeout) ? -1 : pando_milliseconds(timeout);
        rb_thread_call_without_gvl(wait_without_lock, waiting, RUBY_UBF_IO, NULL);
        if (waiting->count == -1 && waiting->failure != EINTR) rb_syserr_fail(waiting->failure, "epoll_wait");
    }
    rb_thread_check_ints();

    VALUE ready = rb_ary_new();
    for (int i = 0; i < waiting->count; i++) {
        VALUE subject = rb_hash_lookup(poller->subjects, INT2NUM(waiting->events[i].data.fd));
        if (!NIL_P(subject)) rb_ary_push(ready, subject);
    }
    waiting->count = 0;
    RB_GC_GUARD(self);
    return ready;
}

/* In a forked child: closes the inherited epoll without touching the forker's registrations. */
static VALUE poller_close(VALUE self)
{
    struct poller *poller;
    TypedData_Get_Struct(self, struct poller, &poller_type, poller);
    if (poller->fd != -1) close(poller->fd);
    poller->fd = -1;
    return Qnil;
}

void pando_init_poller(void)
{
    VALUE cPoller = rb_define_class_under(pando_mSys, "Poller", rb_cObject);
    rb_define_alloc_func(cPoller, poller_allocate);
    exclusive = rb_intern("exclusive");
    edge = rb_intern("edge");
    rb_define_method(cPoller, "initialize", poller_initialize, 0);
    rb_define_method(cPoller, "add", poller_add, -1);
    rb_define_method(cPoller, "remove", poller_remove, 1);
    rb_define_method(cPoller, "wait", poller_wait, 1);
    rb_define_method(cPoller, "close", poller_close, 0);
}
