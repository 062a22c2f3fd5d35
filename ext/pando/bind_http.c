/* Binds the pure-C HTTP code in http/ to Ruby. Runs in the monitor and in workers. */
#include "bind_http.h"

VALUE pando_mHTTP;

void pando_init_http(void)
{
    pando_mHTTP = rb_define_module_under(pando_mPando, "HTTP");
    pando_init_http_parser();
    pando_init_http_env();
    pando_init_http_chunked();
    pando_init_http_head();
    pando_init_http_wire();
    pando_init_http_proxy();
    pando_init_http_channel();
    pando_init_http_reactor();
}
