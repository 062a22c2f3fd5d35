/* Binds sys/exercise.c. Runs in new workers and molds. The GVL is kept: a child that hangs in here is killed from
 * outside. */
#include "bind_sys.h"

#include "sys/exercise.h"

#define EXERCISE(name) \
    static VALUE exercise_##name(VALUE self) \
    { \
        pando_exercise_##name(); \
        return Qnil; \
    }

EXERCISE(allocator)
EXERCISE(thread)
EXERCISE(stdio)
EXERCISE(clock)
EXERCISE(loader)

static VALUE exercise_resolver(VALUE self, VALUE name_too)
{
    pando_exercise_resolver(RTEST(name_too));
    return Qnil;
}

void pando_init_exercise(void)
{
    rb_define_singleton_method(pando_mSys, "exercise_resolver", exercise_resolver, 1);
    rb_define_singleton_method(pando_mSys, "exercise_allocator", exercise_allocator, 0);
    rb_define_singleton_method(pando_mSys, "exercise_thread", exercise_thread, 0);
    rb_define_singleton_method(pando_mSys, "exercise_stdio", exercise_stdio, 0);
    rb_define_singleton_method(pando_mSys, "exercise_clock", exercise_clock, 0);
    rb_define_singleton_method(pando_mSys, "exercise_loader", exercise_loader, 0);
}
