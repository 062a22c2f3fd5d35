/* Binds sys/fds.c and sys/write_now.c, and asks Ruby for the other half of an IO. Runs in any process. */
#include "bind_sys.h"

#include <errno.h>
#include <ruby/io.h>
#include <unistd.h>

#include "sys/fds.h"
#include "sys/write_now.h"

static VALUE replace_fd(VALUE self, VALUE target, VALUE source)
{
    if (pando_replace_fd(pando_fd_of(target), pando_fd_of(source)) == -1) rb_sys_fail("dup3");
    return Qtrue;
}

/* Whether the descriptor belongs to the interpreter, like that of its timer. */
static VALUE reserved_fd_p(VALUE self, VALUE number)
{
    return rb_reserved_fd_p(NUM2INT(number)) ? Qtrue : Qfalse;
}

/* Closes a number that no IO owns. Whatever close(2) returns, the descriptor is closed, and a peer that sent it must
 * not be able to make us raise. */
static VALUE close_fd(VALUE self, VALUE number)
{
    close(NUM2INT(number));
    return Qnil;
}

/* memory_file(name) -> the descriptor of an empty file in memory. */
static VALUE memory_file(VALUE self, VALUE name)
{
    int fd = pando_memory_file(StringValueCStr(name));
    if (fd == -1) rb_sys_fail("memfd_create");
    return INT2NUM(fd);
}

/* sealed_memory(name, bytes) -> the descriptor of a file in memory with these bytes, which can never change. */
static VALUE sealed_memory(VALUE self, VALUE name, VALUE bytes)
{
    StringValue(bytes);
    int fd = pando_sealed_memory(StringValueCStr(name), RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes));
    if (fd == -1) rb_sys_fail("memfd_create");
    return INT2NUM(fd);
}

/* write_now(number, bytes) -> the number of bytes written; nil: the reader takes nothing now. */
static VALUE write_now(VALUE self, VALUE number, VALUE bytes)
{
    StringValue(bytes);
    ssize_t written = pando_write_now(pando_fd_of(number), RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes));
    if (written >= 0) return SSIZET2NUM(written);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Qnil;
    rb_sys_fail("write");
}

/* A two-way IO.popen holds a second IO for writing; any other IO is its own. */
static VALUE write_half(VALUE self, VALUE io)
{
    return rb_io_get_write_io(rb_io_get_io(io));
}

void pando_init_fds(void)
{
    rb_define_singleton_method(pando_mSys, "replace_fd", replace_fd, 2);
    rb_define_singleton_method(pando_mSys, "close_fd", close_fd, 1);
    rb_define_singleton_method(pando_mSys, "reserved_fd?", reserved_fd_p, 1);
    rb_define_singleton_method(pando_mSys, "memory_file", memory_file, 1);
    rb_define_singleton_method(pando_mSys, "sealed_memory", sealed_memory, 2);
    rb_define_singleton_method(pando_mSys, "write_half", write_half, 1);
    rb_define_singleton_method(pando_mSys, "write_now", write_now, 2);
}
