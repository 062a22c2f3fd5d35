/* Shared by the bindings of sys/. */
#ifndef PANDO_BIND_SYS_H
#define PANDO_BIND_SYS_H

#include "pando_ext.h"

extern VALUE pando_mSys;

void pando_init_process(void);
void pando_init_exercise(void);
void pando_init_fork(void);
void pando_init_fork_check(void);
void pando_init_pages(void);
void pando_init_hot_set(void);
void pando_init_page_watch(void);
void pando_init_record(void);
void pando_init_scoreboard(void);
void pando_init_poller(void);
void pando_init_fds(void);
void pando_init_descriptors(void);
void pando_init_title(void);
void pando_init_succession(void);
void pando_init_inspect(void);

/* The descriptor of an Integer or an IO. */
int pando_fd_of(VALUE io);
/* Seconds as milliseconds for the kernel: rounded up, never negative, at most a day. */
int pando_milliseconds(VALUE seconds);

#endif
