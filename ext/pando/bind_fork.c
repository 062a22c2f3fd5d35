/* Binds sys/fork.c: siblings beneath Process._fork, the probe, the cold spawn. */
#include "bind_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/fork.h"

#define SPAWN_FDS_MAX 128
#define FIRST_FD 3

static VALUE call_fork(VALUE unused)
{
    pando_double_fork_arm();
    return rb_funcall(rb_mProcess, rb_intern("_fork"), 0);
}

static VALUE disarm(VALUE unused)
{
    pando_double_fork_disarm();
    return Qnil;
}

/* Forks a sibling: true in the forker, false in the new process. Goes through
 * Process._fork, so that the hooks of libraries run, once on each side. */
static VALUE fork_sibling(VALUE self)
{
    VALUE middle = rb_ensure(call_fork, Qnil, disarm, Qnil);
    if (NUM2PIDT(middle) == 0) return Qfalse;
    int failure = pando_middle_wait(NUM2PIDT(middle));
    if (failure) rb_syserr_fail(failure, "fork (of the middle process)");
    return Qtrue;
}

/* Ruby's own fork retries EAGAIN for ever; ask before. */
static VALUE probe_fork(VALUE self)
{
    int failure = pando_fork_probe();
    if (failure) rb_syserr_fail(failure, "fork (probe)");
    return Qtrue;
}

static char **c_strings(VALUE array, VALUE *guard)
{
    long count = RARRAY_LEN(array);
    char **strings = rb_alloc_tmp_buffer(guard, (count + 1) * (long)sizeof(char *));
    for (long i = 0; i < count; i++) {
        VALUE string = RARRAY_AREF(array, i);
        strings[i] = StringValueCStr(string);
    }
    strings[count] = NULL;
    return strings;
}

static void close_copies(const struct pando_fd_map *map, long count)
{
    for (long i = 0; i < count; i++) close(map[i].from);
}

/* Close-on-exec copies above the target range, so that no target overwrites a source. */
static void copy_descriptors(VALUE descriptors, struct pando_fd_map *map, long count)
{
    for (long i = 0; i < count; i++) {
        int copy = fcntl(pando_fd_of(RARRAY_AREF(descriptors, i)), F_DUPFD_CLOEXEC, FIRST_FD + SPAWN_FDS_MAX);
        if (copy == -1) {
            int failure = errno;
            close_copies(map, i);
            rb_syserr_fail(failure, "fcntl(F_DUPFD_CLOEXEC)");
        }
        map[i] = (struct pando_fd_map){.from = copy, .to = FIRST_FD + (int)i};
    }
}

/* spawn(argv, environment, descriptors): descriptors[i] becomes 3 + i in the new process. */
static VALUE spawn(VALUE self, VALUE argv, VALUE environment, VALUE descriptors)
{
    VALUE argv_guard, environment_guard;
    struct pando_fd_map map[SPAWN_FDS_MAX];
    pid_t pid;
    Check_Type(argv, T_ARRAY);
    Check_Type(environment, T_ARRAY);
    Check_Type(descriptors, T_ARRAY);
    long count = RARRAY_LEN(descriptors);
    if (count > SPAWN_FDS_MAX) rb_raise(rb_eArgError, "too many descriptors to hand over: %ld", count);
    char **arguments = c_strings(argv, &argv_guard);
    char **variables = c_strings(environment, &environment_guard);
    copy_descriptors(descriptors, map, count);
    int failure = pando_spawn(&pid, arguments, variables, map, (size_t)count);
    close_copies(map, count);
    ALLOCV_END(argv_guard);
    ALLOCV_END(environment_guard);
    if (failure) rb_syserr_fail(failure, "posix_spawn");
    return PIDT2NUM(pid);
}

void pando_init_fork(void)
{
    int failure = pando_fork_setup();
    if (failure) rb_syserr_fail(failure, "pthread_atfork");
    rb_define_singleton_method(pando_mSys, "fork_sibling", fork_sibling, 0);
    rb_define_singleton_method(pando_mSys, "probe_fork", probe_fork, 0);
    rb_define_singleton_method(pando_mSys, "spawn", spawn, 3);
}
