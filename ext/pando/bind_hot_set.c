/* Pando::Sys::HotSet: binds sys/hot_set.c. Runs in molds and workers. */
#include "bind_sys.h"

#include "bind_row.h"
#include "sys/hot_set.h"

static void release(void *data)
{
    pando_hot_set_clear(data);
    xfree(data);
}

static size_t size_of(const void *data)
{
    return sizeof(struct pando_hot_set);
}

static const rb_data_type_t type = {
    .wrap_struct_name = "Pando::Sys::HotSet",
    .function = { .dfree = release, .dsize = size_of },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE allocate(VALUE class)
{
    struct pando_hot_set *set;
    return TypedData_Make_Struct(class, struct pando_hot_set, &type, set);
}

static struct pando_hot_set *set_of(VALUE self)
{
    return rb_check_typeddata(self, &type);
}

/* call-seq: HotSet.supported? -> true or false. Whether the kernel can populate. */
static VALUE supported(VALUE class)
{
    return pando_hot_set_supported() ? Qtrue : Qfalse;
}

/* call-seq: share -> self. Empties it. Processes that are forked from now on see what this one observes next. */
static VALUE share(VALUE self)
{
    if (pando_hot_set_share(set_of(self)) == -1) rb_sys_fail("mmap");
    return self;
}

/* call-seq: protect -> self. From now on this process cannot write to the memory that it shares. */
static VALUE protect(VALUE self)
{
    pando_hot_set_protect(set_of(self));
    return self;
}

/* call-seq: guess(last) -> self. Records those pages of the last mold's HotSet that this process has, too. */
static VALUE guess(VALUE self, VALUE last)
{
    if (pando_hot_set_guess(set_of(self), set_of(last)) == -1) rb_sys_fail("/proc/self/pagemap");
    return self;
}

/* call-seq: observe(pagemap, given = nil, memory = nil) -> self. Records the pages that the child with this pagemap has
 * written to. given: the HotSet that it was populated with; memory: its /proc/PID/mem, without which none of these
 * pages counts. */
static VALUE observe(int argc, VALUE *argv, VALUE self)
{
    VALUE pagemap, given, memory;
    rb_scan_args(argc, argv, "12", &pagemap, &given, &memory);
    int fd = NIL_P(memory) ? -1 : pando_fd_of(memory);
    if (pando_hot_set_observe(set_of(self), pando_fd_of(pagemap), NIL_P(given) ? NULL : set_of(given), fd) == -1)
        rb_sys_fail("pagemap");
    return self;
}

/* call-seq: observe_own -> self. Records the pages that only this process has. */
static VALUE observe_own(VALUE self)
{
    if (pando_hot_set_observe_own(set_of(self)) == -1) rb_sys_fail("/proc/self/pagemap");
    return self;
}

/* call-seq: observe_code -> self. Records the pages of code that this process has mapped. */
static VALUE observe_code(VALUE self)
{
    if (pando_hot_set_observe_code(set_of(self)) == -1) rb_sys_fail("/proc/self/pagemap");
    return self;
}

/* call-seq: clear -> self */
static VALUE clear(VALUE self)
{
    pando_hot_set_clear(set_of(self));
    return self;
}

/* call-seq: populate(bytes, seconds) -> [bytes, seconds]. At most so much; returns what was used. */
static VALUE populate(VALUE self, VALUE bytes, VALUE seconds)
{
    struct pando_populated done;
    double most = NUM2DBL(seconds);
    uint64_t nanoseconds = most <= 0 ? 0 : most >= 3600 ? UINT64_C(3600000000000) : (uint64_t)(most * 1e9);
    if (pando_hot_set_populate(set_of(self), NUM2ULL(bytes), nanoseconds, &done) == -1) rb_sys_fail("/proc/self/maps");
    return rb_assoc_new(ULL2NUM(done.bytes), DBL2NUM((double)done.nanoseconds / 1e9));
}

/* Total bytes of its pages. */
static VALUE bytes(VALUE self)
{
    return ULL2NUM(pando_hot_set_bytes(set_of(self)));
}

/* Number of ranges. */
static VALUE ranges(VALUE self)
{
    return SIZET2NUM(pando_hot_set_count(set_of(self)));
}

/* call-seq: prefault(bytes, seconds) -> nil. Records what was populated for this process. */
static VALUE row_prefault(VALUE self, VALUE bytes, VALUE seconds)
{
    struct pando_row *row = pando_row_of(self);
    atomic_store_explicit(&row->prefault_time, (uint64_t)(NUM2DBL(seconds) * 1e9), memory_order_relaxed);
    atomic_store_explicit(&row->prefault_bytes, NUM2ULL(bytes), memory_order_release);
    return Qnil;
}

/* call-seq: prefaulted -> [bytes, seconds] */
static VALUE row_prefaulted(VALUE self)
{
    struct pando_row *row = pando_row_of(self);
    uint64_t bytes = atomic_load_explicit(&row->prefault_bytes, memory_order_acquire);
    uint64_t time = atomic_load_explicit(&row->prefault_time, memory_order_relaxed);
    return rb_assoc_new(ULL2NUM(bytes), DBL2NUM((double)time / 1e9));
}

void pando_init_row_prefault(VALUE row)
{
    rb_define_method(row, "prefault", row_prefault, 2);
    rb_define_method(row, "prefaulted", row_prefaulted, 0);
}

void pando_init_hot_set(void)
{
    VALUE class = rb_define_class_under(pando_mSys, "HotSet", rb_cObject);
    rb_define_alloc_func(class, allocate);
    rb_define_singleton_method(class, "supported?", supported, 0);
    rb_define_method(class, "share", share, 0);
    rb_define_method(class, "protect", protect, 0);
    rb_define_method(class, "guess", guess, 1);
    rb_define_method(class, "observe", observe, -1);
    rb_define_method(class, "observe_own", observe_own, 0);
    rb_define_method(class, "observe_code", observe_code, 0);
    rb_define_method(class, "populate", populate, 2);
    rb_define_method(class, "clear", clear, 0);
    rb_define_method(class, "bytes", bytes, 0);
    rb_define_method(class, "ranges", ranges, 0);
}
