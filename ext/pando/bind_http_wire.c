/* Pando::HTTP::Wire: connections as bare descriptors, without an IO object. Runs in workers. accept, receive,
 * transmit and sendfile never block: they return nil where they would, or raise the errno. The caller decides about
 * waiting. */
#include "bind_http_answer.h"
#include "http/address.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <ruby/io.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

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

/* The peer accepted last. */
static struct {
    struct in6_addr address;
    size_t size;
    VALUE text;
} last;

/* Behind a proxy all connections come from the same address. nil for a UNIX socket. */
static VALUE address_text(const struct sockaddr_storage *peer)
{
    char text[INET6_ADDRSTRLEN];
    int six = peer->ss_family == AF_INET6;
    const void *address = six ? (const void *)&((const struct sockaddr_in6 *)peer)->sin6_addr
                              : (const void *)&((const struct sockaddr_in *)peer)->sin_addr;
    size_t size = six ? sizeof(struct in6_addr) : sizeof(struct in_addr);
    if (!six && peer->ss_family != AF_INET) return Qnil;
    if (size == last.size && memcmp(address, &last.address, size) == 0) return last.text;
    if (!pando_http_peer_text(peer, text, sizeof(text))) return Qnil;
    last.text = rb_obj_freeze(rb_str_new_cstr(text));
    last.size = size;
    memcpy(&last.address, address, size);
    return last.text;
}

/* [descriptor, address of the peer], nil if no connection waits. Non-blocking and close-on-exec. */
static VALUE wire_accept(VALUE module, VALUE listener)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof(address);
    int fd = accept4(NUM2INT(listener), (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd == -1)
        return outcome(-1, "accept");
    return rb_ary_new_from_args(2, INT2NUM(fd), address_text(&address));
}

static VALUE wait_for(VALUE fd, int events, VALUE seconds)
{
    struct timeval limit = NIL_P(seconds) ? (struct timeval){0} : rb_time_interval(seconds);
    int ready = rb_wait_for_single_fd(NUM2INT(fd), events, NIL_P(seconds) ? NULL : &limit);
    if (ready == -1)
        rb_sys_fail("poll");
    return ready > 0 ? Qtrue : Qfalse;
}

/* False after so many seconds; nil: waits for ever. Meanwhile other threads run, and signals are handled. */
static VALUE wire_wait_readable(VALUE module, VALUE fd, VALUE seconds)
{
    return wait_for(fd, RB_WAITFD_IN, seconds);
}

static VALUE wire_wait_writable(VALUE module, VALUE fd, VALUE seconds)
{
    return wait_for(fd, RB_WAITFD_OUT, seconds);
}

static int poll_now(VALUE fd, short events)
{
    struct pollfd state = {.fd = NUM2INT(fd), .events = events};
    return poll(&state, 1, 0) == 1 ? state.revents : 0;
}

/* Whether the peer has reset the connection, or both sides have closed it. */
static VALUE wire_gone_p(VALUE module, VALUE fd)
{
    return poll_now(fd, 0) & (POLLHUP | POLLERR | POLLNVAL) ? Qtrue : Qfalse;
}

/* Whether the peer has half-closed; what it sent before may still be unread. */
static VALUE wire_half_closed_p(VALUE module, VALUE fd)
{
    return poll_now(fd, POLLRDHUP) & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL) ? Qtrue : Qfalse;
}

/* Half-closes: no more will be sent. */
static VALUE wire_finish(VALUE module, VALUE fd)
{
    if (shutdown(NUM2INT(fd), SHUT_WR) == -1)
        rb_sys_fail("shutdown");
    return Qnil;
}

/* Closes so that the peer gets the FIN behind all that was sent, even if a process that the application forked holds a
 * copy. Received bytes that nobody has read make it a reset all the same, which drops unsent data: the caller reads
 * them first. */
static VALUE wire_close(VALUE module, VALUE fd)
{
    shutdown(NUM2INT(fd), SHUT_WR); /* fails if the peer has gone */
    close(NUM2INT(fd)); /* whatever it returns, the descriptor is closed: close(2) */
    return Qnil;
}

/* Closes with a reset: SO_LINGER with zero seconds, socket(7). */
static VALUE wire_reset(VALUE module, VALUE fd)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    setsockopt(NUM2INT(fd), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    close(NUM2INT(fd));
    return Qnil;
}

/* Receives up to max bytes behind the first offset bytes of buffer; 0: the peer's EOF. */
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

/* Sends what follows the first offset bytes of an Array of Strings, taken together. */
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

/* answer(descriptor, status_line, fields, body, ending): sends an ordinary response. The kernel holds the last
 * segment back for up to 200 ms, so that it travels with the FIN (MSG_MORE, send(2)). Returns the bytes sent, or, if
 * that is not all, also the whole text in an Array; nil: the response is not ordinary. */
static VALUE wire_answer(VALUE module, VALUE fd, VALUE status_line, VALUE fields, VALUE body, VALUE ending)
{
    struct pando_answer answer;
    int socket = NUM2INT(fd);
    if (!pando_answer_compose(&answer, status_line, fields, body, ending)) return Qnil;

    struct msghdr message = {.msg_iov = answer.parts, .msg_iovlen = answer.count};
    VALUE sent = outcome(sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE), "sendmsg");
    RB_GC_GUARD(body);
    if (sent == SIZET2NUM(answer.head_bytes + answer.body_bytes)) return sent;
    return rb_ary_new_from_args(2, NIL_P(sent) ? INT2FIX(0) : sent, pando_answer_text(&answer, body));
}

/* The socket must be in non-blocking mode: sendfile(2) has no flag for it. 0: the end of the file. */
static VALUE wire_sendfile(VALUE module, VALUE fd, VALUE file, VALUE offset, VALUE max)
{
    off_t from = NUM2OFFT(offset);
    return outcome(sendfile(NUM2INT(fd), NUM2INT(file), &from, NUM2SIZET(max)), "sendfile");
}

/* The total size of an Array's Strings. */
static VALUE wire_bytes(VALUE module, VALUE parts)
{
    Check_Type(parts, T_ARRAY);
    size_t bytes = 0;
    for (long i = 0; i < RARRAY_LEN(parts); i++) {
        VALUE part = rb_ary_entry(parts, i);
        Check_Type(part, T_STRING);
        bytes += (size_t)RSTRING_LEN(part);
    }
    return SIZET2NUM(bytes);
}

void pando_init_http_wire(void)
{
    VALUE module = rb_define_module_under(pando_mHTTP, "Wire");
    rb_define_module_function(module, "accept", wire_accept, 1);
    rb_define_module_function(module, "bytes", wire_bytes, 1);
    rb_define_module_function(module, "wait_readable", wire_wait_readable, 2);
    rb_define_module_function(module, "wait_writable", wire_wait_writable, 2);
    rb_define_module_function(module, "gone?", wire_gone_p, 1);
    rb_define_module_function(module, "half_closed?", wire_half_closed_p, 1);
    rb_define_module_function(module, "finish", wire_finish, 1);
    rb_define_module_function(module, "close", wire_close, 1);
    rb_define_module_function(module, "reset", wire_reset, 1);
    rb_define_module_function(module, "receive", wire_receive, 4);
    rb_define_module_function(module, "transmit", wire_transmit, 3);
    rb_define_module_function(module, "answer", wire_answer, 5);
    rb_define_module_function(module, "sendfile", wire_sendfile, 4);
    last.text = Qnil;
    rb_gc_register_address(&last.text);
}
