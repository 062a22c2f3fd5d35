/* Binds sys/record.c. Runs in any process. */
#include "bind_sys.h"

#include <errno.h>

#include "sys/record.h"

#define RECORD_CAPACITY 1024

static VALUE send_record(VALUE self, VALUE link, VALUE bytes, VALUE fds)
{
    int numbers[PANDO_RECORD_MAX_FDS];
    StringValue(bytes);
    Check_Type(fds, T_ARRAY);
    long count = RARRAY_LEN(fds);
    if (count > PANDO_RECORD_MAX_FDS) rb_raise(rb_eArgError, "at most %d descriptors a record", PANDO_RECORD_MAX_FDS);
    for (long i = 0; i < count; i++) numbers[i] = pando_fd_of(RARRAY_AREF(fds, i));
    if (RSTRING_LEN(bytes) == 0) rb_raise(rb_eArgError, "an empty record looks like the end of the link");
    if (pando_record_send(pando_fd_of(link), RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes), numbers, (int)count) == -1)
        rb_sys_fail("sendmsg");
    return Qtrue;
}

/* receive_record(link, capacity = RECORD_CAPACITY)
 *
 * [bytes (nil: they did not fit), sender's pid, descriptors, bytes if only descriptors did not fit]; false: nothing
 * now; nil: the end of the link. */
static VALUE receive_record(int count, VALUE *arguments, VALUE self)
{
    VALUE link, wanted, memory = 0;
    rb_scan_args(count, arguments, "11", &link, &wanted);
    char small[RECORD_CAPACITY], *bytes = small;
    size_t capacity = NIL_P(wanted) ? sizeof small : NUM2SIZET(wanted);
    if (capacity > sizeof small) bytes = rb_alloc_tmp_buffer(&memory, (long)capacity);

    struct pando_record record;
    int result = pando_record_receive(pando_fd_of(link), bytes, capacity, &record);
    if (result == -1 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Qfalse;
    if (result == -1) rb_sys_fail("recvmsg");
    if (result == 0) return Qnil;
    VALUE fds = rb_ary_new_capa(record.fd_count);
    for (int i = 0; i < record.fd_count; i++) rb_ary_push(fds, INT2NUM(record.fds[i]));
    VALUE text = record.truncated && !record.stripped ? Qnil : rb_str_new(bytes, (long)record.length);
    if (memory) rb_free_tmp_buffer(&memory);
    if (record.stripped) return rb_ary_new_from_args(4, Qnil, PIDT2NUM(record.sender), fds, text);
    return rb_ary_new_from_args(3, text, PIDT2NUM(record.sender), fds);
}

void pando_init_record(void)
{
    rb_define_const(pando_mSys, "RECORD_CAPACITY", INT2FIX(RECORD_CAPACITY));
    rb_define_singleton_method(pando_mSys, "send_record", send_record, 3);
    rb_define_singleton_method(pando_mSys, "receive_record", receive_record, -1);
}
