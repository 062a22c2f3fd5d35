/* Binds sys/page_watch.c, and marks where garbage collections begin and end. Runs in workers. */
#include "bind_sys.h"

#include <ruby/debug.h>
#include <stdlib.h>

#include "bind_pages.h"
#include "sys/page_watch.h"

static VALUE collections = Qnil; /* tracepoint, while pages are watched */
static VALUE major_by;

/* Runs inside the garbage collector: allocates nothing. */
static void on_collection(VALUE tracepoint, void *data)
{
    rb_event_flag_t event = rb_tracearg_event_flag(rb_tracearg_from_tracepoint(tracepoint));
    if (event == RUBY_INTERNAL_EVENT_GC_ENTER)
        pando_page_watch_mark(PANDO_CAUSE_JOB);
    else
        pando_page_watch_mark(NIL_P(rb_gc_latest_gc_info(major_by)) ? PANDO_CAUSE_MINOR_GC : PANDO_CAUSE_MAJOR_GC);
}

/* Begins to watch which pages become this process's own, and why. */
static VALUE watch_pages(VALUE self)
{
    if (NIL_P(collections)) {
        rb_event_flag_t events = RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT;
        collections = rb_tracepoint_new(0, events, on_collection, NULL);
        rb_gc_latest_gc_info(major_by); /* the first call allocates */
    }
    if (pando_page_watch_begin() == -1) rb_sys_fail("/proc/self/pagemap");
    rb_tracepoint_enable(collections);
    return Qnil;
}

/* A job is done: pages that have become our own since belong to it, later ones to the next job. */
static VALUE watch_next_job(VALUE self)
{
    if (pando_page_watch_end_job() == -1) rb_sys_fail("/proc/self/pagemap");
    return Qnil;
}

/* Ends the watch. [steps, pages, complete?]: see sys/page_watch.h, in the machine's byte order. */
static VALUE watched_pages(VALUE self)
{
    if (!NIL_P(collections)) rb_tracepoint_disable(collections);
    collections = Qnil;
    struct pando_page_watch found;
    pando_page_watch_read(&found);
    VALUE steps = rb_str_new((const char *)found.steps, (long)(found.step_count * sizeof(*found.steps)));
    VALUE pages = rb_str_new((const char *)found.pages, (long)(found.page_count * sizeof(*found.pages)));
    pando_page_watch_end();
    return rb_ary_new_from_args(3, steps, pages, found.cut ? Qfalse : Qtrue);
}

/* The addresses of the pages of Ruby's heap, as 64-bit numbers, ascending. Finishes a garbage collection that is
 * under way. */
static VALUE heap_pages(VALUE self)
{
    size_t count;
    const uintptr_t *pages = pando_heap_pages(&count);
    return rb_str_new((const char *)pages, (long)(count * sizeof(*pages)));
}

void pando_init_page_watch(void)
{
    major_by = ID2SYM(rb_intern("major_by"));
    rb_gc_register_mark_object(major_by);
    rb_gc_register_address(&collections);
    rb_define_singleton_method(pando_mSys, "watch_pages", watch_pages, 0);
    rb_define_singleton_method(pando_mSys, "watch_next_job", watch_next_job, 0);
    rb_define_singleton_method(pando_mSys, "watched_pages", watched_pages, 0);
    rb_define_singleton_method(pando_mSys, "heap_pages", heap_pages, 0);
}
