/* Pando::HTTP::Wire: recv, sendmsg and sendfile that never block, on bare
 * descriptors. Waiting, and for how long, is the caller's. Each returns the
 * number of bytes, nil where it would block, or raises the errno. */
#include "bind_http.h"

#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define MAX_PARTS 64
#define MAX_AT_ONCE (1L << 30)

static VALUE outcome(ssize_t bytes, const char *call)
{
    if (bytes >= 0)
        return SSIZET2NUM(bytes);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return Qnil;
    rb_sys_fail(call);
    return Qnil;
}

/* Puts up to max bytes behind the first offset bytes of buffer; 0 is the peer's end. */
static VALUE wire_receive(VALUE module, VALUE fd, VALUE buffer, VALUE offset, VALUE max)
{
    long from = NUM2LONG(offset), room = NUM2LONG(max);
    Check_Type(buffer, T_STRING);
    if (from < 0 || from > RSTRING_LEN(buffer) || room < 1 || room > MAX_AT_ONCE)
        rb_raise(rb_eArgError, "offset or size out of range");

    rb_str_modify(buffer);
    rb_str_set_len(buffer, from);
    rb_str_modify_expand(buffer, room);
    ssize_t bytes = recv(NUM2INT(fd), RSTRING_PTR(buffer) + from, (size_t)room, MSG_DONTWAIT);
    if (bytes > 0)
        rb_str_set_len(buffer, from + bytes);
    return outcome(bytes, "recv");
}

/* Sends what follows the first offset bytes of an Array of Strings, as one. */
static VALUE wire_transmit(VALUE module, VALUE fd, VALUE parts, VALUE offset)
{
    struct iovec vectors[MAX_PARTS];
    size_t count = 0, skip = NUM2SIZET(offset);
    Check_Type(parts, T_ARRAY);

    for (long i = 0; i < RARRAY_LEN(parts) && count < MAX_PARTS; i++) {
        VALUE part = RARRAY_AREF(parts, i);
        Check_Type(part, T_STRING);
        size_t len = (size_t)RSTRING_LEN(part);
        if (skip >= len) {
            skip -= len;
            continue;
        }
        vectors[count].iov_base = RSTRING_PTR(part) + skip;
        vectors[count].iov_len = len - skip;
        skip = 0;
        count++;
    }
    if (count == 0)
        return INT2FIX(0);

    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = count};
    ssize_t bytes = sendmsg(NUM2INT(fd), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    RB_GC_GUARD(parts);
    return outcome(bytes, "sendmsg");
}

/* The socket must be in non-blocking mode: sendfile(2) has no flag for it. 0 is the file's end. */
static VALUE wire_sendfile(VALUE module, VALUE fd, VALUE file, VALUE offset, VALUE max)
{
    off_t from = NUM2OFFT(offset);
    return outcome(sendfile(NUM2INT(fd), NUM2INT(file), &from, NUM2SIZET(max)), "sendfile");
}

void pando_init_http_wire(void)
{
    VALUE module = rb_define_module_under(pando_mHTTP, "Wire");
    rb_define_module_function(module, "receive", wire_receive, 4);
    rb_define_module_function(module, "transmit", wire_transmit, 3);
    rb_define_module_function(module, "sendfile", wire_sendfile, 4);
}
