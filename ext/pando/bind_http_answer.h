/* An ordinary response: its fields are Strings without meaning for the server, its body is an Array of Strings. Used
 * in workers. */
#ifndef PANDO_BIND_HTTP_ANSWER_H
#define PANDO_BIND_HTTP_ANSWER_H

#include "bind_http.h"

#include <sys/uio.h>

#define PANDO_ANSWER_HEAD 4096
#define PANDO_ANSWER_PARTS 16

/* Valid until the next allocation, which may compact and so move the body's Strings. */
struct pando_answer {
    size_t head_bytes;
    uint64_t body_bytes;
    size_t count;
    struct iovec parts[1 + PANDO_ANSWER_PARTS]; /* the head, then the body */
    char head[PANDO_ANSWER_HEAD];
};

/* 1; 0: the response is not that simple, or too large. Runs no Ruby. ending: the fields about the connection, and the
 * empty line. */
int pando_answer_compose(struct pando_answer *answer, VALUE status_line, VALUE fields, VALUE body, VALUE ending);

/* The whole response in a String; body: the one it was composed from. */
VALUE pando_answer_text(const struct pando_answer *answer, VALUE body);

#endif
