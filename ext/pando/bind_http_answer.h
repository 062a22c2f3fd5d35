/* An ordinary answer: fields that are Strings and mean nothing to the server, a body that is an Array of Strings. */
#ifndef PANDO_BIND_HTTP_ANSWER_H
#define PANDO_BIND_HTTP_ANSWER_H

#include "bind_http.h"

#include <sys/uio.h>

#define PANDO_ANSWER_HEAD 4096
#define PANDO_ANSWER_PARTS 16

/* Good until the next allocation: a compacting garbage collector moves the body's Strings. */
struct pando_answer {
    size_t head_bytes;
    uint64_t body_bytes;
    size_t count;
    struct iovec parts[1 + PANDO_ANSWER_PARTS]; /* the head, and the body behind it */
    char head[PANDO_ANSWER_HEAD];
};

/* 1; 0: it is not as simple as that, or too large. Runs no Ruby. ending: what becomes of the connection, and an empty
 * line. */
int pando_answer_compose(struct pando_answer *answer, VALUE status_line, VALUE fields, VALUE body, VALUE ending);

/* All of it in a String; body: what it was composed of. */
VALUE pando_answer_text(const struct pando_answer *answer, VALUE body);

#endif
