/* The half of Pando::HTTP::Lane that answers the request taken last. Runs in workers. */
#include "bind_http_answer.h"
#include "bind_lane.h"

#include <sys/uio.h>

#define MAX_PARTS 64

static VALUE outcome(struct lane_view *view, int put, VALUE success)
{
    if (put != 1) return Qnil;
    pando_lane_view_rouse(view);
    return success;
}

static struct pando_frame frame_of(const struct lane_view *view, uint32_t kind, uint64_t value)
{
    return (struct pando_frame){.kind = kind, .epoch = view->epoch, .turn = view->turn, .value = value};
}

/* true; nil: no room now; false: nobody wants it any more. */
static VALUE put_bare(struct lane_view *view, uint32_t kind, uint64_t value)
{
    struct pando_frame frame = frame_of(view, kind, value);
    if (!pando_lane_view_holds(view)) return Qfalse;
    return outcome(view, pando_lane_put(view->lane, &frame, NULL, 0), Qtrue);
}

VALUE pando_lane_view_end(struct lane_view *view, uint32_t kind, uint64_t value)
{
    struct pando_frame frame = frame_of(view, kind, value);
    if (!pando_lane_view_holds(view)) return Qfalse;
    int put = pando_lane_put_end(view->lane, &frame);
    view->over = put == 1;
    return outcome(view, put, Qtrue);
}

static int is_empty(VALUE part)
{
    Check_Type(part, T_STRING);
    return RSTRING_LEN(part) == 0;
}

/* Gathers bytes, at most a frame's; *whole: nothing is left after them. */
static uint32_t gather(VALUE parts, size_t skip, struct iovec *vectors, size_t *count, int *whole)
{
    uint64_t bytes = 0;
    long i = 0;
    *count = 0;
    for (; i < RARRAY_LEN(parts) && *count < MAX_PARTS && bytes < PANDO_FRAME_PAYLOAD; i++) {
        VALUE part = RARRAY_AREF(parts, i);
        Check_Type(part, T_STRING);
        size_t len = (size_t)RSTRING_LEN(part);
        if (skip >= len) {
            skip -= len;
            continue;
        }
        vectors[*count].iov_base = RSTRING_PTR(part) + skip;
        vectors[*count].iov_len = len - skip;
        bytes += len - skip;
        skip = 0;
        ++*count;
    }
    while (i < RARRAY_LEN(parts) && bytes <= PANDO_FRAME_PAYLOAD && is_empty(RARRAY_AREF(parts, i))) i++;
    *whole = i == RARRAY_LEN(parts) && bytes <= PANDO_FRAME_PAYLOAD;
    return (uint32_t)(bytes < PANDO_FRAME_PAYLOAD ? bytes : PANDO_FRAME_PAYLOAD);
}

/* Puts what follows the first offset bytes of an Array of Strings, as much as one frame takes. Returns the number of
 * bytes; nil: no room now; false: the client is gone. last: true or false (whether the connection may be kept) ends
 * the response after the last byte; nil: more is to come. */
static VALUE lane_put(VALUE self, VALUE parts, VALUE offset, VALUE last)
{
    struct lane_view *view = pando_lane_view_of(self);
    struct iovec vectors[MAX_PARTS];
    size_t count;
    int whole;
    Check_Type(parts, T_ARRAY);
    if (!pando_lane_view_holds(view)) return Qfalse;

    struct pando_frame frame = frame_of(view, PANDO_FRAME_DATA, 0);
    frame.bytes = gather(parts, NUM2SIZET(offset), vectors, &count, &whole);
    int put = 1, ends = whole && !NIL_P(last);
    if (ends)
        put = pando_lane_put_last(view->lane, &frame, vectors, count, RTEST(last));
    else if (frame.bytes > 0)
        put = pando_lane_put(view->lane, &frame, vectors, count);
    RB_GC_GUARD(parts);
    /* Counted here: in Ruby, an interrupt could come in between. */
    if (put == 1) view->sent += frame.bytes;
    if (put == 1) view->over = ends;
    return outcome(view, put, UINT2NUM(frame.bytes));
}

/* answer(status_line, fields, body, ending, keep): puts an ordinary response as a whole. true; nil: not ordinary, or
 * no room now, and nothing was put; false: the client is gone. */
