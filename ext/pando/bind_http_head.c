/* Pando::HTTP::Head: writes the fields of a response head, and refuses data that would let an application inject a
 * field. Runs in workers. */
#include "bind_http.h"
#include "http/date.h"
#include "http/response.h"

#include <string.h>

static ID kinds[PANDO_HTTP_RESPONSE_HIDDEN + 1];

/* The meaning of a response field to the server: a Symbol, nil for most, false if the name is not a field name. */
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

/* Text that grows: on the stack while it is short, as it nearly always is. */
struct text {
    size_t length;
    VALUE overflow; /* a String, or nil */
    char brief[1024];
};

static void begin(struct text *text)
{
    text->length = 0;
    text->overflow = Qnil;
}

static void put(struct text *text, const char *bytes, size_t count)
{
    if (text->length + count > sizeof(text->brief)) {
        if (NIL_P(text->overflow)) text->overflow = rb_str_buf_new((long)(4 * sizeof(text->brief)));
        rb_str_cat(text->overflow, text->brief, (long)text->length);
        text->length = 0;
    }
    if (count > sizeof(text->brief)) {
        rb_str_cat(text->overflow, bytes, (long)count);
    } else {
        memcpy(text->brief + text->length, bytes, count);
        text->length += count;
    }
}

static VALUE whole(struct text *text)
{
    if (NIL_P(text->overflow)) return rb_str_new(text->brief, (long)text->length);
    return rb_str_cat(text->overflow, text->brief, (long)text->length);
}

