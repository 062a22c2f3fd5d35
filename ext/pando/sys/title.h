/* The end of the process title, rewritten in place: what changes with every
 * request must cost nothing. */
#ifndef PANDO_SYS_TITLE_H
#define PANDO_SYS_TITLE_H

#include <stddef.h>

/* Remembers where the kernel reads this process's title (proc(5), arg_start),
 * which somebody has just set. 0, or -1 if another text is there. */
int pando_title_locate(const char *title, size_t length);

/* Overwrites the last bytes of that title. -1: it is not there any more. */
int pando_title_end(const char *word, size_t length);

#endif
