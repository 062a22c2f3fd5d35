/* Pando::HTTP::Parser: parses one request head after another from a String that the caller appends to. Runs in
 * workers. */
#include "bind_http.h"

typedef struct {
    pando_http_parser parser;
    pando_http_field *fields;
} handle;

static void handle_free(void *pointer)
{
    handle *self = pointer;
    xfree(self->fields);
    xfree(self);
}

static size_t handle_size(const void *pointer)
{
    const handle *self = pointer;
    return sizeof(*self) + self->parser.limits.max_fields * sizeof(pando_http_field);
}

static const rb_data_type_t handle_type = {
    "Pando::HTTP::Parser", {NULL, handle_free, handle_size, NULL, {0}}, NULL, NULL, RUBY_TYPED_FREE_IMMEDIATELY};

static VALUE parser_alloc(VALUE klass)
{
    handle *self;
    return TypedData_Make_Struct(klass, handle, &handle_type, self);
}

static handle *handle_of(VALUE object)
{
    handle *self;
    TypedData_Get_Struct(object, handle, &handle_type, self);
    if (!self->fields)
        rb_raise(rb_eRuntimeError, "Pando::HTTP::Parser was not initialized");
    return self;
}

static uint32_t positive(VALUE number, const char *what)
{
    unsigned long value = NUM2ULONG(number);
    if (value < 1 || value > UINT32_MAX)
        rb_raise(rb_eArgError, "%s must be positive and fit 32 bits", what);
    return (uint32_t)value;
}

static VALUE parser_initialize(VALUE object, VALUE max_head, VALUE max_target, VALUE max_fields)
{
    handle *self;
    TypedData_Get_Struct(object, handle, &handle_type, self);
    if (self->fields)
        rb_raise(rb_eRuntimeError, "Pando::HTTP::Parser is initialized once");

    pando_http_limits limits = {positive(max_head, "max_head"), positive(max_target, "max_target"),
                                positive(max_fields, "max_fields")};
    self->fields = ALLOC_N(pando_http_field, limits.max_fields);
    pando_http_parser_init(&self->parser, limits, self->fields);
    return object;
}

static VALUE parser_reset(VALUE object)
{
    pando_http_parser_reset(&handle_of(object)->parser);
    return object;
}

/* nil: more bytes are needed; true: the head is complete; an Integer: the status to refuse it with. */
static VALUE parser_run(VALUE object, VALUE buffer)
{
    pando_http_parser *parser = &handle_of(object)->parser;
    StringValue(buffer);
    pando_http_result result = pando_http_parser_run(parser, RSTRING_PTR(buffer), (size_t)RSTRING_LEN(buffer));
    RB_GC_GUARD(buffer);
    switch (result) {
    case PANDO_HTTP_MORE:
        return Qnil;
    case PANDO_HTTP_DONE:
        return Qtrue;
    default:
        return INT2FIX(parser->status);
    }
}

/* Parses a whole head from its beginning; returns as run does. */
static VALUE parser_parse(VALUE object, VALUE buffer)
{
    return parser_run(parser_reset(object), buffer);
}

/* The parser, checked to have a complete result whose buffer is still there. */
static pando_http_parser *complete(VALUE object, VALUE buffer)
{
    pando_http_parser *parser = &handle_of(object)->parser;
    if (parser->head_len == 0)
        rb_raise(rb_eRuntimeError, "the request head is not complete");
    if (!RB_NIL_P(buffer)) {
        StringValue(buffer);
        if ((size_t)RSTRING_LEN(buffer) < parser->head_len)
            rb_raise(rb_eArgError, "this is not the buffer that was parsed");
    }
    return parser;
}

/* environment(template, buffer, remote, asterisk): a copy of the template plus the head in the buffer. remote:
 * REMOTE_ADDR; asterisk: PATH_INFO of a request for "*". */
static VALUE parser_environment(VALUE object, VALUE template, VALUE buffer, VALUE remote, VALUE asterisk)
{
    Check_Type(template, T_HASH);
    Check_Type(buffer, T_STRING);
    const pando_http_parser *parser = complete(object, buffer);
    VALUE env = pando_http_environment(template, parser, RSTRING_PTR(buffer), remote, asterisk);
    RB_GC_GUARD(buffer);
    return env;
}

static VALUE parser_head_size(VALUE object)
{
    return UINT2NUM(complete(object, Qnil)->head_len);
}

static VALUE parser_content_length(VALUE object)
{
    const pando_http_parser *parser = complete(object, Qnil);
    return parser->has_length ? ULL2NUM(parser->content_length) : Qnil;
}

static VALUE parser_body_p(VALUE object)
{
    return complete(object, Qnil)->body == PANDO_HTTP_NO_BODY ? Qfalse : Qtrue;
}

static VALUE parser_chunked_p(VALUE object)
{
    return complete(object, Qnil)->body == PANDO_HTTP_CHUNKED_BODY ? Qtrue : Qfalse;
}

static VALUE parser_minor(VALUE object)
{
    return INT2FIX(complete(object, Qnil)->minor > 0 ? 1 : 0);
}

static VALUE parser_keep_alive_p(VALUE object)
{
    const pando_http_parser *parser = complete(object, Qnil);
    return !parser->close && (parser->minor > 0 || parser->keep_alive) ? Qtrue : Qfalse;
}

static VALUE parser_expect_continue_p(VALUE object)
{
    const pando_http_parser *parser = complete(object, Qnil);
    return parser->expect_continue && parser->minor > 0 ? Qtrue : Qfalse;
}

/* Whether a field says which client the peer speaks for. */
static VALUE parser_forwarded_p(VALUE object)
{
    return complete(object, Qnil)->forwarded ? Qtrue : Qfalse;
}

static VALUE parser_connect_p(VALUE object)
{
    return complete(object, Qnil)->form == PANDO_HTTP_AUTHORITY_FORM ? Qtrue : Qfalse;
}

static VALUE parser_https_p(VALUE object)
{
    return complete(object, Qnil)->https ? Qtrue : Qfalse;
}

static VALUE parser_reason(VALUE object)
{
    const char *reason = handle_of(object)->parser.reason;
    return reason ? rb_str_new_cstr(reason) : Qnil;
}

void pando_init_http_parser(void)
{
    VALUE klass = rb_define_class_under(pando_mHTTP, "Parser", rb_cObject);
    rb_define_alloc_func(klass, parser_alloc);
    rb_undef_method(klass, "initialize_copy");
    rb_define_method(klass, "initialize", parser_initialize, 3);
    rb_define_method(klass, "reset", parser_reset, 0);
    rb_define_method(klass, "run", parser_run, 1);
    rb_define_method(klass, "parse", parser_parse, 1);
    rb_define_method(klass, "environment", parser_environment, 4);
    rb_define_method(klass, "head_size", parser_head_size, 0);
    rb_define_method(klass, "content_length", parser_content_length, 0);
    rb_define_method(klass, "body?", parser_body_p, 0);
    rb_define_method(klass, "chunked?", parser_chunked_p, 0);
    rb_define_method(klass, "minor", parser_minor, 0);
    rb_define_method(klass, "keep_alive?", parser_keep_alive_p, 0);
    rb_define_method(klass, "expect_continue?", parser_expect_continue_p, 0);
    rb_define_method(klass, "forwarded?", parser_forwarded_p, 0);
    rb_define_method(klass, "connect?", parser_connect_p, 0);
    rb_define_method(klass, "https?", parser_https_p, 0);
    rb_define_method(klass, "reason", parser_reason, 0);
}
