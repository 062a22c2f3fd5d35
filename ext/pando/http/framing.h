/* Host, Content-Length, Transfer-Encoding, Connection and Expect: where the body ends and whether the connection
 * persists. Private to the parser, in the reactor and in workers. */
#ifndef PANDO_HTTP_FRAMING_H
#define PANDO_HTTP_FRAMING_H

#include "parser.h"

/* Records one complete field. 0, or a status and its reason. */
int pando_http_note_field(pando_http_parser *parser, const char *buffer, pando_http_field *field,
                          const char **reason);

/* Decides about the body when all fields are known. 0, or a status and its reason. */
int pando_http_check_framing(pando_http_parser *parser, const char **reason);

#endif
