/* Samples in a Pando::Sys::Row of what its process has become, see sys/sample.h. Written by that process, read by the
 * monitor. */
#include "bind_row.h"

#include "bind_sys.h"

#include <math.h>

#include "sys/sample.h"

static VALUE cSample;

static uint32_t count(VALUE number)
{
    unsigned long long value = NUM2ULL(number);
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* take_sample(code_bytes, minor_gcs, major_gcs, gc_milliseconds): called by the process whose row it is. */
static VALUE row_take_sample(VALUE self, VALUE code_bytes, VALUE minor_gcs, VALUE major_gcs, VALUE gc_time)
{
    uint64_t bytes = NUM2ULL(code_bytes);
    uint32_t minor = count(minor_gcs), major = count(major_gcs), milliseconds = count(gc_time);
    pando_sample_take(pando_row_of(self), bytes, minor, major, milliseconds);
    return Qnil;
}

static VALUE seconds(uint64_t nanoseconds)
{
    return DBL2NUM((double)nanoseconds / 1e9);
}

/* Linear counting: estimates how many kinds, each setting one of 64 bits by chance, have set so many. */
static uint32_t estimate(uint32_t bits)
{
    return (uint32_t)lround(64 * log(64 / fmax(64.0 - bits, 1)));
}

/* The last sample, nil before the first. */
static VALUE row_sample(VALUE self)
{
    struct pando_sample sample;
    if (!pando_sample_read(pando_row_of(self), &sample)) return Qnil;
    return rb_struct_new(cSample, seconds(sample.at), UINT2NUM(sample.jobs), seconds(sample.cpu),
                         UINT2NUM(sample.faults), UINT2NUM(sample.minor_gcs), UINT2NUM(sample.major_gcs),
                         ULL2NUM(sample.code_bytes), UINT2NUM(estimate(sample.kinds)), UINT2NUM(sample.lately_jobs),
                         UINT2NUM(sample.lately_faults), seconds(sample.lately_cpu), DBL2NUM(sample.gc_time / 1e3));
}

void pando_init_row_samples(VALUE row)
{
    cSample = rb_struct_define_under(pando_mSys, "Sample", "at", "jobs", "cpu", "faults", "minor_gcs", "major_gcs",
                                     "code_bytes", "kinds", "lately_jobs", "lately_faults", "lately_cpu", "gc_time", NULL);
    rb_global_variable(&cSample);
    rb_define_method(row, "take_sample", row_take_sample, 4);
    rb_define_method(row, "sample", row_sample, 0);
}
