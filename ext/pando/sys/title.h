/* Rewrites the end of the process title in place, so that a change with every request costs nothing. Runs in
 * workers. */
#ifndef PANDO_SYS_TITLE_H
#define PANDO_SYS_TITLE_H

#include <stddef.h>

/* Finds where the kernel reads this process's title (proc(5), arg_start), which the caller has just set. 0, or -1 if
 * another text is there. */
int pando_title_locate(const char *title, size_t length);

/* Overwrites the last bytes of that title. -1: the title is no longer there. */
int pando_title_end(const char *word, size_t length);

#endif
