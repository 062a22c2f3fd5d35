/* The reactor's own answers. */
#include "reactor_private.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

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

/* RFC 9110 section 5.6.7; strftime would ask the locale. */
static void print_date(char text[32])
{
    static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct timespec clock = {0};
    struct tm date = {0};
    clock_gettime(CLOCK_REALTIME, &clock);
    gmtime_r(&clock.tv_sec, &date);
    snprintf(text, 32, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * (date.tm_wday % 7),
             (unsigned)date.tm_mday % 100, months + 3 * (date.tm_mon % 12), (unsigned)(date.tm_year + 1900) % 10000,
             (unsigned)date.tm_hour % 100, (unsigned)date.tm_min % 100, (unsigned)date.tm_sec % 100);
}

void pando_reactor_refuse(struct pando_reactor *reactor, struct pando_connection *connection, int status)
{
    char text[512], date[32];
    int body = (int)strlen(phrase(status)) + 5;
    print_date(date);
    int length = snprintf(text, sizeof(text),
                          "HTTP/1.1 %d %s\r\ncontent-type: text/plain\r\n%scontent-length: %d\r\ndate: %s\r\n"
                          "connection: close\r\n\r\n",
                          status, phrase(status), status == 503 ? "retry-after: 1\r\n" : "", body, date);
    if (!connection->head_only)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%d %s\n", status, phrase(status));

    pando_reactor_request_abandon(reactor, connection);
    pando_reactor_timer_stop(connection);
    connection->state = PANDO_FINISHING;
    connection->persistent = 0;
    connection->linger = 1;
    pando_reactor_output_bytes(reactor, connection, text, (size_t)length);
    if (connection->state != PANDO_CLOSED)
        pando_reactor_connection_answered(reactor, connection, 0);
}
