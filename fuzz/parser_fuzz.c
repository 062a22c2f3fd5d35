/* Feeds arbitrary bytes to the request parser. Besides what the sanitizers
 * find, it must give the same answer however the bytes are cut, and its offsets
 * must lie inside the head. The first byte of the input chooses the cut. */
#include "fuzz.h"
#include "http/parser.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FIELDS 16

typedef struct {
    pando_http_result result;
    pando_http_parser parser;
    pando_http_field fields[MAX_FIELDS];
} outcome;

/* Each call gets a copy of just the bytes it may look at. */
static void parse(outcome *out, const char *bytes, size_t len, size_t step)
{
    pando_http_limits limits = {2048, 256, MAX_FIELDS};
    memset(out, 0, sizeof(*out));
    pando_http_parser_init(&out->parser, limits, out->fields);
    for (size_t end = 0; end < len && out->result == PANDO_HTTP_MORE;) {
        end = len - end < step ? len : end + step;
        char *copy = malloc(end);
        memcpy(copy, bytes, end);
        out->result = pando_http_parser_run(&out->parser, copy, end);
        free(copy);
    }
    out->parser.fields = NULL;
}

static void check_span(const pando_http_parser *parser, pando_http_span span)
{
    REQUIRE(span.off <= parser->head_len && span.len <= parser->head_len - span.off);
}

static void check_done(const outcome *out, size_t len)
{
    const pando_http_parser *parser = &out->parser;
    REQUIRE(parser->head_len > 0 && parser->head_len <= len);
    REQUIRE(parser->field_count <= MAX_FIELDS);
    REQUIRE(parser->method.len > 0 && parser->target.len > 0);
    check_span(parser, parser->method);
    check_span(parser, parser->target);
    check_span(parser, parser->path);
    check_span(parser, parser->query);
    check_span(parser, parser->host);
    check_span(parser, parser->port);
    check_span(parser, parser->authority);
    REQUIRE(parser->minor == 0 || parser->has_host);
    REQUIRE(!(parser->body == PANDO_HTTP_CHUNKED_BODY && parser->has_length));
    for (uint32_t i = 0; i < parser->field_count; i++) {
        check_span(parser, out->fields[i].name);
        check_span(parser, out->fields[i].value);
        REQUIRE(out->fields[i].name.len > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static outcome whole, cut;
    if (size < 1)
        return 0;
    const char *bytes = (const char *)data + 1;
    size_t len = size - 1, step = data[0] % 7 + 1;

    parse(&whole, bytes, len, len ? len : 1);
    parse(&cut, bytes, len, step);
    REQUIRE(whole.result == cut.result);
    if (whole.result == PANDO_HTTP_MORE)
        return 0;
    if (whole.result == PANDO_HTTP_ERROR) {
        REQUIRE(whole.parser.status >= 400 && whole.parser.status < 600);
        REQUIRE(whole.parser.status == cut.parser.status && whole.parser.reason == cut.parser.reason);
        return 0;
    }
    check_done(&whole, len);
    REQUIRE(memcmp(&whole, &cut, sizeof(whole)) == 0);
    return 0;
}
