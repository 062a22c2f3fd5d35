/* The flags of a Pando::Sys::Row: yes-or-no facts about its process. Written by that process, read by the monitor; one
 * the other way round. */
#include "bind_row.h"

static VALUE flag(VALUE self, uint32_t flag)
{
    return atomic_load_explicit(&pando_row_of(self)->flags, memory_order_acquire) & flag ? Qtrue : Qfalse;
}

static void set(VALUE self, uint32_t flag)
{
    atomic_fetch_or_explicit(&pando_row_of(self)->flags, flag, memory_order_release);
}

static VALUE row_fork_unsafe_p(VALUE self)
{
    return flag(self, PANDO_ROW_FORK_UNSAFE);
}

static VALUE row_fork_unsafe(VALUE self)
{
    set(self, PANDO_ROW_FORK_UNSAFE);
    return Qtrue;
}

/* The obstacle to forking is gone. */
static VALUE row_fork_safe(VALUE self)
{
    atomic_fetch_and_explicit(&pando_row_of(self)->flags, ~(uint32_t)PANDO_ROW_FORK_UNSAFE, memory_order_release);
    return Qtrue;
}

/* Ruby wants a major GC that the worker has deferred; the monitor replaces the worker at a suitable time. */
static VALUE row_major_gc_due_p(VALUE self)
{
    return flag(self, PANDO_ROW_MAJOR_GC_DUE);
}

static VALUE row_set_major_gc_due(VALUE self, VALUE due)
{
    if (RTEST(due))
        set(self, PANDO_ROW_MAJOR_GC_DUE);
    else
        atomic_fetch_and_explicit(&pando_row_of(self)->flags, ~(uint32_t)PANDO_ROW_MAJOR_GC_DUE, memory_order_release);
    return due;
}

/* Called by the monitor: the process is to tell where its threads stand. */
static VALUE row_want_stacks(VALUE self)
{
    set(self, PANDO_ROW_STACKS_WANTED);
    return Qtrue;
}

/* Called by the process, in a signal handler: whether it is to tell; once. */
static VALUE row_take_stacks_wanted(VALUE self)
{
    uint32_t before = atomic_fetch_and_explicit(&pando_row_of(self)->flags, ~(uint32_t)PANDO_ROW_STACKS_WANTED,
                                                memory_order_acq_rel);
    return before & PANDO_ROW_STACKS_WANTED ? Qtrue : Qfalse;
}

/* The process's mold did not know its hot set yet, so what is prefaulted is a guess. The flag is set
 * before `prefault`, even if nothing is prefaulted. */
static VALUE row_prefault_guessed(VALUE self)
{
    set(self, PANDO_ROW_PREFAULT_GUESSED);
    return Qtrue;
}

static VALUE row_prefault_guessed_p(VALUE self)
{
    return flag(self, PANDO_ROW_PREFAULT_GUESSED);
}

void pando_init_row_flags(VALUE row)
{
    rb_define_method(row, "prefault_guessed!", row_prefault_guessed, 0);
    rb_define_method(row, "prefault_guessed?", row_prefault_guessed_p, 0);
    rb_define_method(row, "want_stacks", row_want_stacks, 0);
    rb_define_method(row, "take_stacks_wanted", row_take_stacks_wanted, 0);
    rb_define_method(row, "fork_unsafe?", row_fork_unsafe_p, 0);
    rb_define_method(row, "fork_unsafe!", row_fork_unsafe, 0);
    rb_define_method(row, "fork_safe!", row_fork_safe, 0);
    rb_define_method(row, "major_gc_due?", row_major_gc_due_p, 0);
    rb_define_method(row, "major_gc_due=", row_set_major_gc_due, 1);
}
