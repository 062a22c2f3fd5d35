/* The Date field, see date.h. Runs in the reactor and in workers. */
#include "date.h"

#include <stdio.h>
#include <time.h>

/* RFC 9110 section 5.6.7; strftime would use the locale. */
static void print_line(char line[PANDO_HTTP_DATE_LINE + 1], time_t second)
{
    static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm date = {0};
    gmtime_r(&second, &date);
    snprintf(line, PANDO_HTTP_DATE_LINE + 1, "date: %.3s, %02u %.3s %04u %02u:%02u:%02u GMT\r\n",
             days + 3 * (date.tm_wday % 7), (unsigned)date.tm_mday % 100, months + 3 * (date.tm_mon % 12),
             (unsigned)(date.tm_year + 1900) % 10000, (unsigned)date.tm_hour % 100, (unsigned)date.tm_min % 100,
             (unsigned)date.tm_sec % 100);
}

const char *pando_http_date_line(void)
{
    static char line[PANDO_HTTP_DATE_LINE + 1];
    static time_t printed = -1;
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec != printed) print_line(line, printed = now.tv_sec);
    return line;
}
