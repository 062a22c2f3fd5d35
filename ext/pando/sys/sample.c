/* Samples a process's state, see sample.h. Runs in workers; the monitor reads the samples. */
#include "sample.h"

#include "measure.h"

#define RELAXED memory_order_relaxed
#define PRIME 0x100000001b3ULL

int pando_sample_due(const struct pando_row *row, uint64_t jobs, uint64_t now)
{
    if (jobs <= PANDO_YOUNG && (jobs & (jobs - 1)) == 0) return 1;
    return now - atomic_load_explicit(&row->sampled_at, RELAXED) >= PANDO_SAMPLE_PAUSE;
}

static void store(_Atomic uint32_t *field, uint64_t value)
{
    atomic_store_explicit(field, value < UINT32_MAX ? (uint32_t)value : UINT32_MAX, RELAXED);
}

static uint32_t load(const _Atomic uint32_t *field)
{
    return atomic_load_explicit(field, RELAXED);
}

/* A spell that is long enough becomes the last whole one. */
static void end_spell(struct pando_row *row, uint32_t jobs, uint32_t faults, uint64_t cpu)
{
    uint32_t done = jobs - load(&row->spell_jobs);
    if (done < PANDO_SAMPLE_SPELL) return;
    uint64_t spent = cpu - atomic_load_explicit(&row->spell_cpu, RELAXED);
    store(&row->lately_jobs, done);
    store(&row->lately_faults, faults - load(&row->spell_faults));
    store(&row->lately_cpu, spent / 1000);
    store(&row->spell_jobs, jobs);
    store(&row->spell_faults, faults);
    atomic_store_explicit(&row->spell_cpu, cpu, RELAXED);
}

void pando_sample_take(struct pando_row *row, uint64_t code_bytes, uint32_t minor_gcs, uint32_t major_gcs,
                       uint32_t gc_time)
{
    uint32_t jobs = (uint32_t)atomic_load_explicit(&row->requests, RELAXED), faults = pando_minor_faults();
    uint64_t cpu = pando_cpu_time();

    atomic_store_explicit(&row->sampled_at, 0, RELAXED);
    atomic_thread_fence(memory_order_release);
    end_spell(row, jobs, faults, cpu);
    store(&row->sampled_jobs, jobs);
    store(&row->sampled_faults, faults);
    store(&row->minor_gcs, minor_gcs);
    store(&row->major_gcs, major_gcs);
    store(&row->gc_time, gc_time);
    atomic_store_explicit(&row->sampled_cpu, cpu, RELAXED);
    atomic_store_explicit(&row->code_bytes, code_bytes, RELAXED);
    atomic_store_explicit(&row->sampled_at, pando_now(), memory_order_release);
}

int pando_sample_read(const struct pando_row *row, struct pando_sample *sample)
{
    uint64_t at = atomic_load_explicit(&row->sampled_at, memory_order_acquire);
    *sample = (struct pando_sample){
        .at = at,
        .cpu = atomic_load_explicit(&row->sampled_cpu, RELAXED),
        .code_bytes = atomic_load_explicit(&row->code_bytes, RELAXED),
        .jobs = load(&row->sampled_jobs),
        .faults = load(&row->sampled_faults),
        .minor_gcs = load(&row->minor_gcs),
        .major_gcs = load(&row->major_gcs),
        .gc_time = load(&row->gc_time),
        .lately_jobs = load(&row->lately_jobs),
        .lately_faults = load(&row->lately_faults),
        .lately_cpu = (uint64_t)load(&row->lately_cpu) * 1000,
        .kinds = (uint32_t)__builtin_popcountll(atomic_load_explicit(&row->kinds, RELAXED)),
    };
    atomic_thread_fence(memory_order_acquire);
    return at != 0 && atomic_load_explicit(&row->sampled_at, RELAXED) == at;
}

static uint64_t mix(uint64_t hash, unsigned char byte)
{
    return (hash ^ byte) * PRIME;
}

/* A path segment with a digit names one of many things: /users/17 and /users/18 are of one kind. */
static uint64_t hash_of(const char *verb, size_t verb_length, const char *subject, size_t subject_length)
{
    uint64_t hash = 0xcbf29ce484222325ULL, part;
    for (size_t i = 0; i < verb_length; i++) hash = mix(hash, (unsigned char)verb[i]);
    part = hash;
    for (size_t i = 0, named = 0; i < subject_length; i++) {
        unsigned char byte = (unsigned char)subject[i];
        if (byte == '/') {
            part = hash = mix(hash, byte);
            named = 0;
        } else if (byte >= '0' && byte <= '9') {
            hash = mix(part, '0');
            named = 1;
        } else if (!named) {
            hash = mix(hash, byte);
        }
    }
    return hash;
}

void pando_sample_kind(struct pando_row *row, const char *verb, size_t verb_length, const char *subject,
                       size_t subject_length)
{
    if (atomic_load_explicit(&row->requests, RELAXED) >= PANDO_SAMPLE_MIX) return;
    if (verb_length > PANDO_VERB_MAX) verb_length = PANDO_VERB_MAX;
    if (subject_length > PANDO_SUBJECT_MAX) subject_length = PANDO_SUBJECT_MAX;
    uint64_t hash = hash_of(verb, verb_length, subject, subject_length);
    uint64_t bit = 1ULL << ((hash ^ hash >> 32) * 0x9e3779b97f4a7c15ULL >> 58);
    uint64_t kinds = atomic_load_explicit(&row->kinds, RELAXED);
    if (!(kinds & bit)) atomic_store_explicit(&row->kinds, kinds | bit, RELAXED);
}

void pando_sample_restart(struct pando_row *row)
{
    atomic_store_explicit(&row->sampled_at, 0, memory_order_release);
    atomic_store_explicit(&row->kinds, 0, RELAXED);
    store(&row->lately_jobs, 0);
    store(&row->spell_jobs, 0);
    store(&row->spell_faults, pando_minor_faults());
    atomic_store_explicit(&row->spell_cpu, pando_cpu_time(), RELAXED);
}
