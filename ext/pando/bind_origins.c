/* Pando::Origins: the application's line that creates each new object. Runs in processes that `pando doctor` starts.
 * Ruby's own allocation tracing records the innermost frame, which usually belongs to a gem; this records the
 * innermost frame in the application's own files. */
#include "pando_ext.h"

#include "origins.h"

#include <ruby/debug.h>
#include <stdbool.h>
#include <string.h>

#define DEPTH 256 /* frames searched for each object */

static VALUE tracepoint;
static VALUE own, foreign; /* path prefixes: frozen arrays of strings */

static bool begins_with_any(VALUE prefixes, const char *path, size_t length)
{
    for (long at = 0; at < RARRAY_LEN(prefixes); at++) {
        VALUE prefix = RARRAY_AREF(prefixes, at);
        size_t wanted = (size_t)RSTRING_LEN(prefix);
        if (length >= wanted && memcmp(path, RSTRING_PTR(prefix), wanted) == 0) return true;
    }
    return false;
}

/* Runs inside an object's allocation, so it may allocate none. */
static void on_new_object(VALUE point, void *data)
{
    static VALUE frames[DEPTH];
    static int lines[DEPTH];
    struct pando_place place = { NULL, 0 };

    rb_trace_arg_t *event = rb_tracearg_from_tracepoint(point);
    uintptr_t address = (uintptr_t)rb_tracearg_object(event);
    int count = rb_profile_frames(0, DEPTH, frames, lines);
    for (int at = 0; at < count; at++) {
        VALUE path = rb_profile_frame_path(frames[at]);
        if (!RB_TYPE_P(path, T_STRING)) continue;
        const char *text = RSTRING_PTR(path);
        size_t length = (size_t)RSTRING_LEN(path);
        if (!begins_with_any(own, text, length) || begins_with_any(foreign, text, length)) continue;
        place.path = pando_origins_intern(text, length);
        /* With YJIT the innermost line may be missing; the event has it. */
        place.line = lines[at] ? lines[at] : NUM2INT(rb_tracearg_lineno(event));
        break;
    }
    pando_origins_put(address, place);
}

static VALUE frozen_prefixes(VALUE prefixes)
{
    VALUE copy = rb_ary_new();
    Check_Type(prefixes, T_ARRAY);
    for (long at = 0; at < RARRAY_LEN(prefixes); at++) {
        VALUE prefix = RARRAY_AREF(prefixes, at);
        rb_ary_push(copy, rb_str_new_frozen(StringValue(prefix)));
    }
    return rb_obj_freeze(copy);
}

/* start(own, foreign): paths that begin with a prefix in own and none in foreign are the application's. */
static VALUE start(VALUE self, VALUE own_prefixes, VALUE foreign_prefixes)
{
    if (RTEST(tracepoint)) rb_raise(rb_eArgError, "origins are being traced already");
    own = frozen_prefixes(own_prefixes);
    foreign = frozen_prefixes(foreign_prefixes);
    pando_origins_clear();
    tracepoint = rb_tracepoint_new(Qnil, RUBY_INTERNAL_EVENT_NEWOBJ, on_new_object, NULL);
    rb_tracepoint_enable(tracepoint);
    return Qnil;
}

/* What was recorded stays until the next start. */
static VALUE stop(VALUE self)
{
    if (RTEST(tracepoint)) rb_tracepoint_disable(tracepoint);
    tracepoint = Qnil;
    return Qnil;
}

/* The path and line recorded for the object at this address; nil: none of the application's. */
static VALUE at_address(VALUE self, VALUE address)
{
    struct pando_place place = pando_origins_get((uintptr_t)NUM2ULL(address));
    return place.path ? rb_assoc_new(rb_utf8_str_new_cstr(place.path), INT2NUM(place.line)) : Qnil;
}

/* The address as in a heap dump. */
static VALUE address_of(VALUE self, VALUE object)
{
    return ULL2NUM((unsigned long long)object);
}

void pando_init_origins(void)
{
    VALUE module = rb_define_module_under(pando_mPando, "Origins");
    tracepoint = own = foreign = Qnil;
    rb_gc_register_address(&tracepoint);
    rb_gc_register_address(&own);
    rb_gc_register_address(&foreign);
    rb_define_singleton_method(module, "start", start, 2);
    rb_define_singleton_method(module, "stop", stop, 0);
    rb_define_singleton_method(module, "at", at_address, 1);
    rb_define_singleton_method(module, "address", address_of, 1);
}
