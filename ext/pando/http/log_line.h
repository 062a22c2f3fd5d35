/* What the access log's lines are made of: numbers, escaped text, and fields found in the heads of requests and answers.
 * A line never grows beyond its room. No reactor in here. Runs in the reactor. */
#ifndef PANDO_HTTP_LOG_LINE_H
#define PANDO_HTTP_LOG_LINE_H

#include "parser.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pando_line {
    char *at, *end;
};

/* As much of the text as there is room for. Inline, so that a constant text becomes a few moves. */
static inline void pando_line_put(struct pando_line *line, const char *text, size_t bytes)
{
    size_t room = (size_t)(line->end - line->at);
    if (bytes <= room)
        memcpy(line->at, text, bytes);
    else
        memcpy(line->at, text, bytes = room);
    line->at += bytes;
}

static inline void pando_line_text(struct pando_line *line, const char *text)
{
    pando_line_put(line, text, strlen(text));
}

void pando_line_number(struct pando_line *line, uint64_t number);
/* In seconds, to the microsecond. */
void pando_line_seconds(struct pando_line *line, uint64_t nanoseconds);
/* Whatever could end the line or a quoted value early is escaped: as RFC 8259 says, or as \xHH. */
void pando_line_escaped(struct pando_line *line, int json, const char *text, size_t bytes);

/* Bytes of the head at the beginning of a message, with the empty line; all, if that is not there. */
uint32_t pando_line_head_bytes(const char *message, size_t bytes);
struct pando_line_name {
    const char *text; /* in lower case */
    size_t bytes;
};

#define PANDO_LINE_NAME(text) {text, sizeof(text) - 1}

/* Finds fields in a head by their names, in one pass: the first of each name. The span of one that is missing is
 * empty. */
void pando_line_fields(const char *head, size_t bytes, const struct pando_line_name *names, size_t count,
                       pando_http_span *values);

#endif
