/* Pando::HTTP::Lane: a worker's side of its lane; this file takes requests. Runs in workers. The reactor's side has
 * no Ruby. */
#include "bind_lane.h"
#include "bind_lock.h"
#include "bind_sys.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sys/fork.h"
#include "sys/scoreboard.h"

static void lane_mark(void *data)
{
    const struct lane_view *view = data;
    rb_gc_mark_movable(view->owner);
    rb_gc_mark_movable(view->last_remote);
}

static void lane_compact(void *data)
{
    struct lane_view *view = data;
    view->owner = rb_gc_location(view->owner);
    view->last_remote = rb_gc_location(view->last_remote);
}

/* In a child process something else may be mapped at the lane's address. */
static void lane_free(void *data)
{
    struct lane_view *view = data;
    pando_lock_forget(view);
    if (view->lane && pando_lane_view_usable(view)) pando_lane_unmap(view->lane);
    xfree(view);
}

static size_t lane_size(const void *data)
{
    return sizeof(struct lane_view);
}

static const rb_data_type_t lane_type = {
    .wrap_struct_name = "Pando::HTTP::Lane",
    .function = {.dmark = lane_mark, .dfree = lane_free, .dsize = lane_size, .dcompact = lane_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE lane_allocate(VALUE klass)
{
    struct lane_view *view;
    VALUE self = TypedData_Make_Struct(klass, struct lane_view, &lane_type, view);
    RB_OBJ_WRITE(self, &view->owner, Qnil);
    RB_OBJ_WRITE(self, &view->last_remote, Qnil);
    return self;
}

struct lane_view *pando_lane_view_of(VALUE self)
{
    struct lane_view *view;
    TypedData_Get_Struct(self, struct lane_view, &lane_type, view);
    if (!view->lane) rb_raise(rb_eRuntimeError, "Pando::HTTP::Lane was not initialized");
    return view;
}

/* memory: the descriptor from Channel.lane; from now on this is the lane of this process. The two eventfds must stay
 * open as long. */
static VALUE lane_initialize(VALUE self, VALUE channel, VALUE number, VALUE memory, VALUE eventfd, VALUE reactor_eventfd)
{
    struct lane_view *view;
    TypedData_Get_Struct(self, struct lane_view, &lane_type, view);
    uint32_t index = NUM2UINT(number);
    if (index >= PANDO_CHANNEL_LANES) rb_raise(rb_eIndexError, "no lane %u on this channel", index);
    if (view->lane) rb_raise(rb_eRuntimeError, "Pando::HTTP::Lane is initialized already");
    view->channel = pando_channel_of(channel);
    view->number = index;
    view->eventfd = pando_fd_of(eventfd);
    view->reactor_eventfd = pando_fd_of(reactor_eventfd);
    RB_OBJ_WRITE(self, &view->owner, channel);
    view->process = pando_pid();
    view->lane = pando_lane_map(pando_fd_of(memory));
    if (!view->lane || pando_lane_guard(view->lane) == -1) rb_sys_fail("lane");
    return self;
}

static VALUE lane_number(VALUE self)
{
    return UINT2NUM(pando_lane_view_of(self)->number);
}

int pando_lane_view_usable(const struct lane_view *view)
{
    return view->process == pando_pid();
}

void pando_lane_view_rouse(struct lane_view *view)
{
    if (pando_channel_rouse_reactor(view->channel, &view->rung)) pando_eventfd_signal(view->reactor_eventfd);
}

int pando_lane_view_holds(const struct lane_view *view)
{
    return !view->over && pando_lane_view_usable(view) && atomic_load(&view->lane->gone) != view->turn &&
           (uint32_t)atomic_load(&view->channel->shared->epoch) == view->epoch;
}

static int half_closed(const struct lane_view *view)
{
    return view->flags & PANDO_SLOT_HALF_CLOSED ||
           (pando_lane_view_usable(view) && pando_lane_half_closed(view->lane, view->slot, view->turn));
}

/* Copies once, since the reactor writes there. False if the slot contradicts itself, or is not the one claimed. */
static int copy_slot(struct lane_view *view, const struct pando_slot *slot, VALUE buffer)
{
    uint32_t turn = slot->turn;
    view->epoch = slot->epoch;
    view->head_bytes = slot->head_bytes;
    view->body_bytes = slot->body_bytes;
    view->file_bytes = slot->file_bytes;
    view->arrived = slot->arrived;
    view->body_time = slot->body_time;
    view->listener = slot->listener;
    view->flags = slot->flags;
    memcpy(view->remote, slot->remote, sizeof view->remote);
    atomic_signal_fence(memory_order_seq_cst);
    view->remote[sizeof view->remote - 1] = '\0';

    uint64_t bytes = view->flags & PANDO_SLOT_ALL_IN_FILE ? 0 : (uint64_t)view->head_bytes + view->body_bytes;
    if (turn != view->turn || bytes > PANDO_SLOT_BYTES || view->file_bytes > INT64_MAX) return 0;
    rb_str_modify(buffer);
    rb_str_set_len(buffer, 0);
    rb_str_modify_expand(buffer, (long)bytes);
    memcpy(RSTRING_PTR(buffer), slot->data, bytes);
    rb_str_set_len(buffer, (long)bytes);
    return 1;
}

/* Claims the request on offer and writes its head, and its body if the slot holds it, into buffer. False: no
 * request. */
static VALUE lane_take(VALUE self, VALUE buffer)
{
    struct lane_view *view = pando_lane_view_of(self);
    Check_Type(buffer, T_STRING);
    if (!pando_lane_view_usable(view)) return Qfalse;
    pando_lane_awake(view->lane);
    uint32_t turn;
    int slot;
    while ((slot = pando_lane_claim(view->lane, view->turn, &turn)) != -1) {
        view->turn = turn;
        view->slot = (uint32_t)slot;
        view->taken = pando_now();
        atomic_store_explicit(&view->lane->taken[slot], view->taken, memory_order_relaxed);
        view->sent = 0;
        view->over = 0;
        int fits = view->served[slot] != turn && copy_slot(view, &view->lane->slots[slot], buffer);
        view->served[slot] = turn; /* never take a request twice, whatever happens to the word that offers it */
        pando_lane_copied(view->lane, (uint32_t)slot, turn);
        if (fits && pando_lane_view_holds(view)) return Qtrue;
        pando_lane_view_end(view, PANDO_FRAME_ABORT, 0);
    }
    return Qfalse;
}

#define LANE_READER(name, expression) \
    static VALUE lane_##name(VALUE self) \
    { \
        const struct lane_view *view = pando_lane_view_of(self); \
        return expression; \
    }

LANE_READER(head_size, UINT2NUM(view->head_bytes))
LANE_READER(body_size, UINT2NUM(view->body_bytes))
LANE_READER(file_size, ULL2NUM(view->file_bytes))
LANE_READER(listener, UINT2NUM(view->listener))
LANE_READER(retry_p, view->flags & PANDO_SLOT_RETRY ? Qtrue : Qfalse)
LANE_READER(last_p, view->flags & PANDO_SLOT_LAST ? Qtrue : Qfalse)
LANE_READER(body_in_file_p, view->flags & PANDO_SLOT_BODY_IN_FILE ? Qtrue : Qfalse)
LANE_READER(streamed_p, view->flags & PANDO_SLOT_STREAMED ? Qtrue : Qfalse)
LANE_READER(all_in_file_p, view->flags & PANDO_SLOT_ALL_IN_FILE ? Qtrue : Qfalse)
LANE_READER(sent, ULL2NUM(view->sent))
LANE_READER(wanted_p, pando_lane_view_holds(view) ? Qtrue : Qfalse)
LANE_READER(half_closed_p, half_closed(view) ? Qtrue : Qfalse)

/* The client's address, nil on a UNIX socket. Most requests come by the same proxy, or from the same client again. */
static VALUE lane_remote(VALUE self)
{
    struct lane_view *view = pando_lane_view_of(self);
    size_t length = strlen(view->remote);
    if (length == 0) return Qnil;
    if (NIL_P(view->last_remote) || RSTRING_LEN(view->last_remote) != (long)length ||
        memcmp(RSTRING_PTR(view->last_remote), view->remote, length) != 0)
        RB_OBJ_WRITE(self, &view->last_remote, rb_obj_freeze(rb_str_new(view->remote, (long)length)));
    return view->last_remote;
}

/* Seconds from the end of the request's head to that of its body, as the reactor received it; nil: it has none. */
static VALUE lane_body_time(VALUE self)
{
    const struct lane_view *view = pando_lane_view_of(self);
    return view->body_time > 0 ? DBL2NUM((double)view->body_time / 1e9) : Qnil;
}

/* Seconds from the request's last byte until it was taken. */
static VALUE lane_queue_time(VALUE self)
{
    const struct lane_view *view = pando_lane_view_of(self);
    return DBL2NUM(view->taken > view->arrived ? (double)(view->taken - view->arrived) / 1e9 : 0.0);
}

/* The ticket that travels with a descriptor on the lane's socket. */
static VALUE lane_ticket(VALUE self)
{
    const struct lane_view *view = pando_lane_view_of(self);
    struct pando_reactor_ticket ticket = {view->epoch, view->turn};
    return rb_str_new((const char *)&ticket, sizeof ticket);
}

/* A copy of the body that `take` put behind the head. */
static VALUE lane_body(VALUE self, VALUE buffer)
{
    const struct lane_view *view = pando_lane_view_of(self);
    Check_Type(buffer, T_STRING);
    if (RSTRING_LEN(buffer) != (long)view->head_bytes + (long)view->body_bytes)
        rb_raise(rb_eArgError, "this is not the buffer that was filled");
    VALUE body = rb_str_new(RSTRING_PTR(buffer) + view->head_bytes, view->body_bytes);
    RB_GC_GUARD(buffer);
    return body;
}

/* Requests that this worker could have: one on its lane, or others that wait for its pool. */
static uint32_t waiting(const struct lane_view *view)
{
    uint32_t pool = atomic_load(&view->lane->pool);
    return atomic_load(&view->channel->shared->waiting[pool < PANDO_REACTOR_POOLS ? pool : 0]);
}

/* True: the reactor will wake this lane. False: a request is on it already. */
static VALUE lane_sleep(VALUE self)
{
    struct lane_view *view = pando_lane_view_of(self);
    if (!pando_lane_view_usable(view)) return Qtrue;
    if (!pando_lane_sleep(view->lane, pando_now())) return Qfalse;
    if (waiting(view) > 0) pando_lane_view_rouse(view);
    return Qtrue;
}

/* Accepts no requests until the lane sleeps again. */
static VALUE lane_close(VALUE self)
{
    struct lane_view *view = pando_lane_view_of(self);
    if (pando_lane_view_usable(view) && pando_lane_close(view->lane)) pando_eventfd_signal(view->reactor_eventfd);
    return Qnil;
}

static VALUE lane_step_back(VALUE self)
{
    const struct lane_view *view = pando_lane_view_of(self);
    if (pando_lane_view_usable(view)) pando_lane_step_back(view->lane, pando_now());
    return Qnil;
}

static VALUE lane_waiting_p(VALUE self)
{
    const struct lane_view *view = pando_lane_view_of(self);
    return pando_lane_view_usable(view) && (pando_lane_offers(view->lane) || waiting(view) > 0) ? Qtrue : Qfalse;
}

/* Whether the reactor may consider the worker idle. */
static VALUE lane_asleep_p(VALUE self)
{
    const struct lane_view *view = pando_lane_view_of(self);
    if (!pando_lane_view_usable(view)) return Qfalse;
    return atomic_load(&view->lane->asleep) && !atomic_load(&view->lane->closed) ? Qtrue : Qfalse;
}

/* Whether a request is on this lane. */
static VALUE lane_offered_p(VALUE self)
{
    const struct lane_view *view = pando_lane_view_of(self);
    return pando_lane_view_usable(view) && pando_lane_offers(view->lane) ? Qtrue : Qfalse;
}

/* A thread has given up the interpreter lock, and none wants it: a request that waits may be for this worker. */
static void tell_lock_free(void *data)
{
    struct lane_view *view = data;
    if (pando_lane_view_usable(view) && waiting(view) > 0) pando_lane_view_rouse(view);
}

/* follow_lock(publish): from now on the process knows which of its threads has the interpreter lock. publish: and the
 * reactor too, which then gives it a further request only while none has or wants it. The lane must be the first of
 * this worker, and live as long as the process. False: this Ruby cannot. */
static VALUE lane_follow_lock(VALUE self, VALUE publish)
{
    struct lane_view *view = pando_lane_view_of(self);
    if (!pando_lane_view_usable(view)) return Qfalse;
    int can = RTEST(publish) ? pando_lock_watch(&view->lane->lock_users, tell_lock_free, view)
                             : pando_lock_watch(NULL, NULL, NULL);
    return can ? Qtrue : Qfalse;
}

/* The application has taken over the connection of this lane's request. */
static VALUE lane_count_connection(VALUE self)
{
    pando_lane_view_of(self)->handed++;
    return Qnil;
}

static VALUE lane_connections(VALUE self)
{
    return UINT2NUM(pando_lane_view_of(self)->handed);
}

/* tell_connections(ever, open): those of this worker, for the reactor. The lane must be its first. */
static VALUE lane_tell_connections(VALUE self, VALUE ever, VALUE open)
{
    struct lane_view *view = pando_lane_view_of(self);
    uint64_t both = (NUM2ULL(ever) & UINT32_MAX) << 32 | NUM2UINT(open);
    if (pando_lane_view_usable(view)) atomic_store_explicit(&view->lane->connections, both, memory_order_relaxed);
    return Qnil;
}

/* Makes the lane's own eventfd readable. */
static VALUE lane_nudge(VALUE self)
{
    pando_eventfd_signal(pando_lane_view_of(self)->eventfd);
    return Qnil;
}

/* Reads the eventfd, so that it is not readable any more. */
static VALUE lane_drain(VALUE self)
{
    uint64_t count;
    while (read(pando_lane_view_of(self)->eventfd, &count, sizeof count) == -1 && errno == EINTR) continue;
    return Qnil;
}

void pando_init_http_lane(void)
{
    VALUE cLane = rb_define_class_under(pando_mHTTP, "Lane", rb_cObject);
    rb_define_alloc_func(cLane, lane_allocate);
    rb_undef_method(cLane, "initialize_copy");
    rb_define_method(cLane, "initialize", lane_initialize, 5);
    rb_define_method(cLane, "number", lane_number, 0);
    rb_define_method(cLane, "take", lane_take, 1);
    rb_define_method(cLane, "head_size", lane_head_size, 0);
    rb_define_method(cLane, "body_size", lane_body_size, 0);
    rb_define_method(cLane, "file_size", lane_file_size, 0);
    rb_define_method(cLane, "listener", lane_listener, 0);
    rb_define_method(cLane, "remote", lane_remote, 0);
    rb_define_method(cLane, "queue_time", lane_queue_time, 0);
    rb_define_method(cLane, "body_time", lane_body_time, 0);
    rb_define_method(cLane, "retry?", lane_retry_p, 0);
    rb_define_method(cLane, "last?", lane_last_p, 0);
    rb_define_method(cLane, "body_in_file?", lane_body_in_file_p, 0);
    rb_define_method(cLane, "streamed?", lane_streamed_p, 0);
    rb_define_method(cLane, "all_in_file?", lane_all_in_file_p, 0);
    rb_define_method(cLane, "sent", lane_sent, 0);
    rb_define_method(cLane, "wanted?", lane_wanted_p, 0);
    rb_define_method(cLane, "half_closed?", lane_half_closed_p, 0);
    rb_define_method(cLane, "ticket", lane_ticket, 0);
    rb_define_method(cLane, "body", lane_body, 1);
    rb_define_method(cLane, "sleep", lane_sleep, 0);
    rb_define_method(cLane, "close", lane_close, 0);
    rb_define_method(cLane, "count_connection", lane_count_connection, 0);
    rb_define_method(cLane, "connections", lane_connections, 0);
    rb_define_method(cLane, "tell_connections", lane_tell_connections, 2);
    rb_define_method(cLane, "step_back", lane_step_back, 0);
    rb_define_method(cLane, "waiting?", lane_waiting_p, 0);
    rb_define_method(cLane, "asleep?", lane_asleep_p, 0);
    rb_define_method(cLane, "offered?", lane_offered_p, 0);
    rb_define_method(cLane, "follow_lock", lane_follow_lock, 1);
    rb_define_method(cLane, "nudge", lane_nudge, 0);
    rb_define_method(cLane, "drain", lane_drain, 0);
    pando_init_http_lane_answer(cLane);
}
