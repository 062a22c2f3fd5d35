/* Pando::HTTP::Head: writes the fields of a response head, and refuses what
 * would let an application's data become a field of its own. */
#include "bind_http.h"
#include "http/response.h"

#include <string.h>

static ID kinds[PANDO_HTTP_RESPONSE_HIDDEN + 1];

/* What a response field means to the server: a Symbol, nil for most, false if
 * the name is no field name. */
static VALUE head_kind(VALUE module, VALUE name)
{
    Check_Type(name, T_STRING);
    const char *text = RSTRING_PTR(name);
    size_t len = (size_t)RSTRING_LEN(name);
    if (!pando_http_name_valid(text, len))
        return Qfalse;
    int kind = pando_http_response_field(text, len);
    return kind == PANDO_HTTP_RESPONSE_OTHER ? Qnil : ID2SYM(kinds[kind]);
}

/* Appends "name: value" and CRLF, one line for each line of value (Rack 2 joins
 * several with LF). False and nothing appended if value holds anything else
 * that a field may not. The name has been checked by kind. */
static VALUE head_append(VALUE module, VALUE head, VALUE name, VALUE value)
{
    Check_Type(head, T_STRING);
    Check_Type(name, T_STRING);
    Check_Type(value, T_STRING);
    const char *text = RSTRING_PTR(value), *end = text + RSTRING_LEN(value);

    for (const char *from = text; from < end;) {
        const char *stop = memchr(from, '\n', (size_t)(end - from));
        if (!pando_http_value_valid(from, (size_t)((stop ? stop : end) - from)))
            return Qfalse;
        from = stop ? stop + 1 : end;
    }
    do {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        rb_str_cat(head, RSTRING_PTR(name), RSTRING_LEN(name));
        rb_str_cat(head, ": ", 2);
        rb_str_cat(head, text, (stop ? stop : end) - text);
        rb_str_cat(head, "\r\n", 2);
        text = stop ? stop + 1 : end;
    } while (text < end);
    RB_GC_GUARD(name);
    RB_GC_GUARD(value);
    return Qtrue;
}

static VALUE head_chunk_line(VALUE module, VALUE size)
{
    char line[PANDO_HTTP_CHUNK_LINE_MAX];
    size_t len = pando_http_chunk_line(NUM2ULL(size), line);
    return rb_str_new(line, (long)len);
}

void pando_init_http_head(void)
{
    VALUE module = rb_define_module_under(pando_mHTTP, "Head");
    rb_define_module_function(module, "kind", head_kind, 1);
    rb_define_module_function(module, "append", head_append, 3);
    rb_define_module_function(module, "chunk_line", head_chunk_line, 1);
    kinds[PANDO_HTTP_RESPONSE_CONTENT_LENGTH] = rb_intern("content_length");
    kinds[PANDO_HTTP_RESPONSE_TRANSFER_ENCODING] = rb_intern("transfer_encoding");
    kinds[PANDO_HTTP_RESPONSE_CONNECTION] = rb_intern("connection");
    kinds[PANDO_HTTP_RESPONSE_DATE] = rb_intern("date");
    kinds[PANDO_HTTP_RESPONSE_HIDDEN] = rb_intern("hidden");
}