static void put_line(struct text *text, VALUE name, const char *value, size_t length)
{
    put(text, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    put(text, ": ", 2);
    put(text, value, length);
    put(text, "\r\n", 2);
}

/* "name: value" and CRLF, one line for each line of value (Rack 2 joins several with LF); nil if value holds anything
 * else that a field may not. `kind` has checked the name. */
static VALUE head_line(VALUE module, VALUE name, VALUE value)
{
    Check_Type(name, T_STRING);
    Check_Type(value, T_STRING);
    const char *at = RSTRING_PTR(value), *end = at + RSTRING_LEN(value);
    struct text text;
    begin(&text);

    do {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        if (!pando_http_value_valid(at, length))
            return Qnil;
        put_line(&text, name, at, length);
        at = stop ? stop + 1 : end;
    } while (at < end);
    RB_GC_GUARD(name);
    RB_GC_GUARD(value);
    return whole(&text);
}

/* --- a whole head's fields --- */

struct fields {
    struct text text;
    VALUE head;
};

static ID add_method, length_variable;

#define ASK (-1)

/* The meaning of the field to the server; ASK unless name and value are Strings and the name is a field name. */
static int kind_of(VALUE name, VALUE value)
{
    if (!RB_TYPE_P(name, T_STRING) || !RB_TYPE_P(value, T_STRING)) return ASK;
    if (!pando_http_name_valid(RSTRING_PTR(name), (size_t)RSTRING_LEN(name))) return ASK;
    return pando_http_response_field(RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
}

/* Sets the head's @length from an ordinary content-length. 0: it is not that simple. */
static int note_length(VALUE head, VALUE value)
{
    const char *digits = RSTRING_PTR(value);
    long count = RSTRING_LEN(value);
    uint64_t length = 0;
    if (count < 1 || count > 18) return 0;
    for (long i = 0; i < count; i++) {
        if (digits[i] < '0' || digits[i] > '9') return 0;
        length = length * 10 + (uint64_t)(digits[i] - '0');
    }
    rb_ivar_set(head, length_variable, ULL2NUM(length));
    return 1;
}

static int add_field(VALUE name, VALUE value, VALUE argument)
{
    struct fields *fields = (struct fields *)argument;
    struct text *text = &fields->text;
    int kind = kind_of(name, value);
    if (kind == PANDO_HTTP_RESPONSE_OTHER && pando_http_value_valid(RSTRING_PTR(value), (size_t)RSTRING_LEN(value))) {
        put_line(text, name, RSTRING_PTR(value), (size_t)RSTRING_LEN(value));
    } else if (kind != PANDO_HTTP_RESPONSE_CONTENT_LENGTH || !note_length(fields->head, value)) {
        VALUE lines = rb_funcall(fields->head, add_method, 2, name, value);
        if (!NIL_P(lines)) {
            StringValue(lines);
            put(text, RSTRING_PTR(lines), (size_t)RSTRING_LEN(lines));
            RB_GC_GUARD(lines);
        }
    }
    RB_GC_GUARD(name); /* text may grow while the bytes are copied: nothing may move them meanwhile */
    RB_GC_GUARD(value);
    return ST_CONTINUE;
}

static VALUE add_yielded(VALUE yielded, VALUE argument, int count, const VALUE *values, VALUE block)
{
    VALUE name = yielded, value = count > 1 ? values[1] : Qnil;
    if (count == 1 && RB_TYPE_P(yielded, T_ARRAY)) {
        name = rb_ary_entry(yielded, 0);
        value = rb_ary_entry(yielded, 1);
    }
    add_field(name, value, argument);
    return Qnil;
}

/* lines(fields, head): the lines of all fields. Calls head.add(name, value) for anything but Strings, and for fields
 * with meaning to the server; it returns the lines, or nil. A content-length becomes head's @length. */
static VALUE head_lines(VALUE module, VALUE all, VALUE head)
{
    struct fields fields;
    begin(&fields.text);
    fields.head = head;
    ID each = rb_intern("each");
    if (RB_TYPE_P(all, T_HASH) && rb_method_basic_definition_p(CLASS_OF(all), each))
        rb_hash_foreach(all, add_field, (VALUE)&fields);
    else
        rb_block_call(all, each, 0, NULL, add_yielded, (VALUE)&fields);
    return whole(&fields.text);
}

static void put_string(struct text *text, VALUE string)
{
    if (NIL_P(string)) return;
    StringValue(string);
    put(text, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
    RB_GC_GUARD(string);
}

static void put_length(struct text *text, uint64_t length)
{
    char digits[20];
    size_t first = sizeof(digits);
    do {
        digits[--first] = (char)('0' + length % 10);
        length /= 10;
    } while (length > 0);
    put(text, "content-length: ", 16);
    put(text, digits + first, sizeof(digits) - first);
    put(text, "\r\n", 2);
}

/* complete(status_line, lines, delimiter, ending, dated): a whole head. delimiter: the body's length in bytes, or a
 * line, or nil; dated: whether to leave out the server's date. */
static VALUE head_complete(VALUE module, VALUE status_line, VALUE lines, VALUE delimiter, VALUE ending, VALUE dated)
{
    struct text text;
    begin(&text);
    put_string(&text, status_line);
    put_string(&text, lines);
    if (RB_INTEGER_TYPE_P(delimiter)) {
        put_length(&text, NUM2ULL(delimiter));
    } else {
        put_string(&text, delimiter);
    }
    if (!RTEST(dated)) put(&text, pando_http_date_line(), PANDO_HTTP_DATE_LINE);
    put_string(&text, ending);
    return whole(&text);
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
    rb_define_module_function(module, "line", head_line, 2);
    rb_define_module_function(module, "lines", head_lines, 2);
    rb_define_module_function(module, "complete", head_complete, 5);
    add_method = rb_intern("add");
    length_variable = rb_intern("@length");
    rb_define_module_function(module, "chunk_line", head_chunk_line, 1);
    kinds[PANDO_HTTP_RESPONSE_CONTENT_LENGTH] = rb_intern("content_length");
    kinds[PANDO_HTTP_RESPONSE_TRANSFER_ENCODING] = rb_intern("transfer_encoding");
    kinds[PANDO_HTTP_RESPONSE_CONNECTION] = rb_intern("connection");
    kinds[PANDO_HTTP_RESPONSE_DATE] = rb_intern("date");
    kinds[PANDO_HTTP_RESPONSE_HIDDEN] = rb_intern("hidden");
}
