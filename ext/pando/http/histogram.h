/* A histogram of times: how many took how long. One process counts, any other may read; without a lock.
 *
 * The unit is 1/1024 ms, and each doubling of the time has four buckets, so that a percentile is right to 25% and each
 * power of two of a millisecond is the edge of a bucket. lib/pando/histogram.rb reads it. */
#ifndef PANDO_HTTP_HISTOGRAM_H
#define PANDO_HTTP_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define PANDO_HISTOGRAM_BUCKETS 112u /* the last one holds everything longer, from 458 s on */

struct pando_histogram {
    _Atomic uint64_t nanoseconds;    /* of all together */
    _Atomic uint64_t counts[PANDO_HISTOGRAM_BUCKETS];
};

static inline unsigned pando_histogram_bucket(uint64_t nanoseconds)
{
    const uint64_t longest = (1ull << 29) - 1;
    uint64_t units = nanoseconds / 1000000 * 1024 + nanoseconds % 1000000 * 1024 / 1000000;
    if (units > longest)
        units = longest;
    if (units < 4)
        return (unsigned)units;
    unsigned exponent = 63u - (unsigned)__builtin_clzll(units);
    return (exponent - 1) * 4 + (unsigned)(units >> (exponent - 2) & 3);
}

static inline void pando_histogram_add(struct pando_histogram *histogram, uint64_t nanoseconds)
{
    _Atomic uint64_t *count = &histogram->counts[pando_histogram_bucket(nanoseconds)];
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
    uint64_t sum = atomic_load_explicit(&histogram->nanoseconds, memory_order_relaxed) + nanoseconds;
    atomic_store_explicit(&histogram->nanoseconds, sum, memory_order_relaxed);
}

#endif
