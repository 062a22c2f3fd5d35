/* Shared by the Ruby-facing halves of the extension. */
#ifndef PANDO_EXT_H
#define PANDO_EXT_H

#include <ruby.h>

extern VALUE pando_mPando;

void pando_init_sys(void);
void pando_init_http(void);
void pando_init_origins(void);

#endif