static VALUE lane_answer(VALUE self, VALUE status_line, VALUE fields, VALUE body, VALUE ending, VALUE keep)
{
    struct lane_view *view = pando_lane_view_of(self);
    struct pando_answer answer;
    if (!pando_lane_view_holds(view)) return Qfalse;
    if (!pando_answer_compose(&answer, status_line, fields, body, ending)) return Qnil;
    struct pando_frame frame = frame_of(view, PANDO_FRAME_DATA, 0);
    frame.bytes = (uint32_t)(answer.head_bytes + answer.body_bytes);
    int put = pando_lane_put_last(view->lane, &frame, answer.parts, answer.count, RTEST(keep));
    RB_GC_GUARD(body);
    if (put == 1) view->sent += frame.bytes;
    if (put == 1) view->over = 1;
    return outcome(view, put, Qtrue);
}

/* Puts a whole interim response, which does not count as bytes of the response; returns as put_bare does. */
static VALUE lane_put_interim(VALUE self, VALUE text)
{
    struct lane_view *view = pando_lane_view_of(self);
    Check_Type(text, T_STRING);
    if (RSTRING_LEN(text) > PANDO_FRAME_PAYLOAD) rb_raise(rb_eArgError, "an interim response must fit into a frame");
    if (!pando_lane_view_holds(view)) return Qfalse;
    struct pando_frame frame = frame_of(view, PANDO_FRAME_DATA, 1);
    struct iovec part = {RSTRING_PTR(text), (size_t)RSTRING_LEN(text)};
    frame.bytes = (uint32_t)part.iov_len;
    VALUE done = outcome(view, pando_lane_put(view->lane, &frame, &part, 1), Qtrue);
    RB_GC_GUARD(text);
    return done;
}

/* So many bytes of the file whose descriptor is on the lane's socket. */
static VALUE lane_put_file(VALUE self, VALUE bytes)
{
    struct lane_view *view = pando_lane_view_of(self);
    VALUE done = put_bare(view, PANDO_FRAME_FILE, NUM2ULL(bytes));
    if (done == Qtrue) view->sent += NUM2ULL(bytes);
    return done;
}

/* Asks for the request's file, over the lane's socket. */
static VALUE lane_want_file(VALUE self)
{
    return put_bare(pando_lane_view_of(self), PANDO_FRAME_WANT_FILE, 0);
}

/* Asks for the client's own socket, once everything answered so far is sent. */
static VALUE lane_want_socket(VALUE self)
{
    return put_bare(pando_lane_view_of(self), PANDO_FRAME_WANT_SOCKET, 0);
}

/* abort(status): the response cannot be finished; or the worker has sent it itself, on the client's own socket, with
 * this status. 0: none. */
static VALUE lane_abort(VALUE self, VALUE status)
{
    return pando_lane_view_end(pando_lane_view_of(self), PANDO_FRAME_ABORT, NUM2UINT(status));
}

/* From another thread than the one that answers: the worker leaves, and the answer ends early. */
static VALUE lane_cut(VALUE self)
{
    struct lane_view *view = pando_lane_view_of(self);
    if (pando_lane_view_usable(view)) atomic_store(&view->lane->cut, view->turn);
    return Qnil;
}

/* After put found no room. True: wait for the eventfd; false: there is room again. */
static VALUE lane_starve(VALUE self)
{
    struct lane_view *view = pando_lane_view_of(self);
    return pando_lane_view_usable(view) && pando_lane_starve(view->lane) ? Qtrue : Qfalse;
}

static VALUE lane_fed(VALUE self)
{
    struct lane_view *view = pando_lane_view_of(self);
    if (pando_lane_view_usable(view)) pando_lane_fed(view->lane);
    return Qnil;
}

void pando_init_http_lane_answer(VALUE cLane)
{
    rb_define_method(cLane, "put", lane_put, 3);
    rb_define_method(cLane, "answer", lane_answer, 5);
    rb_define_method(cLane, "put_interim", lane_put_interim, 1);
    rb_define_method(cLane, "put_file", lane_put_file, 1);
    rb_define_method(cLane, "want_file", lane_want_file, 0);
    rb_define_method(cLane, "want_socket", lane_want_socket, 0);
    rb_define_method(cLane, "abort", lane_abort, 1);
    rb_define_method(cLane, "cut", lane_cut, 0);
    rb_define_method(cLane, "starve", lane_starve, 0);
    rb_define_method(cLane, "fed", lane_fed, 0);
}
