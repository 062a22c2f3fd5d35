/* The jobs in a Pando::Sys::Row. A process without threads has one, number 0. Each method takes a job's number last, and
 * 0 if there is none. Written by the row's process, read by others. */
#include "bind_row.h"

#include <math.h>

#include "bind_lock.h"
#include "bind_sys.h"

#define LONGEST 1e9 /* seconds; longer times, such as Float::INFINITY, are cut to it */

static uint32_t index_at(int argc, const VALUE *argv, int place)
{
    rb_check_arity(argc, place, place + 1);
    if (argc == place) return 0;
    uint32_t index = NUM2UINT(argv[place]);
    if (index >= PANDO_JOBS) rb_raise(rb_eIndexError, "a process has %d jobs at once, at most", PANDO_JOBS);
    return index;
}

static uint64_t load(_Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_acquire);
}

static VALUE seconds(uint64_t nanoseconds)
{
    return nanoseconds ? DBL2NUM((double)nanoseconds / 1e9) : Qnil;
}

static uint64_t deadline(uint64_t now, VALUE after)
{
    if (NIL_P(after)) return 0;
    double value = NUM2DBL(after);
    return now + (uint64_t)((value > 0 ? fmin(value, LONGEST) : 0) * 1e9);
}

/* start_job(verb, subject, soft, hard): deadlines in seconds from now, or nil. */
static VALUE row_start_job(int argc, VALUE *argv, VALUE self)
{
    uint32_t index = index_at(argc, argv, 4);
    uint64_t now = pando_now();
    uint64_t soft = deadline(now, argv[2]), hard = deadline(now, argv[3]); /* may run Ruby, so before any pointer is
                                                                            * taken */
    StringValue(argv[0]);
    StringValue(argv[1]);
    pando_row_start(pando_row_of(self), index, RSTRING_PTR(argv[0]), (size_t)RSTRING_LEN(argv[0]),
                    RSTRING_PTR(argv[1]), (size_t)RSTRING_LEN(argv[1]), soft, hard, now);
    return Qnil;
}

/* set_deadlines(soft, hard): counted from now. Returns the present in monotonic seconds. */
static VALUE row_set_deadlines(int argc, VALUE *argv, VALUE self)
{
    struct pando_job *job = &pando_row_of(self)->jobs[index_at(argc, argv, 2)];
    uint64_t now = pando_now();
    atomic_store_explicit(&job->hard_deadline, deadline(now, argv[1]), memory_order_release);
    atomic_store_explicit(&job->soft_deadline, deadline(now, argv[0]), memory_order_release);
    return seconds(now);
}

/* True: a sample is due. */
static VALUE row_finish_job(int argc, VALUE *argv, VALUE self)
{
    return pando_row_finish(pando_row_of(self), index_at(argc, argv, 0)) ? Qtrue : Qfalse;
}

/* The job is over, but does not count as finished. */
static VALUE row_rest(int argc, VALUE *argv, VALUE self)
{
    pando_row_rest(pando_row_of(self), index_at(argc, argv, 0));
    return Qnil;
}

static struct pando_job *job_of(VALUE self, int argc, VALUE *argv)
{
    return &pando_row_of(self)->jobs[index_at(argc, argv, 0)];
}

/* The end of the job clears these notes. */
static VALUE note(struct pando_job *job, uint32_t bit)
{
    atomic_fetch_or_explicit(&job->notes, bit, memory_order_release);
    return Qtrue;
}

static VALUE noted(struct pando_job *job, uint32_t bit)
{
    return atomic_load_explicit(&job->notes, memory_order_acquire) & bit ? Qtrue : Qfalse;
}

/* The head of the job's answer is out. */
static VALUE row_streaming(int argc, VALUE *argv, VALUE self) { return note(job_of(self, argc, argv), PANDO_JOB_STREAMS); }
static VALUE row_streaming_p(int argc, VALUE *argv, VALUE self) { return noted(job_of(self, argc, argv), PANDO_JOB_STREAMS); }

/* Another process died while it had this job. */
static VALUE row_retried(int argc, VALUE *argv, VALUE self) { return note(job_of(self, argc, argv), PANDO_JOB_RETRIED); }
static VALUE row_retried_p(int argc, VALUE *argv, VALUE self) { return noted(job_of(self, argc, argv), PANDO_JOB_RETRIED); }

