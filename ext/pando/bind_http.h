/* Shared by the bindings of http/, in the monitor and in workers. */
#ifndef PANDO_BIND_HTTP_H
#define PANDO_BIND_HTTP_H

#include "http/channel.h"
#include "http/parser.h"
#include "pando_ext.h"

extern VALUE pando_mHTTP;

void pando_init_http_parser(void);
void pando_init_http_env(void);
void pando_init_http_chunked(void);
void pando_init_http_head(void);
void pando_init_http_wire(void);
void pando_init_http_proxy(void);
void pando_init_http_channel(void);
void pando_init_http_lane(void);
void pando_init_http_reactor(void);

/* Adds a parsed request to a Rack environment. */
VALUE pando_http_environment(VALUE template, const pando_http_parser *parser, const char *buffer, VALUE remote,
                             VALUE asterisk);

/* The channel of a Pando::HTTP::Channel. */
struct pando_channel *pando_channel_of(VALUE channel);

#endif
