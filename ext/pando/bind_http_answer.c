/* Composes the usual kind of response in one step, without an object of its own. All other responses go through
 * ResponseHead. Runs in workers. */
#include "bind_http_answer.h"

#include "http/date.h"
#include "http/response.h"

#include <string.h>

static int put(struct pando_answer *answer, const char *bytes, size_t count)
{
    if (count > PANDO_ANSWER_HEAD - answer->head_bytes) return 0;
    memcpy(answer->head + answer->head_bytes, bytes, count);
    answer->head_bytes += count;
    return 1;
}

static int put_string(struct pando_answer *answer, VALUE string)
{
    return RB_TYPE_P(string, T_STRING) && put(answer, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

static int put_length(struct pando_answer *answer)
{
    char digits[20];
    size_t first = sizeof(digits);
    uint64_t left = answer->body_bytes;
    do {
        digits[--first] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    return put(answer, "content-length: ", 16) && put(answer, digits + first, sizeof(digits) - first) &&
           put(answer, "\r\n", 2);
}

/* Whether the application's own content-length is right: then nothing needs to be done. */
static int is_length(const struct pando_answer *answer, const char *digits, size_t count)
{
    uint64_t length = 0;
    if (count < 1 || count > 18) return 0;
    for (size_t i = 0; i < count; i++) {
        if (digits[i] < '0' || digits[i] > '9') return 0;
        length = length * 10 + (uint64_t)(digits[i] - '0');
    }
    return length == answer->body_bytes;
}

struct composing {
    struct pando_answer *answer;
    int ordinary;
};

static int put_field(struct pando_answer *answer, VALUE name, VALUE value)
{
    if (!RB_TYPE_P(name, T_STRING) || !RB_TYPE_P(value, T_STRING)) return 0;
    const char *name_text = RSTRING_PTR(name), *text = RSTRING_PTR(value);
    size_t name_length = (size_t)RSTRING_LEN(name), length = (size_t)RSTRING_LEN(value);
    switch (pando_http_response_field(name_text, name_length)) {
    case PANDO_HTTP_RESPONSE_OTHER:
        return pando_http_name_valid(name_text, name_length) && pando_http_value_valid(text, length) &&
               put(answer, name_text, name_length) && put(answer, ": ", 2) && put(answer, text, length) &&
               put(answer, "\r\n", 2);
    case PANDO_HTTP_RESPONSE_CONTENT_LENGTH:
        return is_length(answer, text, length);
    default:
        return 0;
    }
}

static int each_field(VALUE name, VALUE value, VALUE argument)
{
    struct composing *composing = (struct composing *)argument;
    composing->ordinary = put_field(composing->answer, name, value);
    return composing->ordinary ? ST_CONTINUE : ST_STOP;
}

static int put_fields(struct pando_answer *answer, VALUE fields)
{
    struct composing composing = {answer, 1};
    if (!RB_TYPE_P(fields, T_HASH) || !rb_method_basic_definition_p(CLASS_OF(fields), rb_intern("each"))) return 0;
    rb_hash_foreach(fields, each_field, (VALUE)&composing);
    return composing.ordinary;
}

/* Counts the body's bytes. */
static int measure_body(struct pando_answer *answer, VALUE body)
{
    answer->body_bytes = 0;
    if (!RB_TYPE_P(body, T_ARRAY) || RARRAY_LEN(body) > PANDO_ANSWER_PARTS) return 0;
    for (long i = 0; i < RARRAY_LEN(body); i++) {
        VALUE part = RARRAY_AREF(body, i);
        if (!RB_TYPE_P(part, T_STRING)) return 0;
        answer->body_bytes += (size_t)RSTRING_LEN(part);
    }
    return answer->body_bytes <= PANDO_FRAME_PAYLOAD - PANDO_ANSWER_HEAD;
}

static int put_head(struct pando_answer *answer, VALUE status_line, VALUE fields, VALUE ending)
{
    answer->head_bytes = 0;
    return put_string(answer, status_line) && put_fields(answer, fields) && put_length(answer) &&
           put(answer, pando_http_date_line(), PANDO_HTTP_DATE_LINE) && put_string(answer, ending);
}

static void take_parts(struct pando_answer *answer, VALUE body)
{
    answer->count = 0;
    answer->parts[answer->count++] = (struct iovec){answer->head, answer->head_bytes};
    for (long i = 0; i < RARRAY_LEN(body); i++) {
        VALUE part = RARRAY_AREF(body, i);
        answer->parts[answer->count++] = (struct iovec){RSTRING_PTR(part), (size_t)RSTRING_LEN(part)};
    }
}

/* The parts come last: a look at the fields may allocate. */
int pando_answer_compose(struct pando_answer *answer, VALUE status_line, VALUE fields, VALUE body, VALUE ending)
{
    if (!measure_body(answer, body) || !put_head(answer, status_line, fields, ending)) return 0;
    take_parts(answer, body);
    return 1;
}

VALUE pando_answer_text(const struct pando_answer *answer, VALUE body)
{
    VALUE text = rb_str_buf_new((long)(answer->head_bytes + answer->body_bytes));
    rb_str_cat(text, answer->head, (long)answer->head_bytes);
    /* Not from answer->parts: where the garbage collector compacts, that allocation may have moved the body's
     * Strings. */
    for (long i = 0; i < RARRAY_LEN(body); i++) {
        VALUE part = RARRAY_AREF(body, i);
        rb_str_cat(text, RSTRING_PTR(part), RSTRING_LEN(part));
        RB_GC_GUARD(part);
    }
    RB_GC_GUARD(body);
    return text;
}
