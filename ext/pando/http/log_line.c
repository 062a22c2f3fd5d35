/* What the access log's lines are made of, see log_line.h. */
#include "log_line.h"

#include <string.h>

void pando_line_put(struct pando_line *line, const char *text, size_t bytes)
{
    size_t room = (size_t)(line->end - line->at);
    memcpy(line->at, text, bytes < room ? bytes : room);
    line->at += bytes < room ? bytes : room;
}

void pando_line_text(struct pando_line *line, const char *text)
{
    pando_line_put(line, text, strlen(text));
}

void pando_line_number(struct pando_line *line, uint64_t number)
{
    char digits[20];
    size_t place = sizeof(digits);
    do {
        digits[--place] = (char)('0' + number % 10);
    } while ((number /= 10) > 0);
    pando_line_put(line, digits + place, sizeof(digits) - place);
}

void pando_line_seconds(struct pando_line *line, uint64_t nanoseconds)
{
    char fraction[8] = ".";
    uint64_t micros = nanoseconds / 1000;
    pando_line_number(line, micros / 1000000);
    for (int i = 6; i > 0; i--, micros /= 10)
        fraction[i] = (char)('0' + micros % 10);
    pando_line_put(line, fraction, 7);
}

static void put_hex(struct pando_line *line, const char *prefix, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    const char both[] = {digits[byte >> 4], digits[byte & 15]};
    pando_line_text(line, prefix);
    pando_line_put(line, both, 2);
}

/* Bytes of the UTF-8 character that begins here; 0: none does (RFC 3629 section 4). */
static size_t utf8(const unsigned char *text, size_t bytes)
{
    unsigned char first = text[0];
    size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (length > bytes)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    int beyond = (first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
                 (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f);
    return beyond ? 0 : length;
}

/* RFC 8259 section 7. Bytes that are no UTF-8 become the replacement character. */
static size_t put_json_character(struct pando_line *line, const unsigned char *text, size_t bytes)
{
    size_t length = utf8(text, bytes);
    if (length == 0)
        pando_line_text(line, "\\ufffd");
    else if (*text == '"' || *text == '\\')
        pando_line_put(line, (const char[]){'\\', (char)*text}, 2);
    else if (*text < 0x20 || *text == 0x7f)
        put_hex(line, "\\u00", *text);
    else
        pando_line_put(line, (const char *)text, length);
    return length ? length : 1;
}

static size_t put_plain_character(struct pando_line *line, const unsigned char *text)
{
    if (*text < 0x20 || *text >= 0x7f || *text == '"' || *text == '\\')
        put_hex(line, "\\x", *text);
    else
        pando_line_put(line, (const char *)text, 1);
    return 1;
}

static int is_harmless(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

void pando_line_escaped(struct pando_line *line, int json, const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + bytes;
    while (at < end) {
        const unsigned char *from = at;
        while (at < end && is_harmless(*at)) at++;
        pando_line_put(line, (const char *)from, (size_t)(at - from));
        if (at < end)
            at += json ? put_json_character(line, at, (size_t)(end - at)) : put_plain_character(line, at);
    }
}

/* --- the heads of requests and answers --- */

uint32_t pando_line_head_bytes(const char *message, size_t bytes)
{
    const char *end = memmem(message, bytes, "\r\n\r\n", 4);
    return (uint32_t)(end ? (size_t)(end - message) + 4 : bytes);
}

static int is_name(const char *text, const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((text[i] | 0x20) != name[i]) /* "-" has that bit, too */
            return 0;
    return 1;
}

int pando_line_field(const char *head, size_t bytes, const char *name, pando_http_span *value)
{
    size_t length = strlen(name);
    const char *end = head + bytes, *line = memchr(head, '\n', bytes);
    for (; line && (size_t)(end - ++line) > length; line = memchr(line, '\n', (size_t)(end - line))) {
        if (line[length] != ':' || !is_name(line, name, length))
            continue;
        const char *from = line + length + 1, *to = memchr(from, '\n', (size_t)(end - from));
        to = to ? to : end;
        while (from < to && (*from == ' ' || *from == '\t')) from++;
        while (to > from && (to[-1] == '\r' || to[-1] == ' ' || to[-1] == '\t')) to--;
        *value = (pando_http_span){(uint32_t)(from - head), (uint32_t)(to - from)};
        return 1;
    }
    return 0;
}
