/* Measurements of single jobs in a Pando::Sys::Row, see sys/measure.h. Written by the row's process, read by others. */
#include "bind_row.h"

#include "sys/measure.h"

static uint64_t load(_Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_acquire);
}

static VALUE row_failures(VALUE self)
{
    return ULL2NUM(load(&pando_row_of(self)->failures));
}

static VALUE row_recents(VALUE self)
{
    return ULL2NUM(load(&pando_row_of(self)->recents));
}

/* The running job has failed. */
static VALUE row_fail_job(VALUE self)
{
    struct pando_row *row = pando_row_of(self);
    atomic_store_explicit(&row->failures, load(&row->failures) + 1, memory_order_release);
    return Qnil;
}

static VALUE row_timeouts(VALUE self)
{
    return UINT2NUM(atomic_load_explicit(&pando_row_of(self)->timeouts, memory_order_acquire));
}

/* The running job has outlived its soft deadline. Of a process's threads, the one that has the interpreter lock counts. */
static VALUE row_count_timeout(VALUE self)
{
    struct pando_row *row = pando_row_of(self);
    uint32_t before = atomic_load_explicit(&row->timeouts, memory_order_relaxed);
    atomic_store_explicit(&row->timeouts, before + 1, memory_order_release);
    return Qnil;
}

/* True: a sample is due. */
static VALUE row_count_jobs(VALUE self, VALUE jobs, VALUE failures)
{
    uint64_t count = NUM2ULL(jobs), failed = NUM2ULL(failures);
    return pando_measure_count(pando_row_of(self), count, failed) ? Qtrue : Qfalse;
}

/* A number that may be unknown. */
static uint32_t plus_one(VALUE number)
{
    uint32_t known = NIL_P(number) ? 0 : NUM2UINT(number);
    return NIL_P(number) || known == UINT32_MAX ? known : known + 1;
}

static VALUE less_one(_Atomic uint32_t *field)
{
    uint32_t number = atomic_load_explicit(field, memory_order_relaxed);
    return number ? UINT2NUM(number - 1) : Qnil;
}

/* The load of a process that does several jobs at once: jobs that run, jobs that wait, and milliseconds that the oldest of
 * those has waited; nil: unknown. */
static VALUE row_set_load(VALUE self, VALUE running, VALUE lag, VALUE latency)
{
    unsigned now = NUM2UINT(running);
    uint32_t waiting = plus_one(lag), oldest = plus_one(latency);
    struct pando_row *row = pando_row_of(self);
    atomic_store_explicit(&row->running, now, memory_order_relaxed);
    atomic_store_explicit(&row->lag, waiting, memory_order_relaxed);
    atomic_store_explicit(&row->latency, oldest, memory_order_relaxed);
    return Qnil;
}

static VALUE row_running(VALUE self)
{
    return UINT2NUM(atomic_load_explicit(&pando_row_of(self)->running, memory_order_relaxed));
}

static VALUE row_lag(VALUE self)
{
    return less_one(&pando_row_of(self)->lag);
}

static VALUE row_latency(VALUE self)
{
    return less_one(&pando_row_of(self)->latency);
}

static VALUE row_measure(VALUE self, VALUE jobs)
{
    pando_measure_more(pando_row_of(self), NUM2UINT(jobs));
    return Qnil;
}

static VALUE row_restart(VALUE self)
{
    pando_measure_restart(pando_row_of(self));
    return Qnil;
}

static VALUE copy(_Atomic uint8_t *from, size_t count)
{
    VALUE string = rb_str_buf_new((long)count);
    for (size_t i = 0; i < count; i++) {
        char code = (char)atomic_load_explicit(&from[i], memory_order_relaxed);
        rb_str_cat(string, &code, 1);
    }
    return string;
}

/* [cpu, wall] of its first jobs, one byte each. */
static VALUE row_first_jobs(VALUE self)
{
    struct pando_row *row = pando_row_of(self);
    uint64_t done = load(&row->requests);
    size_t count = done < PANDO_YOUNG ? (size_t)done : PANDO_YOUNG;
    return rb_assoc_new(copy(row->cpu, count), copy(row->wall, count));
}

/* [cpu, wall] of the jobs measured since that count, as far as they are still kept; in no order. */
static VALUE row_jobs_since(VALUE self, VALUE recents)
{
    struct pando_row *row = pando_row_of(self);
    uint64_t last = load(&row->recents), first = NUM2ULL(recents);
    if (first > last) first = last;
    if (last - first > PANDO_RECENT) first = last - PANDO_RECENT;
    VALUE cpu = rb_str_buf_new((long)(last - first)), wall = rb_str_buf_new((long)(last - first));
    for (; first < last; first++) {
        size_t place = first % PANDO_RECENT;
        char of_cpu = (char)atomic_load_explicit(&row->recent_cpu[place], memory_order_relaxed);
        char of_wall = (char)atomic_load_explicit(&row->recent_wall[place], memory_order_relaxed);
        rb_str_cat(cpu, &of_cpu, 1);
        rb_str_cat(wall, &of_wall, 1);
    }
    return rb_assoc_new(cpu, wall);
}

/* Page faults of the process at its 1st, 2nd, 4th, ... job; 0: not reached yet. */
static VALUE row_faults(VALUE self)
{
    struct pando_row *row = pando_row_of(self);
    VALUE list = rb_ary_new_capa(PANDO_STEPS);
    for (unsigned i = 0; i < PANDO_STEPS; i++)
        rb_ary_push(list, UINT2NUM(atomic_load_explicit(&row->faults[i], memory_order_relaxed)));
    return list;
}

void pando_init_row_measurements(VALUE row)
{
    rb_define_method(row, "failures", row_failures, 0);
    rb_define_method(row, "recents", row_recents, 0);
    rb_define_method(row, "fail_job", row_fail_job, 0);
    rb_define_method(row, "timeouts", row_timeouts, 0);
    rb_define_method(row, "count_timeout", row_count_timeout, 0);
    rb_define_method(row, "measure", row_measure, 1);
    rb_define_method(row, "count_jobs", row_count_jobs, 2);
    rb_define_method(row, "set_load", row_set_load, 3);
    rb_define_method(row, "running", row_running, 0);
    rb_define_method(row, "lag", row_lag, 0);
    rb_define_method(row, "latency", row_latency, 0);
    rb_define_method(row, "restart", row_restart, 0);
    rb_define_method(row, "first_jobs", row_first_jobs, 0);
    rb_define_method(row, "jobs_since", row_jobs_since, 1);
    rb_define_method(row, "faults", row_faults, 0);
}
