/* Feeds arbitrary bytes to what composes the access log's lines: the search for a field, and both ways of escaping. A
 * value must stay within its quotes and its line, and never grow beyond the room that it is given. */
#include "fuzz.h"
#include "http/log_line.h"

#include <string.h>

#define ROOM 512u

static int is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f;
}

/* No byte of an escaped value may end it, and a backslash begins an escape that is whole, unless the room was too small. */
static void check_escaped(int json, const char *text, size_t bytes, int cut)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)text[i];
        REQUIRE(json ? byte >= 0x20 && byte != 0x7f : is_plain(byte));
        REQUIRE(byte != '"' || (json && i > 0));
        if (byte != '\\')
            continue;
        size_t length = i + 1 == bytes ? 1 : text[i + 1] == 'x' ? 4 : text[i + 1] == 'u' ? 6 : 2;
        REQUIRE(cut || (length > 1 && i + length <= bytes));
        REQUIRE(json || i + 1 >= bytes || text[i + 1] == 'x');
        i += length - 1;
    }
}

static void escape(int json, const uint8_t *data, size_t size)
{
    char *room = malloc(ROOM);
    struct pando_line line = {room, room + ROOM};
    pando_line_escaped(&line, json, (const char *)data, size);
    REQUIRE(line.at >= room && line.at <= room + ROOM);
    check_escaped(json, room, (size_t)(line.at - room), line.at == room + ROOM);
    free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pando_http_span value;
    char *head = malloc(size ? size : 1);
    memcpy(head, data, size);
    REQUIRE(pando_line_head_bytes(head, size) <= size);
    if (pando_line_field(head, size, "user-agent", &value)) {
        REQUIRE(value.off <= size && value.len <= size - value.off);
        REQUIRE(memchr(head + value.off, '\n', value.len) == NULL);
    }
    free(head);
    escape(0, data, size);
    escape(1, data, size);
    return 0;
}
