/* Turns a parsed request into the CGI variables of a Rack environment. Runs in workers. */
#include "bind_http.h"
#include "http/chars.h"

#include <ruby/encoding.h>
#include <stdio.h>
#include <string.h>

/* Common fields, whose keys are created once. */
static const char *const common_names[] = {
    "accept", "accept-charset", "accept-encoding", "accept-language", "access-control-request-headers",
    "access-control-request-method", "authorization", "baggage", "cache-control", "cdn-loop", "cf-connecting-ip",
    "cf-ipcountry", "cf-ray", "cf-visitor", "client-ip", "connection", "content-encoding", "content-language",
    "content-md5", "content-range", "cookie", "dnt", "date", "expect", "fastly-client-ip", "forwarded", "from",
    "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "keep-alive",
    "last-event-id", "max-forwards", "origin", "pragma", "priority", "proxy-authorization", "range", "referer",
    "sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site",
    "sec-fetch-user", "sec-gpc", "sec-websocket-extensions", "sec-websocket-key", "sec-websocket-protocol",
    "sec-websocket-version", "save-data", "te", "trailer", "traceparent", "tracestate", "true-client-ip",
    "turbo-frame", "upgrade", "upgrade-insecure-requests", "user-agent", "via", "warning", "x-amzn-trace-id",
    "x-api-key", "x-client-ip", "x-cloud-trace-context", "x-csrf-token", "x-forwarded-for", "x-forwarded-host",
    "x-forwarded-port", "x-forwarded-proto", "x-forwarded-scheme", "x-forwarded-server", "x-forwarded-ssl",
    "x-http-method-override", "x-real-ip", "x-request-id", "x-request-start", "x-requested-with",
    "x-session-id"};

