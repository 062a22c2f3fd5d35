/* Binds sys/fork.c: siblings beneath Process._fork, the probe, the cold spawn. Runs in the monitor, molds and
 * workers. */
#include "bind_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sys/fork.h"

#define SPAWN_FDS_MAX 128
#define FIRST_FD 3

/* For one thread: fork_sibling runs, and each fork through Process._fork is a double one until the new process has
 * been made: also that of another library's hook, which cannot wait for its child then. */
static _Thread_local int sibling_wanted;

static VALUE call_hooks_and_fork(VALUE unused)
{
    sibling_wanted = 1;
    return rb_funcall(rb_mProcess, rb_intern("_fork"), 0);
}

static VALUE call_fork(VALUE unused)
{
    return rb_call_super(0, NULL);
}

/* Process._fork beneath the hooks of libraries, which are prepended later. A hook may run a command, and Ruby does so
 * with fork(2) in a process of root's. So the double fork is armed only here. */
static VALUE fork_beneath_hooks(VALUE self)
{
    if (!sibling_wanted) return call_fork(Qnil);
    int state;
    pando_double_fork_arm();
    VALUE pid = rb_protect(call_fork, Qnil, &state);
    pando_double_fork_disarm();
    if (state) {
        /* fork(2) has failed, so there is no middle process that anything could wait for. */
        pando_forget_middle();
        rb_jump_tag(state);
    }
    if (NUM2PIDT(pid) == 0) sibling_wanted = 0;
    return pid;
}

static VALUE restore_wanted(VALUE wanted)
{
    sibling_wanted = RTEST(wanted);
    return Qnil;
}

/* Forks in the block are ordinary ones, also while this thread makes a sibling. */
static VALUE fork_plainly(VALUE self)
{
    VALUE wanted = sibling_wanted ? Qtrue : Qfalse;
    sibling_wanted = 0;
    return rb_ensure(rb_yield, Qnil, restore_wanted, wanted);
}

/* Forks a sibling: true in the forker, false in the new process. Goes through Process._fork, so that the fork hooks
 * of libraries run once on each side. */
static VALUE fork_sibling(VALUE self)
{
    int state;
    pid_t forker = pando_pid();
    VALUE middle = rb_protect(call_hooks_and_fork, Qnil, &state);
    sibling_wanted = 0;
    if (state) {
        /* A hook has raised in the forker after the fork. Reap the middle process; the final child is an orphan. */
        pid_t orphan = pando_pid() == forker ? pando_announced_middle() : 0;
        pando_forget_middle();
        if (orphan) pando_middle_wait(orphan);
        rb_jump_tag(state);
    }
    pando_forget_middle();
    if (NUM2PIDT(middle) == 0) return Qfalse;
    int failure = pando_middle_wait(NUM2PIDT(middle));
    if (failure) rb_syserr_fail(failure, "fork (of the middle process)");
    return Qtrue;
}

/* Ruby's own fork retries EAGAIN for ever, so ask first. */
static VALUE probe_fork(VALUE self)
{
    int failure = pando_fork_probe();
    if (failure) rb_syserr_fail(failure, "fork (probe)");
    return Qtrue;
}

/* Does everything that may raise or allocate first, so that pointers taken afterwards stay valid. */
static void check_strings(VALUE array)
{
    Check_Type(array, T_ARRAY);
    for (long i = 0; i < RARRAY_LEN(array); i++) {
        VALUE string = RARRAY_AREF(array, i);
        Check_Type(string, T_STRING);
        StringValueCStr(string);
    }
}

static void take_pointers(VALUE array, char **strings)
{
    long count = RARRAY_LEN(array);
    for (long i = 0; i < count; i++) strings[i] = RSTRING_PTR(RARRAY_AREF(array, i));
    strings[count] = NULL;
}

static void close_copies(const struct pando_fd_map *map, long count)
{
    for (long i = 0; i < count; i++) close(map[i].from);
}

