/* What the access log's lines are made of: numbers, escaped text, and fields found in the heads of requests and answers.
 * A line never grows beyond its room. No reactor in here. Runs in the reactor. */
#ifndef PANDO_HTTP_LOG_LINE_H
#define PANDO_HTTP_LOG_LINE_H

#include "parser.h"

#include <stddef.h>
#include <stdint.h>

struct pando_line {
    char *at, *end;
};

void pando_line_put(struct pando_line *line, const char *text, size_t bytes);
void pando_line_text(struct pando_line *line, const char *text);
void pando_line_number(struct pando_line *line, uint64_t number);
/* In seconds, to the microsecond. */
void pando_line_seconds(struct pando_line *line, uint64_t nanoseconds);
/* Whatever could end the line or a quoted value early is escaped: as RFC 8259 says, or as \xHH. */
void pando_line_escaped(struct pando_line *line, int json, const char *text, size_t bytes);

/* Bytes of the head at the beginning of a message, with the empty line; all, if that is not there. */
uint32_t pando_line_head_bytes(const char *message, size_t bytes);
/* Finds a field in a head by its name in lower case: 1 and the place of its value, or 0. */
int pando_line_field(const char *head, size_t bytes, const char *name, pando_http_span *value);

#endif
