/* The PROXY protocol parser, see proxy.h. Runs in the reactor and in workers. Pure C. */
#include "proxy.h"
#include "address.h"
#include "chars.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define V2_FIXED 16u /* signature, command, family, length */

static const char v1_begin[] = "PROXY ";
static const char v2_begin[] = "\r\n\r\n\0\r\nQUIT\n";
#define V1_BEGIN ((size_t)sizeof(v1_begin) - 1)
#define V2_BEGIN ((size_t)sizeof(v2_begin) - 1)

static int note_address(pando_proxy_header *header, int family, const void *address)
{
    return pando_http_address_text(family, address, header->address, sizeof(header->address));
}

/* --- version 1: a line of text --- */

typedef struct {
    const char *at, *end;
} line;

/* Reads up to the next space or the end of the line. 0: nothing, or too much. */
static size_t next_word(line *rest, char *word, size_t room)
{
    size_t len = 0;
    while (rest->at < rest->end && *rest->at != ' ') {
        if (len + 1 == room)
            return (size_t)(word[0] = '\0');
        word[len++] = *rest->at++;
    }
    word[len] = '\0';
    return len;
}

/* Exactly one space separates two words. */
static int skip_space(line *rest)
{
    return rest->at < rest->end && *rest->at++ == ' ';
}

static int read_address(line *rest, int family, struct in6_addr *address)
{
    char word[48];
    size_t len = next_word(rest, word, sizeof(word));
    return len > 0 && strlen(word) == len && inet_pton(family, word, address) == 1;
}

/* Reads a decimal number without leading zeros. */
static int read_port(line *rest, uint16_t *port)
{
    char word[8];
    uint32_t value = 0;
    size_t len = next_word(rest, word, sizeof(word));
    if (len == 0 || len > 5 || (len > 1 && word[0] == '0'))
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (!pando_http_is(word[i], PANDO_HTTP_DIGIT))
            return 0;
        value = value * 10 + (uint32_t)(word[i] - '0');
    }
    *port = (uint16_t)value;
    return value <= UINT16_MAX;
}

static int read_endpoints(line *rest, int family, pando_proxy_header *header)
{
    struct in6_addr source, destination; /* large enough for both families */
    uint16_t port, destination_port;
    if (!skip_space(rest) || !read_address(rest, family, &source) || !skip_space(rest) ||
        !read_address(rest, family, &destination) || !skip_space(rest) || !read_port(rest, &port) ||
        !skip_space(rest) || !read_port(rest, &destination_port) || rest->at != rest->end)
        return 0;
    header->port = port;
    return note_address(header, family, &source);
}

static int read_line(line *rest, pando_proxy_header *header)
{
    char protocol[8];
    next_word(rest, protocol, sizeof(protocol));
    if (strcmp(protocol, "TCP4") == 0)
        return read_endpoints(rest, AF_INET, header);
    if (strcmp(protocol, "TCP6") == 0)
        return read_endpoints(rest, AF_INET6, header);
    header->local = 1; /* everything after UNKNOWN is to be ignored */
    return strcmp(protocol, "UNKNOWN") == 0;
}

static pando_proxy_result parse_v1(const char *bytes, size_t len, pando_proxy_header *header)
{
    size_t seen = len < PANDO_PROXY_V1_BYTES ? len : PANDO_PROXY_V1_BYTES;
    const char *cr = memchr(bytes, '\r', seen), *lf = memchr(bytes, '\n', seen);
    if (lf && (!cr || lf != cr + 1))
        return PANDO_PROXY_BAD;
    if (!lf)
        return seen == PANDO_PROXY_V1_BYTES || (cr && cr + 1 < bytes + seen) ? PANDO_PROXY_BAD : PANDO_PROXY_MORE;

    line rest = {bytes + V1_BEGIN, cr};
    header->bytes = (uint32_t)(lf + 1 - bytes);
    return read_line(&rest, header) ? PANDO_PROXY_DONE : PANDO_PROXY_BAD;
}

/* --- version 2: binary --- */

enum { COMMAND_LOCAL = 0x20, COMMAND_PROXY = 0x21 };

static int read_v4(const char *block, size_t len, pando_proxy_header *header)
{
    const uint8_t *port = (const uint8_t *)block + 8;
    if (len < 12)
        return 0;
    header->port = (uint16_t)(port[0] << 8 | port[1]);
    return note_address(header, AF_INET, block);
}

static int read_v6(const char *block, size_t len, pando_proxy_header *header)
{
    const uint8_t *port = (const uint8_t *)block + 32;
    struct in6_addr source;
    if (len < 36)
        return 0;
    memcpy(&source, block, sizeof(source));
    header->port = (uint16_t)(port[0] << 8 | port[1]);
    return note_address(header, AF_INET6, &source);
}

/* Ignores the TLVs behind the addresses. The address of a datagram's client is as good as a stream's. */
static int read_block(uint8_t family, const char *block, size_t len, pando_proxy_header *header)
{
    switch (family) {
    case 0x00:
        header->local = 1;
        return 1;
    case 0x11:
    case 0x12:
        return read_v4(block, len, header);
    case 0x21:
    case 0x22:
        return read_v6(block, len, header);
    case 0x31:
    case 0x32:
        return len >= 216;
    default:
        return 0;
    }
}

static pando_proxy_result parse_v2(const char *bytes, size_t len, pando_proxy_header *header)
{
    const uint8_t *numbers = (const uint8_t *)bytes;
    if (len > 12 && numbers[12] != COMMAND_LOCAL && numbers[12] != COMMAND_PROXY)
        return PANDO_PROXY_BAD;
    if (len < V2_FIXED)
        return PANDO_PROXY_MORE;
    size_t block = (size_t)numbers[14] << 8 | numbers[15];
    if (V2_FIXED + block > PANDO_PROXY_V2_BYTES)
        return PANDO_PROXY_BAD;
    if (len < V2_FIXED + block)
        return PANDO_PROXY_MORE;

    header->bytes = (uint32_t)(V2_FIXED + block);
    header->local = numbers[12] == COMMAND_LOCAL; /* a LOCAL command's family and addresses are to be ignored */
    return header->local || read_block(numbers[13], bytes + V2_FIXED, block, header) ? PANDO_PROXY_DONE
                                                                                    : PANDO_PROXY_BAD;
}

static int begins(const char *bytes, size_t len, const char *with, size_t with_len)
{
    return memcmp(bytes, with, len < with_len ? len : with_len) == 0;
}

pando_proxy_result pando_proxy_parse(const char *bytes, size_t len, pando_proxy_header *header)
{
    memset(header, 0, sizeof(*header));
    if (len == 0)
        return PANDO_PROXY_MORE;
    if (begins(bytes, len, v1_begin, V1_BEGIN))
        return len < V1_BEGIN ? PANDO_PROXY_MORE : parse_v1(bytes, len, header);
    if (begins(bytes, len, v2_begin, V2_BEGIN))
        return len < V2_BEGIN ? PANDO_PROXY_MORE : parse_v2(bytes, len, header);
    return PANDO_PROXY_BAD;
}
