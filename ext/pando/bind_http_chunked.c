/* Pando::HTTP::Chunked: decodes a chunked request body. */
#include "bind_http.h"
#include "http/chunked.h"

static const rb_data_type_t chunked_type = {
    "Pando::HTTP::Chunked", {NULL, RUBY_TYPED_DEFAULT_FREE, NULL, NULL, {0}}, NULL, NULL, RUBY_TYPED_FREE_IMMEDIATELY};

static VALUE chunked_alloc(VALUE klass)
{
    pando_http_chunked *self;
    VALUE object = TypedData_Make_Struct(klass, pando_http_chunked, &chunked_type, self);
    pando_http_chunked_init(self);
    return object;
}

static pando_http_chunked *chunked_of(VALUE object)
{
    pando_http_chunked *self;
    TypedData_Get_Struct(object, pando_http_chunked, &chunked_type, self);
    return self;
}

/* Appends what input holds of the body to output. nil: more input is needed;
 * false: malformed; an Integer: the body ended, so many bytes of input belong to it. */
static VALUE chunked_decode(VALUE object, VALUE input, VALUE output)
{
    pando_http_chunked *self = chunked_of(object);
    StringValue(input);
    StringValue(output);
    if (input == output)
        rb_raise(rb_eArgError, "input and output must differ");

    const char *bytes = RSTRING_PTR(input);
    size_t len = (size_t)RSTRING_LEN(input), used = 0;
    for (;;) {
        switch (pando_http_chunked_next(self, bytes, len, &used)) {
        case PANDO_HTTP_CHUNK_DATA:
            rb_str_cat(output, bytes + self->data_off, (long)self->data_len);
            break;
        case PANDO_HTTP_CHUNK_MORE:
            RB_GC_GUARD(input);
            return Qnil;
        case PANDO_HTTP_CHUNK_DONE:
            RB_GC_GUARD(input);
            return SIZET2NUM(used);
        default:
            return Qfalse;
        }
    }
}

static VALUE chunked_reason(VALUE object)
{
    const char *reason = chunked_of(object)->reason;
    return reason ? rb_str_new_cstr(reason) : Qnil;
}

void pando_init_http_chunked(void)
{
    VALUE klass = rb_define_class_under(pando_mHTTP, "Chunked", rb_cObject);
    rb_define_alloc_func(klass, chunked_alloc);
    rb_undef_method(klass, "initialize_copy");
    rb_define_method(klass, "decode", chunked_decode, 2);
    rb_define_method(klass, "reason", chunked_reason, 0);
}
