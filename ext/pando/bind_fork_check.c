/* Pando::ForkSafety::ForkCheck: tells a process from its ancestors with one method call and no system call. Runs in
 * any process. Documented in lib/pando/fork_safety/fork_check.rb. */
#include "bind_sys.h"

#include "sys/fork.h"

struct fork_check { unsigned forks; };

static size_t check_size(const void *check)
{
    return sizeof(struct fork_check);
}

static const rb_data_type_t check_type = {
    .wrap_struct_name = "pando_fork_check",
    .function = {.dfree = RUBY_DEFAULT_FREE, .dsize = check_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE allocate(VALUE class)
{
    struct fork_check *check;
    VALUE self = TypedData_Make_Struct(class, struct fork_check, &check_type, check);
    check->forks = pando_forks();
    return self;
}

static struct fork_check *check_of(VALUE self)
{
    return rb_check_typeddata(self, &check_type);
}

static VALUE forked(VALUE self)
{
    return check_of(self)->forks != pando_forks() ? Qtrue : Qfalse;
}

static VALUE renew(VALUE self)
{
    struct fork_check *check = check_of(self);
    if (check->forks == pando_forks()) return Qfalse;
    check->forks = pando_forks();
    return Qtrue;
}

void pando_init_fork_check(void)
{
    VALUE fork_safety = rb_define_module_under(pando_mPando, "ForkSafety");
    VALUE class = rb_define_class_under(fork_safety, "ForkCheck", rb_cObject);
    rb_define_alloc_func(class, allocate);
    rb_define_method(class, "forked?", forked, 0);
    rb_define_method(class, "renew", renew, 0);
}
