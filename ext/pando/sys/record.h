/* Records over a SOCK_SEQPACKET link: one packet each, with descriptors and the kernel's statement of the sender.
 * Runs in any process. */
#ifndef PANDO_SYS_RECORD_H
#define PANDO_SYS_RECORD_H

#include <stddef.h>
#include <sys/types.h>

#define PANDO_RECORD_MAX_FDS 4

struct pando_record {
    size_t length;   /* bytes received */
    pid_t sender;    /* SCM_CREDENTIALS; 0 when the kernel gave none */
    int fds[PANDO_RECORD_MAX_FDS];
    int fd_count;
    int truncated;   /* the packet or its descriptors did not fit */
    int stripped;    /* its descriptors were lost, since this process may open no more, and it did not have too many */
};

/* 0 or -1 with errno. Never blocks, never raises SIGPIPE. */
int pando_record_send(int link, const void *bytes, size_t length, const int *fds, int fd_count);
/* 1: a record; 0: end of the link; -1: errno. Never blocks. Received descriptors are close-on-exec. */
int pando_record_receive(int link, void *bytes, size_t capacity, struct pando_record *record);

#endif
