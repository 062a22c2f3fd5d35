/* Pando::HTTP::Chunked: decodes a chunked request body. Runs in workers. */
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

/* Appends the body data in input to output. nil: more input is needed; false: malformed; an Integer: the body has
 * ended, and so many bytes of input belong to it. */
static VALUE chunked_decode(VALUE object, VALUE input, VALUE output)
{
    pando_http_chunked *self = chunked_of(object);
    StringValue(input);
    StringValue(output);
    if (input == output)
        rb_raise(rb_eArgError, "input and output must differ");

    long before = RSTRING_LEN(output);
    size_t used = 0, bytes = 0;
    rb_str_modify_expand(output, RSTRING_LEN(input));
    pando_http_chunk_result result = pando_http_chunked_gather(self, RSTRING_PTR(input), (size_t)RSTRING_LEN(input),
                                                               &used, RSTRING_PTR(output) + before, &bytes);
    rb_str_set_len(output, before + (long)bytes);
    RB_GC_GUARD(input);
    switch (result) {
    case PANDO_HTTP_CHUNK_MORE:
        return Qnil;
    case PANDO_HTTP_CHUNK_DONE:
        return SIZET2NUM(used);
    default:
        return Qfalse;
    }
}

/* Bytes of the current chunk still to come, by its size line; 0 before the end of that line. */
static VALUE chunked_announced(VALUE object)
{
    return ULL2NUM(pando_http_chunked_announced(chunked_of(object)));
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
    rb_define_method(klass, "announced", chunked_announced, 0);
    rb_define_method(klass, "reason", chunked_reason, 0);
}
