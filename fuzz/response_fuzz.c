/* What passes the checks for response fields never holds a byte that ends a
 * line; chunk lines read back as the size they were made of. */
#include "fuzz.h"
#include "http/chunked.h"
#include "http/response.h"

#include <string.h>

static void check_chunk_line(uint64_t size)
{
    char line[PANDO_HTTP_CHUNK_LINE_MAX];
    size_t len = pando_http_chunk_line(size, line), used = 0;
    REQUIRE(len >= 3 && len <= sizeof(line));
    if (size == 0 || size >= (uint64_t)1 << 60)
        return;

    pando_http_chunked chunked;
    pando_http_chunked_init(&chunked);
    REQUIRE(pando_http_chunked_next(&chunked, line, len, &used) == PANDO_HTTP_CHUNK_MORE);
    REQUIRE(chunked.left == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    int breaks = size > 0 && (memchr(text, '\r', size) || memchr(text, '\n', size) || memchr(text, 0, size));

    if (pando_http_value_valid(text, size))
        REQUIRE(!breaks);
    if (pando_http_name_valid(text, size))
        REQUIRE(!breaks && size > 0 && !memchr(text, ':', size) && !memchr(text, ' ', size));
    int field = pando_http_response_field(text, size);
    REQUIRE(field >= PANDO_HTTP_RESPONSE_OTHER && field <= PANDO_HTTP_RESPONSE_HIDDEN);

    uint64_t number = 0;
    memcpy(&number, data, size < sizeof(number) ? size : sizeof(number));
    check_chunk_line(number);
    return 0;
}