static void look_up_descriptors(VALUE descriptors, struct pando_fd_map *map, long count, int first)
{
    for (long i = 0; i < count; i++)
        map[i] = (struct pando_fd_map){.from = pando_fd_of(rb_ary_entry(descriptors, i)), .to = first + (int)i};
}

/* Makes close-on-exec copies above the target range, so that no target overwrites a source. 0 or an errno. */
static int copy_descriptors(struct pando_fd_map *map, long count)
{
    for (long i = 0; i < count; i++) {
        int copy = fcntl(map[i].from, F_DUPFD_CLOEXEC, FIRST_FD + (int)count);
        if (copy == -1) {
            int failure = errno;
            close_copies(map, i);
            return failure;
        }
        map[i].from = copy;
    }
    return 0;
}

/* spawn(argv, environment, descriptors, first = 3, files = nil): descriptors[i] becomes first + i in the new process.
 * files: its soft limit of open files; nil: that of this process. */
static VALUE spawn(int arguments, VALUE *argument, VALUE self)
{
    VALUE guard, argv, environment, descriptors, wanted, files;
    rb_scan_args(arguments, argument, "32", &argv, &environment, &descriptors, &wanted, &files);
    long limit = NIL_P(files) ? -1 : NUM2LONG(files);
    int first = NIL_P(wanted) ? FIRST_FD : NUM2INT(wanted);
    if (first < 0 || first > FIRST_FD) rb_raise(rb_eArgError, "descriptors follow the standard ones");
    struct pando_fd_map map[SPAWN_FDS_MAX];
    pid_t pid;
    Check_Type(descriptors, T_ARRAY);
    long count = RARRAY_LEN(descriptors);
    if (count > SPAWN_FDS_MAX) rb_raise(rb_eArgError, "too many descriptors to hand over: %ld", count);
    look_up_descriptors(descriptors, map, count, first);
    check_strings(argv);
    check_strings(environment);
    long words = RARRAY_LEN(argv);
    if (words == 0) rb_raise(rb_eArgError, "nothing to execute");
    char **strings = rb_alloc_tmp_buffer(&guard, (words + RARRAY_LEN(environment) + 2) * (long)sizeof(char *));
    take_pointers(argv, strings);
    take_pointers(environment, strings + words + 1);
    int failure = copy_descriptors(map, count);
    if (failure) rb_syserr_fail(failure, "fcntl(F_DUPFD_CLOEXEC)");
    failure = pando_spawn(&pid, strings, strings + words + 1, map, (size_t)count, limit);
    close_copies(map, count);
    rb_free_tmp_buffer(&guard);
    if (failure) rb_syserr_fail(failure, "posix_spawn");
    return PIDT2NUM(pid);
}

/* A number that changes with each fork, without a system call. */
static VALUE forks(VALUE self)
{
    return UINT2NUM(pando_forks());
}

/* call-seq: Pando.pid -> Integer. The pid of this process, without a system call. */
static VALUE pid(VALUE self)
{
    return PIDT2NUM(pando_pid());
}

void pando_init_fork(void)
{
    int failure = pando_fork_setup();
    if (failure) rb_syserr_fail(failure, "pthread_atfork");
    VALUE beneath = rb_define_module_under(pando_mSys, "BeneathHooks");
    rb_define_method(beneath, "_fork", fork_beneath_hooks, 0);
    rb_prepend_module(rb_singleton_class(rb_mProcess), beneath);
    rb_define_singleton_method(pando_mSys, "fork_sibling", fork_sibling, 0);
    rb_define_singleton_method(pando_mSys, "fork_plainly", fork_plainly, 0);
    rb_define_singleton_method(pando_mSys, "probe_fork", probe_fork, 0);
    rb_define_singleton_method(pando_mSys, "spawn", spawn, -1);
    rb_define_singleton_method(pando_mSys, "forks", forks, 0);
    rb_define_singleton_method(pando_mPando, "pid", pid, 0);
}
