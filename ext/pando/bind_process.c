/* Binds sys/process.c and sys/crash.c. Runs in any process. */
#include "bind_sys.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "sys/crash.h"
#include "sys/fork.h"
#include "sys/process.h"

static VALUE subreaper(VALUE self)
{
    if (pando_subreaper_enable() == -1) rb_sys_fail("prctl(PR_SET_CHILD_SUBREAPER)");
    return Qtrue;
}

static VALUE pidfd_open(VALUE self, VALUE pid)
{
    int fd = pando_pidfd_open(NUM2PIDT(pid));
    if (fd == -1) rb_sys_fail("pidfd_open");
    return INT2NUM(fd);
}

static VALUE pidfd_signal(VALUE self, VALUE pidfd, VALUE signo)
{
    if (pando_pidfd_signal(pando_fd_of(pidfd), NUM2INT(signo)) == 0) return Qtrue;
    if (errno == ESRCH) return Qfalse;
    rb_sys_fail("pidfd_send_signal");
}

/* [:exited, status] or [:killed, signal], nil while it lives. */
static VALUE pidfd_wait(int argc, VALUE *argv, VALUE self)
{
    VALUE pidfd, keep;
    siginfo_t info;
    rb_scan_args(argc, argv, "11", &pidfd, &keep);
    int ended = pando_pidfd_wait(pando_fd_of(pidfd), RTEST(keep), &info);
    if (ended == -1) rb_sys_fail("waitid(P_PIDFD)");
    if (!ended) return Qnil;
    return rb_ary_new_from_args(2, ID2SYM(rb_intern(info.si_code == CLD_EXITED ? "exited" : "killed")),
                                INT2NUM(info.si_status));
}

static VALUE ended_child(VALUE self)
{
    pid_t pid = pando_ended_child();
    if (pid == -1) rb_sys_fail("waitid(P_ALL)");
    return pid ? PIDT2NUM(pid) : Qnil;
}

static VALUE wait_adoption(VALUE self, VALUE reaper, VALUE seconds)
{
    if (pando_wait_adoption(pando_middle_pid(), NUM2PIDT(reaper), pando_milliseconds(seconds)) == -1) rb_sys_fail("adoption");
    return Qtrue;
}

static VALUE die_with_parent(VALUE self)
{
    if (pando_die_with_parent() == -1) rb_sys_fail("prctl(PR_SET_PDEATHSIG)");
    return Qtrue;
}

static VALUE outlive_parent(VALUE self, VALUE seconds)
{
    if (pando_outlive_parent(pando_milliseconds(seconds)) == -1) rb_sys_fail("prctl(PR_SET_PDEATHSIG)");
    return Qtrue;
}

/* shut_when_orphaned(numbers) -> true */
static VALUE shut_when_orphaned(VALUE self, VALUE numbers)
{
    int fds[PANDO_SHUT_MAX];
    Check_Type(numbers, T_ARRAY);
    long count = RARRAY_LEN(numbers);
    if (count > PANDO_SHUT_MAX) rb_raise(rb_eArgError, "too many listeners");
    for (long i = 0; i < count; i++) fds[i] = NUM2INT(RARRAY_AREF(numbers, i));
    if (pando_shut_when_orphaned(fds, (size_t)count) == -1) rb_sys_fail("shut_when_orphaned");
    return Qtrue;
}

static VALUE watch_crashes(VALUE self)
{
    if (pando_watch_crashes() == -1) rb_sys_fail("sigaction");
    return Qtrue;
}

static VALUE announce_crash(VALUE self, VALUE socket, VALUE words)
{
    StringValue(words);
    if (pando_announce_crash(pando_fd_of(socket), RSTRING_PTR(words), (size_t)RSTRING_LEN(words)) == -1)
        rb_sys_fail("announce_crash");
    return Qtrue;
}

static VALUE orphaned(VALUE self)
{
    return pando_orphaned() ? Qtrue : Qfalse;
}

static VALUE parent_pid(VALUE self)
{
    return PIDT2NUM(getppid());
}

void pando_init_process(void)
{
    rb_define_singleton_method(pando_mSys, "subreaper!", subreaper, 0);
    rb_define_singleton_method(pando_mSys, "pidfd_open", pidfd_open, 1);
    rb_define_singleton_method(pando_mSys, "pidfd_signal", pidfd_signal, 2);
    rb_define_singleton_method(pando_mSys, "pidfd_wait", pidfd_wait, -1);
    rb_define_singleton_method(pando_mSys, "ended_child", ended_child, 0);
    rb_define_singleton_method(pando_mSys, "wait_adoption", wait_adoption, 2);
    rb_define_singleton_method(pando_mSys, "die_with_parent!", die_with_parent, 0);
    rb_define_singleton_method(pando_mSys, "outlive_parent!", outlive_parent, 1);
    rb_define_singleton_method(pando_mSys, "shut_when_orphaned", shut_when_orphaned, 1);
    rb_define_singleton_method(pando_mSys, "watch_crashes", watch_crashes, 0);
    rb_define_singleton_method(pando_mSys, "announce_crash", announce_crash, 2);
    rb_define_singleton_method(pando_mSys, "orphaned?", orphaned, 0);
    rb_define_singleton_method(pando_mSys, "parent_pid", parent_pid, 0);
}
