/* Descriptors that keep their number while what is beneath them changes. */
#ifndef PANDO_SYS_FDS_H
#define PANDO_SYS_FDS_H

/* Makes `target` refer to the open file of `source`; its close-on-exec flag
 * stays as it was. 0 or -1 with errno (EBADF: `target` is not open). */
int pando_replace_fd(int target, int source);

#endif
