/* Feeds arbitrary bytes to the reader of PROXY headers. It must give the same
 * answer however the bytes are cut: "more" up to the header's last byte, and
 * from there on the same for good. What it names must be an address. */
#include "fuzz.h"
#include "http/proxy.h"

#include <arpa/inet.h>
#include <string.h>

/* Each call gets a copy of just the bytes it may look at. */
static pando_proxy_result parse(const uint8_t *data, size_t size, pando_proxy_header *header)
{
    char *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    pando_proxy_result result = pando_proxy_parse(copy, size, header);
    free(copy);
    return result;
}

static void check_address(const pando_proxy_header *header)
{
    struct in6_addr address;
    REQUIRE(memchr(header->address, '\0', sizeof(header->address)) != NULL);
    if (header->local || header->address[0] == '\0')
        REQUIRE(header->address[0] == '\0' && header->port == 0);
    else
        REQUIRE(inet_pton(AF_INET, header->address, &address) == 1 || inet_pton(AF_INET6, header->address, &address) == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pando_proxy_header whole, part;
    pando_proxy_result verdict = parse(data, size, &whole);
    int decided = 0;
    REQUIRE(verdict != PANDO_PROXY_MORE || size < PANDO_PROXY_V2_BYTES);
    for (size_t end = 0; end < size; end++) {
        pando_proxy_result so_far = parse(data, end, &part);
        REQUIRE(so_far == verdict || (!decided && so_far == PANDO_PROXY_MORE));
        decided = so_far != PANDO_PROXY_MORE;
        if (so_far == PANDO_PROXY_DONE)
            REQUIRE(memcmp(&part, &whole, sizeof(part)) == 0 && end >= whole.bytes);
    }
    if (verdict == PANDO_PROXY_DONE) {
        REQUIRE(whole.bytes >= 15 && whole.bytes <= size && whole.bytes <= PANDO_PROXY_V2_BYTES);
        check_address(&whole);
    }
    return 0;
}