/* Since when the job with this number runs; without a number: since when the process has had a job without a pause. */
static VALUE row_busy_since(int argc, VALUE *argv, VALUE self)
{
    uint32_t index = index_at(argc, argv, 0);
    struct pando_row *row = pando_row_of(self);
    return seconds(argc == 0 ? pando_row_busy_since(row) : load(&row->jobs[index].busy_since));
}

static VALUE row_soft_deadline(int argc, VALUE *argv, VALUE self)
{
    return seconds(load(&pando_row_of(self)->jobs[index_at(argc, argv, 0)].soft_deadline));
}

static VALUE row_hard_deadline(int argc, VALUE *argv, VALUE self)
{
    return seconds(load(&pando_row_of(self)->jobs[index_at(argc, argv, 0)].hard_deadline));
}

/* [verb, subject], or nil while they are being written or before the first job. */
static VALUE row_job_name(int argc, VALUE *argv, VALUE self)
{
    char verb[PANDO_VERB_MAX + 1], subject[PANDO_SUBJECT_MAX + 1];
    if (pando_row_job(pando_row_of(self), index_at(argc, argv, 0), verb, subject) == 0) return Qnil;
    return rb_ary_new_from_args(2, rb_str_new_cstr(verb), rb_str_new_cstr(subject));
}

/* Seconds that the job has waited for the interpreter lock since it began. */
static VALUE row_lock_wait(int argc, VALUE *argv, VALUE self)
{
    return DBL2NUM((double)load(&pando_row_of(self)->jobs[index_at(argc, argv, 0)].lock_wait) / 1e9);
}

/* A number that grows with each job that begins; 0: none has begun yet. */
static VALUE row_job(VALUE self)
{
    struct pando_row *row = pando_row_of(self);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < pando_row_jobs_used(row); i++) sum += load(&row->jobs[i].number);
    return ULL2NUM(sum);
}

/* The numbers of the jobs that run. */
static VALUE row_jobs(VALUE self)
{
    struct pando_row *row = pando_row_of(self);
    VALUE numbers = rb_ary_new();
    for (uint32_t i = 0; i < pando_row_jobs_used(row); i++)
        if (load(&row->jobs[i].busy_since)) rb_ary_push(numbers, UINT2NUM(i));
    return numbers;
}

/* The number of the running job whose thread has the interpreter lock; nil: none has, or this Ruby does not say. */
static VALUE row_job_with_lock(VALUE self)
{
    struct pando_row *row = pando_row_of(self);
    for (uint32_t i = 0; i < pando_row_jobs_used(row); i++)
        if (load(&row->jobs[i].busy_since) &&
            atomic_load_explicit(&row->jobs[i].lock, memory_order_acquire) == PANDO_LOCK_HELD)
            return UINT2NUM(i);
    return Qnil;
}

/* follow_lock(number): from now on this thread's use of the interpreter lock is written into that job. Called by the
 * thread, in the process whose row it is. */
static VALUE row_follow_lock(VALUE self, VALUE number)
{
    pando_lock_follow(&pando_row_of(self)->jobs[index_at(1, &number, 0)]);
    return Qnil;
}

void pando_init_row_jobs(VALUE row)
{
    rb_define_const(row, "JOBS", INT2FIX(PANDO_JOBS));
    rb_define_method(row, "start_job", row_start_job, -1);
    rb_define_method(row, "set_deadlines", row_set_deadlines, -1);
    rb_define_method(row, "finish_job", row_finish_job, -1);
    rb_define_method(row, "rest", row_rest, -1);
    rb_define_method(row, "streaming!", row_streaming, -1);
    rb_define_method(row, "streaming?", row_streaming_p, -1);
    rb_define_method(row, "retried!", row_retried, -1);
    rb_define_method(row, "retried?", row_retried_p, -1);
    rb_define_method(row, "busy_since", row_busy_since, -1);
    rb_define_method(row, "soft_deadline", row_soft_deadline, -1);
    rb_define_method(row, "hard_deadline", row_hard_deadline, -1);
    rb_define_method(row, "job_name", row_job_name, -1);
    rb_define_method(row, "lock_wait", row_lock_wait, -1);
    rb_define_method(row, "job", row_job, 0);
    rb_define_method(row, "jobs", row_jobs, 0);
    rb_define_method(row, "job_with_lock", row_job_with_lock, 0);
    rb_define_method(row, "follow_lock", row_follow_lock, 1);
}
