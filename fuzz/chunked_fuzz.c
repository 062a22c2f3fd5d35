/* Feeds arbitrary bytes to the chunked decoder: the same body, announcement and end
 * however the bytes are cut, piece by piece and gathered in place, and never more
 * body than input. The first byte of the input chooses the cut. */
#include "fuzz.h"
#include "http/chunked.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    pando_http_chunk_result result;
    size_t used;
    size_t size;
    uint64_t announced;
    char body[FUZZ_MAX_INPUT];
} outcome;

static void decode(outcome *out, const char *bytes, size_t len, size_t step)
{
    pando_http_chunked chunked;
    pando_http_chunked_init(&chunked);
    memset(out, 0, sizeof(*out));

    while (out->used < len && out->result == PANDO_HTTP_CHUNK_MORE) {
        size_t portion = len - out->used < step ? len - out->used : step, used = 0;
        char *copy = malloc(portion);
        memcpy(copy, bytes + out->used, portion);
        while ((out->result = pando_http_chunked_next(&chunked, copy, portion, &used)) == PANDO_HTTP_CHUNK_DATA) {
            REQUIRE(chunked.data_len > 0 && chunked.data_off + chunked.data_len <= portion);
            REQUIRE(out->size + chunked.data_len <= len);
            memcpy(out->body + out->size, copy + chunked.data_off, chunked.data_len);
            out->size += chunked.data_len;
        }
        REQUIRE(used <= portion);
        REQUIRE(out->result != PANDO_HTTP_CHUNK_MORE || used == portion);
        out->used += used;
        out->announced = pando_http_chunked_announced(&chunked);
        free(copy);
    }
}

static void gather(outcome *out, const char *bytes, size_t len, size_t step)
{
    pando_http_chunked chunked;
    pando_http_chunked_init(&chunked);
    memset(out, 0, sizeof(*out));

    while (out->used < len && out->result == PANDO_HTTP_CHUNK_MORE) {
        size_t portion = len - out->used < step ? len - out->used : step, used = 0, size = 0;
        char *copy = malloc(portion);
        memcpy(copy, bytes + out->used, portion);
        out->result = pando_http_chunked_gather(&chunked, copy, portion, &used, copy, &size);
        REQUIRE(out->result != PANDO_HTTP_CHUNK_DATA);
        REQUIRE(used <= portion && size <= used);
        REQUIRE(out->result != PANDO_HTTP_CHUNK_MORE || used == portion);
        memcpy(out->body + out->size, copy, size);
        out->size += size;
        out->used += used;
        out->announced = pando_http_chunked_announced(&chunked);
        free(copy);
    }
}

static void same(const outcome *one, const outcome *other)
{
    REQUIRE(one->result == other->result);
    REQUIRE(one->used == other->used && one->size == other->size);
    REQUIRE(one->announced == other->announced);
    REQUIRE(memcmp(one->body, other->body, one->size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static outcome whole, cut, gathered;
    if (size < 1 || size > FUZZ_MAX_INPUT)
        return 0;
    const char *bytes = (const char *)data + 1;
    size_t len = size - 1;

    decode(&whole, bytes, len, len ? len : 1);
    decode(&cut, bytes, len, data[0] % 7 + 1);
    same(&whole, &cut);
    gather(&gathered, bytes, len, len ? len : 1);
    same(&whole, &gathered);
    gather(&gathered, bytes, len, data[0] / 7 + 1);
    same(&whole, &gathered);
    return 0;
}
