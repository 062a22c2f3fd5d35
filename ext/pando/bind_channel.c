/* Pando::HTTP::Channel: binds http/channel.c. Runs in the monitor (which creates the channel) and in workers. */
#include "bind_http.h"

#include <sys/eventfd.h>
#include <unistd.h>

static VALUE cChannel;

static void channel_free(void *data)
{
    struct pando_channel *channel = data;
    pando_channel_unmap(channel);
    if (channel->fd != -1) close(channel->fd);
    xfree(channel);
}

static size_t channel_size(const void *data)
{
    return sizeof(struct pando_channel);
}

static const rb_data_type_t channel_type = {
    .wrap_struct_name = "Pando::HTTP::Channel",
    .function = {.dfree = channel_free, .dsize = channel_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

struct pando_channel *pando_channel_of(VALUE self)
{
    struct pando_channel *channel;
    TypedData_Get_Struct(self, struct pando_channel, &channel_type, channel);
    if (!channel->shared) rb_raise(rb_eIOError, "the channel is not mapped");
    return channel;
}

static VALUE channel_wrap(struct pando_channel **channel)
{
    VALUE self = TypedData_Make_Struct(cChannel, struct pando_channel, &channel_type, *channel);
    (*channel)->fd = -1;
    return self;
}

static VALUE channel_create(VALUE klass)
{
    struct pando_channel *channel;
    VALUE self = channel_wrap(&channel);
    if (pando_channel_create(channel) == -1) rb_sys_fail("channel");
    return self;
}

static VALUE channel_attach(VALUE klass, VALUE fd)
{
    struct pando_channel *channel;
    VALUE self = channel_wrap(&channel);
    if (pando_channel_attach(channel, NUM2INT(fd), 0) == -1) rb_sys_fail("channel");
    return self;
}

/* A mapping outlives its descriptor: child processes close theirs. */
static VALUE channel_close_fd(VALUE self)
{
    struct pando_channel *channel = pando_channel_of(self);
    if (channel->fd != -1) close(channel->fd);
    channel->fd = -1;
    return Qnil;
}

static VALUE channel_fileno(VALUE self)
{
    return INT2NUM(pando_channel_of(self)->fd);
}

/* The number of the reactor that serves this channel; 0: none yet. */
static VALUE channel_epoch(VALUE self)
{
    return ULL2NUM(atomic_load(&pando_channel_of(self)->shared->epoch));
}

/* Creates an eventfd for a lane or for the reactor, non-blocking and close-on-exec. Returns its descriptor. */
static VALUE channel_eventfd(VALUE klass)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd == -1) rb_sys_fail("eventfd");
    return INT2NUM(fd);
}

/* Creates a lane's memory, for the reactor and one worker. Returns its descriptor. */
static VALUE channel_lane(VALUE klass)
{
    int fd = pando_lane_create();
    if (fd == -1) rb_sys_fail("lane");
    return INT2NUM(fd);
}

static VALUE channel_draining_p(VALUE self)
{
    return atomic_load(&pando_channel_of(self)->shared->draining) ? Qtrue : Qfalse;
}

static void count(VALUE stats, const char *name, uint64_t value)
{
    rb_hash_aset(stats, rb_interned_str_cstr(name), ULL2NUM(value));
}

/* Requests that no worker has taken, by pool. */
static VALUE channel_waiting(VALUE self)
{
    const struct pando_channel *channel = pando_channel_of(self);
    VALUE waiting = rb_ary_new_capa(PANDO_REACTOR_POOLS);
    for (unsigned i = 0; i < PANDO_REACTOR_POOLS; i++)
        rb_ary_push(waiting, UINT2NUM(atomic_load(&channel->shared->waiting[i])));
    return waiting;
}

#define COUNT(name) count(hash, #name, pando_stat_get(&stats->name));

