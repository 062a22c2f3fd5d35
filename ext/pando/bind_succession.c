/* Binds sys/succession.c. Runs in all processes of a test run. The GVL is held all the time: no thread of a process
 * that only waits may go on with work that its heir does now. */
#include "bind_sys.h"

#include <errno.h>

#include "sys/succession.h"

static VALUE crash(int signo, const char *call)
{
    if (signo == -1) rb_sys_fail(call);
    return INT2NUM(signo);
}

static VALUE guard_line(VALUE self, VALUE line, VALUE living)
{
    return crash(pando_succession_guard(pando_fd_of(line), NUM2PIDT(living)), "guarding the line");
}

static VALUE witness_line(VALUE self, VALUE line)
{
    return crash(pando_succession_witness(pando_fd_of(line)), "waiting as a witness");
}

static VALUE announce(VALUE self, VALUE line)
{
    if (pando_succession_announce(pando_fd_of(line)) == -1) rb_sys_fail("send (of a birth)");
    return Qnil;
}

void pando_init_succession(void)
{
    rb_define_singleton_method(pando_mSys, "guard_line", guard_line, 2);
    rb_define_singleton_method(pando_mSys, "witness_line", witness_line, 1);
    rb_define_singleton_method(pando_mSys, "announce", announce, 1);
}
