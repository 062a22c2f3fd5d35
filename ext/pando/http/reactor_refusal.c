/* Composes and sends the reactor's own answers: refusals and errors. Runs in the reactor. */
#include "date.h"
#include "reactor_private.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 512
#define DRAUGHTS 16 /* reads of PANDO_SCRATCH_BYTES from a client that is turned away */

static const char *phrase(int status)
{
    switch (status) {
    case 400: return "Bad Request";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Internal Server Error";
    }
}

static size_t compose(const struct pando_reactor *reactor, int status, int head_only, char *text)
{
    char later[48] = "";
    int body = (int)strlen(phrase(status)) + 5;
    if (status == 503) /* RFC 9110 section 10.2.3 */
        snprintf(later, sizeof(later), "retry-after: %u\r\n", reactor->config->retry_after);
    int length = snprintf(text, ANSWER_BYTES,
                          "HTTP/1.1 %d %s\r\ncontent-type: text/plain\r\n%scontent-length: %d\r\n%s"
                          "connection: close\r\n\r\n",
                          status, phrase(status), later, body, pando_http_date_line());
    if (!head_only)
        length += snprintf(text + length, ANSWER_BYTES - (size_t)length, "%d %s\n", status, phrase(status));
    return (size_t)length;
}

static void answer(struct pando_reactor *reactor, struct pando_connection *connection, int status)
{
    char text[ANSWER_BYTES];
    size_t length = compose(reactor, status, connection->head_only, text);

    pando_reactor_request_abandon(reactor, connection);
    pando_reactor_exchange_refused(connection, status);
    pando_reactor_timer_stop(reactor, connection);
    connection->state = PANDO_FINISHING;
    connection->persistent = 0;
    connection->linger = 1;
    pando_reactor_output_bytes(reactor, connection, text, length, 1);
    if (connection->state != PANDO_CLOSED)
        pando_reactor_connection_answered(reactor, connection, 0);
}

static _Atomic uint64_t *count_for(struct pando_reactor *reactor, const struct pando_connection *connection, int status)
{
    struct pando_stats *stats = reactor->stats;
    switch (status) {
    case 408: return connection->state == PANDO_READING_HEAD ? &stats->refused_header_time : &stats->refused_body_time;
    case 413:
    case 414:
    case 431: return &stats->refused_too_large;
    case 501:
    case 505: return &stats->refused_unsupported;
    case 502: return &stats->failed_502;
    case 503: return pando_reactor_spool_reason(reactor);
    case 504: return &stats->failed_504;
    default: return &stats->refused_malformed;
    }
}

void pando_reactor_refuse_for(struct pando_reactor *reactor, struct pando_connection *connection, int status,
                              _Atomic uint64_t *reason)
{
    pando_stat_add(reason, 1);
    answer(reactor, connection, status);
}

void pando_reactor_refuse(struct pando_reactor *reactor, struct pando_connection *connection, int status)
{
    pando_reactor_refuse_for(reactor, connection, status, count_for(reactor, connection, status));
}

void pando_reactor_shed(struct pando_reactor *reactor, struct pando_connection *connection,
                        _Atomic uint64_t *reason)
{
    pando_reactor_refuse_for(reactor, connection, 503, reason);
}

/* Reads the client's bytes first: closing a socket with unread input resets it and discards the answer, tcp(7). */
void pando_reactor_turn_away(struct pando_reactor *reactor, int fd)
{
    char text[ANSWER_BYTES];
    size_t length = compose(reactor, 503, 0, text);
    pando_stat_add(&reactor->stats->shed_resources, 1);
    if (send(fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length && shutdown(fd, SHUT_WR) == 0)
        for (int left = DRAUGHTS; left > 0; left--)
            if (recv(fd, reactor->scratch, PANDO_SCRATCH_BYTES, MSG_DONTWAIT) <= 0)
                break;
    close(fd);
}