/* The reactor's statistics, by the names in http/stats.h. Those of the pools are added up. */
static VALUE channel_stats(VALUE self)
{
    const struct pando_channel *channel = pando_channel_of(self);
    const struct pando_stats *stats = &channel->shared->stats;
    VALUE hash = rb_hash_new();
    PANDO_STATS_GAUGES(COUNT)
    PANDO_STATS_COUNTERS(COUNT)
#define SUM(name) \
    { \
        uint64_t sum = 0; \
        for (unsigned i = 0; i < PANDO_REACTOR_POOLS; i++) sum += pando_stat_get(&stats->pools[i].name); \
        count(hash, #name, sum); \
    }
    PANDO_STATS_POOL_GAUGES(SUM)
    PANDO_STATS_POOL_COUNTERS(SUM)
#undef SUM
    return hash;
}

static const struct pando_pool_stats *stats_of(VALUE self, VALUE number)
{
    unsigned pool = NUM2UINT(number);
    if (pool >= PANDO_REACTOR_POOLS) rb_raise(rb_eIndexError, "no pool %u", pool);
    return &pando_channel_of(self)->shared->stats.pools[pool];
}

/* The statistics of one pool, by its number. */
static VALUE channel_pool_stats(VALUE self, VALUE pool)
{
    const struct pando_pool_stats *stats = stats_of(self, pool);
    VALUE hash = rb_hash_new();
    PANDO_STATS_POOL_GAUGES(COUNT)
    PANDO_STATS_POOL_COUNTERS(COUNT)
    return hash;
}

static VALUE histogram_of(const struct pando_histogram *histogram)
{
    VALUE counts = rb_ary_new_capa(PANDO_HISTOGRAM_BUCKETS);
    for (unsigned i = 0; i < PANDO_HISTOGRAM_BUCKETS; i++)
        rb_ary_push(counts, ULL2NUM(pando_stat_get(&histogram->counts[i])));
    return rb_assoc_new(counts, ULL2NUM(pando_stat_get(&histogram->nanoseconds)));
}

/* Times of one pool's requests in the queue: how many are in each bucket, and the nanoseconds of all together. */
static VALUE channel_queue_times(VALUE self, VALUE pool)
{
    return histogram_of(&stats_of(self, pool)->queue);
}

/* The same for the times from a request's last byte to the end of its worker's answer. */
static VALUE channel_durations(VALUE self, VALUE pool)
{
    return histogram_of(&stats_of(self, pool)->duration);
}

/* The answers to one pool's requests, by method: an Array with the number of those of unknown status, of 1xx, 2xx and so
 * on. */
static VALUE channel_answers(VALUE self, VALUE pool)
{
    static const char *const names[] = {
#define NAME(name) #name,
        PANDO_STATS_METHODS(NAME)
#undef NAME
    };
    const struct pando_pool_stats *stats = stats_of(self, pool);
    VALUE hash = rb_hash_new();
    for (unsigned method = 0; method < PANDO_METHODS; method++) {
        VALUE classes = rb_ary_new_capa(PANDO_STATS_CLASSES);
        for (unsigned i = 0; i < PANDO_STATS_CLASSES; i++)
            rb_ary_push(classes, ULL2NUM(pando_stat_get(&stats->answers[method][i])));
        rb_hash_aset(hash, rb_interned_str_cstr(names[method]), classes);
    }
    return hash;
}

void pando_init_http_channel(void)
{
    cChannel = rb_define_class_under(pando_mHTTP, "Channel", rb_cObject);
    rb_undef_alloc_func(cChannel);
    rb_define_const(cChannel, "LANES", UINT2NUM(PANDO_CHANNEL_LANES));
    rb_define_singleton_method(cChannel, "create", channel_create, 0);
    rb_define_singleton_method(cChannel, "attach", channel_attach, 1);
    rb_define_singleton_method(cChannel, "eventfd", channel_eventfd, 0);
    rb_define_singleton_method(cChannel, "lane", channel_lane, 0);
    rb_define_method(cChannel, "close_fd", channel_close_fd, 0);
    rb_define_method(cChannel, "fileno", channel_fileno, 0);
    rb_define_method(cChannel, "epoch", channel_epoch, 0);
    rb_define_method(cChannel, "draining?", channel_draining_p, 0);
    rb_define_method(cChannel, "waiting", channel_waiting, 0);
    rb_define_method(cChannel, "stats", channel_stats, 0);
    rb_define_method(cChannel, "pool_stats", channel_pool_stats, 1);
    rb_define_method(cChannel, "queue_times", channel_queue_times, 1);
    rb_define_method(cChannel, "durations", channel_durations, 1);
    rb_define_method(cChannel, "answers", channel_answers, 1);
    pando_init_http_lane();
}
