/* A row of the scoreboard, shared by the files that bind it. */
#ifndef PANDO_BIND_ROW_H
#define PANDO_BIND_ROW_H

#include <ruby.h>

#include "sys/scoreboard.h"

struct pando_row *pando_row_of(VALUE self);
void pando_init_row_jobs(VALUE row);
void pando_init_row_flags(VALUE row);
void pando_init_row_measurements(VALUE row);
void pando_init_row_samples(VALUE row);
void pando_init_row_prefault(VALUE row);

#endif
