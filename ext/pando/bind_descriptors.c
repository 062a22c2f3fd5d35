/* Binds sys/descriptors.c, and of sys/fds.c the list. Runs in any process. */
#include "bind_sys.h"

#include <errno.h>
#include <ruby/io.h>
#include <ruby/encoding.h>
#include <unistd.h>

#include "sys/descriptors.h"
#include "sys/fds.h"

#define FIRST_ROOM 1024
#define FEW 1024
#define SLACK 64 /* descriptors that other threads may open between two calls */

static VALUE text(const char *bytes)
{
    return rb_external_str_new_cstr(bytes);
}

static VALUE address(const struct sockaddr_storage *stored, socklen_t bytes)
{
    return bytes ? rb_str_new((const char *)stored, (long)bytes) : Qnil;
}

static VALUE truth(int value)
{
    return value ? Qtrue : Qfalse;
}

static VALUE row(const struct pando_descriptor *found)
{
    VALUE values[] = {
        INT2NUM(found->number),
        text(found->target),
        INT2NUM(found->flags),
        found->position < 0 ? Qnil : LL2NUM(found->position),
        truth(rb_reserved_fd_p(found->number)),
        found->domain < 0 ? Qnil : INT2NUM(found->domain),
        found->type < 0 ? Qnil : INT2NUM(found->type),
        truth(found->listening),
        truth(found->hung_up),
        address(&found->local, found->local_bytes),
        address(&found->peer, found->peer_bytes),
    };
    return rb_ary_new_from_values(sizeof(values) / sizeof(*values), values);
}

/* The numbers of the open descriptors, in a buffer that `guard` owns. */
static int *open_numbers(VALUE *guard, ssize_t *count)
{
    size_t room = FIRST_ROOM;
    for (;;) {
        int *numbers = rb_alloc_tmp_buffer(guard, (long)(room * sizeof(int)));
        *count = pando_open_descriptors(numbers, room);
        if (*count >= 0 && (size_t)*count <= room) return numbers;
        int failure = errno;
        rb_free_tmp_buffer(guard);
        if (*count == -1) rb_syserr_fail(failure, "/proc/self/fd");
        room = (size_t)*count + SLACK;
    }
}

/* descriptors -> [[number, target, flags, position, ruby's own?, domain, type, listening?, hung up?, local, peer]] */
static VALUE descriptors(VALUE self)
{
    VALUE guard;
    ssize_t count;
    struct pando_descriptor found;
    int *numbers = open_numbers(&guard, &count);
    VALUE rows = rb_ary_new_capa((long)count);
    for (ssize_t i = 0; i < count; i++) {
        if (pando_describe(numbers[i], &found) == 0) rb_ary_push(rows, row(&found));
    }
    rb_free_tmp_buffer(&guard);
    return rows;
}

/* descriptor_targets -> {number => target}. Targets are interned Strings: a process that calls this again and again,
 * and is forked in between, need not create them anew. */
static VALUE descriptor_targets(VALUE self)
{
    VALUE guard;
    ssize_t count;
    char target[PATH_MAX + 1];
    int *numbers = open_numbers(&guard, &count);
    VALUE found = rb_hash_new();
    for (ssize_t i = 0; i < count; i++) {
        if (pando_target(getpid(), numbers[i], target) == -1) continue; /* closed meanwhile */
        rb_hash_aset(found, INT2NUM(numbers[i]), rb_str_to_interned_str(text(target)));
    }
    rb_free_tmp_buffer(&guard);
    return found;
}

/* connection_beside?(numbers) -> whether there is a socket with a peer other than these. Unlike `descriptors`, it
 * costs a forked child hardly any memory. */
static VALUE connection_beside(VALUE self, VALUE numbers)
{
    int open[FEW], found = 0;
    Check_Type(numbers, T_ARRAY);
    ssize_t count = pando_open_descriptors(open, FEW);
    if (count == -1) rb_sys_fail("/proc/self/fd");
    if (count > FEW) return Qtrue; /* too many for a quick check */
    for (ssize_t i = 0; i < count && !found; i++)
        found = pando_may_be_connection(open[i]) && !RTEST(rb_ary_includes(numbers, INT2FIX(open[i])));
    return truth(found);
}

static VALUE descriptor_count(VALUE self)
{
    ssize_t count = pando_open_descriptors(NULL, 0);
    if (count == -1) rb_sys_fail("/proc/self/fd");
    return LONG2NUM((long)count);
}

/* true or false; nil: the kernel or a sandbox does not say. */
static VALUE same_open_file(VALUE self, VALUE pid, VALUE theirs, VALUE ours)
{
    int same = pando_same_open_file(NUM2PIDT(pid), NUM2INT(theirs), NUM2INT(ours));
    if (same == -1) return errno == EBADF || errno == ESRCH ? Qfalse : Qnil;
    return truth(same);
}

/* For each inode that of its peer, 0 if it has none; nil: the kernel does not say. */
static VALUE unix_peers(VALUE self, VALUE inodes)
{
    VALUE guard, guard_of_peers;
    Check_Type(inodes, T_ARRAY);
    long count = RARRAY_LEN(inodes);
    VALUE peers = rb_ary_new_capa(count);
    unsigned *asked = rb_alloc_tmp_buffer(&guard, (count + 1) * (long)sizeof(*asked));
    long long *found = rb_alloc_tmp_buffer(&guard_of_peers, (count + 1) * (long)sizeof(*found));
    for (long i = 0; i < count; i++) asked[i] = NUM2UINT(rb_ary_entry(inodes, i));
    int failed = pando_unix_peers(asked, found, (size_t)count);
    for (long i = 0; i < count && !failed; i++) rb_ary_push(peers, LL2NUM(found[i]));
    rb_free_tmp_buffer(&guard);
    rb_free_tmp_buffer(&guard_of_peers);
    return failed ? Qnil : peers;
}

/* Text; false: closed, or the process has ended; nil: not permitted. */
static VALUE descriptor_of(VALUE self, VALUE pid, VALUE number)
{
    char target[PATH_MAX + 1];
    if (pando_target(NUM2PIDT(pid), NUM2INT(number), target) == 0) return text(target);
    return errno == ENOENT || errno == ESRCH ? Qfalse : Qnil;
}

void pando_init_descriptors(void)
{
    rb_define_singleton_method(pando_mSys, "descriptors", descriptors, 0);
    rb_define_singleton_method(pando_mSys, "descriptor_targets", descriptor_targets, 0);
    rb_define_singleton_method(pando_mSys, "connection_beside?", connection_beside, 1);
    rb_define_singleton_method(pando_mSys, "descriptor_count", descriptor_count, 0);
    rb_define_singleton_method(pando_mSys, "same_open_file?", same_open_file, 3);
    rb_define_singleton_method(pando_mSys, "descriptor_of", descriptor_of, 2);
    rb_define_singleton_method(pando_mSys, "unix_peers", unix_peers, 1);
}
