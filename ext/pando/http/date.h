/* The Date field (RFC 9110 section 6.6.1). Used by the reactor and by workers. */
#ifndef PANDO_HTTP_DATE_H
#define PANDO_HTTP_DATE_H

/* "date: Sun, 06 Nov 1994 08:49:37 GMT" and CRLF, terminated, composed once a second. For one thread at a time. */
#define PANDO_HTTP_DATE_LINE 37u
const char *pando_http_date_line(void);

#endif
