/* Pando::HTTP::Proxy: parses the PROXY header before the first request. Runs in workers. */
#include "bind_http.h"
#include "http/proxy.h"

/* Parses the first bytes of a connection: [bytes of the header, the client's address]. The address is nil if none is
 * given, and empty for a client on a UNIX socket. nil: more bytes are needed; false: not a PROXY header. */
static VALUE proxy_parse(VALUE module, VALUE buffer)
{
    pando_proxy_header header;
    Check_Type(buffer, T_STRING);
    switch (pando_proxy_parse(RSTRING_PTR(buffer), (size_t)RSTRING_LEN(buffer), &header)) {
    case PANDO_PROXY_DONE:
        return rb_ary_new_from_args(2, UINT2NUM(header.bytes), header.local ? Qnil : rb_str_new_cstr(header.address));
    case PANDO_PROXY_MORE:
        return Qnil;
    default:
        return Qfalse;
    }
}

void pando_init_http_proxy(void)
{
    VALUE module = rb_define_module_under(pando_mHTTP, "Proxy");
    rb_define_module_function(module, "parse", proxy_parse, 1);
}