#define GET 0
static const char *const common_methods[] = {[GET] = "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SLOTS 256

static struct {
    const char *name;
    VALUE key;
} names[SLOTS]; /* open addressing; never more than half full */

static VALUE methods[COUNT(common_methods)];
static VALUE request_method, request_uri, path_info, query_string, server_name, server_port, server_protocol;
static VALUE content_type, content_length, http_host, http_cookie, http_1_0, port_80;
static VALUE remote_addr, last_name, last_port;

/* Interned as UTF-8, so that a literal in the application is the same object. */
static VALUE interned(const char *text, size_t len)
{
    return rb_enc_interned_str(text, (long)len, rb_utf8_encoding());
}

static VALUE constant(const char *text)
{
    VALUE string = interned(text, strlen(text));
    rb_gc_register_mark_object(string);
    return string;
}

static unsigned slot_of(const char *name, size_t len)
{
    unsigned hash = (unsigned)len;
    for (size_t i = 0; i < len; i++)
        hash = hash * 31 + (unsigned char)pando_http_lower(name[i]);
    return (hash ^ hash >> 8) % SLOTS;
}

static int same(const char *name, size_t len, const char *lower)
{
    if (strlen(lower) != len)
        return 0;
    for (size_t i = 0; i < len; i++)
        if (pando_http_lower(name[i]) != lower[i])
            return 0;
    return 1;
}

static void write_key(char *key, const char *name, size_t len)
{
    memcpy(key, "HTTP_", 5);
    for (size_t i = 0; i < len; i++) {
        char byte = name[i];
        if (byte == '-')
            byte = '_';
        else if (byte >= 'a' && byte <= 'z')
            byte = (char)(byte & ~0x20);
        key[5 + i] = byte;
    }
}

static VALUE make_key(const char *name, size_t len)
{
    char brief[128];
    if (5 + len <= sizeof(brief)) {
        write_key(brief, name, len);
        return interned(brief, 5 + len);
    }
    VALUE memory;
    char *key = rb_alloc_tmp_buffer(&memory, (long)(5 + len));
    write_key(key, name, len);
    VALUE string = interned(key, 5 + len);
    rb_free_tmp_buffer(&memory);
    return string;
}

static VALUE key_for(const char *name, size_t len)
{
    for (unsigned slot = slot_of(name, len); names[slot].name; slot = (slot + 1) % SLOTS)
        if (same(name, len, names[slot].name))
            return names[slot].key;
    return make_key(name, len);
}

static VALUE string_of(const char *buffer, pando_http_span span)
{
    return rb_str_new(buffer + span.off, span.len);
}

static VALUE method_of(const char *buffer, pando_http_span span)
{
    for (size_t i = 0; i < COUNT(common_methods); i++)
        if (strlen(common_methods[i]) == span.len && memcmp(common_methods[i], buffer + span.off, span.len) == 0)
            return methods[i];
    return string_of(buffer, span);
}

/* Repeated fields are joined to one list, RFC 9110 section 5.3; cookies by RFC 6265 section 5.4. */
static void add(VALUE env, VALUE key, VALUE value)
{
    VALUE before = rb_hash_lookup2(env, key, Qundef);
    if (before == Qundef) {
        rb_hash_aset(env, key, value);
        return;
    }
    rb_str_cat_cstr(before, key == http_cookie ? "; " : ", ");
    rb_str_append(before, value);
}

/* X_Forwarded_For would set the variable of X-Forwarded-For, which a proxy vouches for. */
static int ambiguous(const char *name, size_t len)
{
    return memchr(name, '_', len) != NULL;
}

static void add_field(VALUE env, const pando_http_field *field, const char *buffer)
{
    const char *name = buffer + field->name.off;
    size_t len = field->name.len;
    switch (field->id) {
    case PANDO_HTTP_FIELD_HOST:              /* set from the authority */
    case PANDO_HTTP_FIELD_CONTENT_LENGTH:    /* set from the parsed number */
    case PANDO_HTTP_FIELD_TRANSFER_ENCODING: /* decoded before the application sees the body */
        return;
    default:
        if (same(name, len, "content-type"))
            add(env, content_type, string_of(buffer, field->value));
        else if (!ambiguous(name, len))
            add(env, key_for(name, len), string_of(buffer, field->value));
    }
}

/* Most requests have the same host as the last one. */
static VALUE as_last_time(VALUE *last, const char *buffer, pando_http_span span)
{
    if (RSTRING_LEN(*last) != (long)span.len || memcmp(RSTRING_PTR(*last), buffer + span.off, span.len) != 0)
        *last = rb_obj_freeze(string_of(buffer, span));
    return *last;
}

static void set_host(VALUE env, const pando_http_parser *parser, const char *buffer)
{
    if (parser->has_host || parser->authority.len > 0)
        rb_hash_aset(env, http_host, string_of(buffer, parser->authority));
    if (parser->host.len == 0)
        return; /* keep the template's own name and port */
    rb_hash_aset(env, server_name, as_last_time(&last_name, buffer, parser->host));
    rb_hash_aset(env, server_port, parser->port.len > 0 ? as_last_time(&last_port, buffer, parser->port) : port_80);
}

static VALUE path_of(const pando_http_parser *parser, const char *buffer, VALUE asterisk)
{
    if (parser->form == PANDO_HTTP_ASTERISK_FORM) return asterisk;
    return parser->path.len > 0 ? string_of(buffer, parser->path) : rb_str_new("/", 1);
}

/* The template holds the values that most requests have. */
static void set_request_line(VALUE env, const pando_http_parser *parser, const char *buffer, VALUE asterisk)
{
    VALUE method = method_of(buffer, parser->method);
    if (method != methods[GET])
        rb_hash_aset(env, request_method, method);
    rb_hash_aset(env, request_uri, string_of(buffer, parser->target));
    rb_hash_aset(env, path_info, path_of(parser, buffer, asterisk));
    rb_hash_aset(env, query_string, string_of(buffer, parser->query));
    if (parser->minor == 0)
        rb_hash_aset(env, server_protocol, http_1_0);
}

VALUE pando_http_environment(VALUE template, const pando_http_parser *parser, const char *buffer, VALUE remote,
                             VALUE asterisk)
{
    VALUE env = rb_hash_dup(template);
    set_request_line(env, parser, buffer, asterisk);
    rb_hash_aset(env, remote_addr, remote);
    set_host(env, parser, buffer);
    if (parser->has_length) {
        char digits[24];
        int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)parser->content_length);
        rb_hash_aset(env, content_length, rb_str_new(digits, len));
    }
    for (uint32_t i = 0; i < parser->field_count; i++)
        add_field(env, &parser->fields[i], buffer);
    return env;
}

void pando_init_http_env(void)
{
    for (size_t i = 0; i < COUNT(common_names); i++) {
        size_t len = strlen(common_names[i]);
        unsigned slot = slot_of(common_names[i], len);
        while (names[slot].name)
            slot = (slot + 1) % SLOTS;
        names[slot].name = common_names[i];
        names[slot].key = make_key(common_names[i], len);
        rb_gc_register_mark_object(names[slot].key);
    }
    for (size_t i = 0; i < COUNT(common_methods); i++)
        methods[i] = constant(common_methods[i]);

    request_method = constant("REQUEST_METHOD");
    request_uri = constant("REQUEST_URI");
    path_info = constant("PATH_INFO");
    query_string = constant("QUERY_STRING");
    server_name = constant("SERVER_NAME");
    server_port = constant("SERVER_PORT");
    server_protocol = constant("SERVER_PROTOCOL");
    content_type = constant("CONTENT_TYPE");
    content_length = constant("CONTENT_LENGTH");
    http_host = constant("HTTP_HOST");
    http_cookie = constant("HTTP_COOKIE");
    http_1_0 = constant("HTTP/1.0");
    port_80 = constant("80");
    remote_addr = constant("REMOTE_ADDR");
    last_name = last_port = port_80;
    rb_gc_register_address(&last_name);
    rb_gc_register_address(&last_port);
}
