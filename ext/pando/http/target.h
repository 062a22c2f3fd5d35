/* The target forms of RFC 9112 section 3.2. Private to the parser, in the reactor and in workers. */
#ifndef PANDO_HTTP_TARGET_H
#define PANDO_HTTP_TARGET_H

#include "parser.h"

/* Splits the target and fills in form, path, query, authority, host and port. Called once, when all fields are known.
 * 0, or a status and its reason. */
int pando_http_check_target(pando_http_parser *parser, const char *buffer, const char **reason);

#endif
