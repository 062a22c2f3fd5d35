/* Describes the descriptors of this process, whichever code opened them. Runs in any process. Reading changes
 * nothing: no position moves, nothing is received. */
#ifndef PANDO_SYS_DESCRIPTORS_H
#define PANDO_SYS_DESCRIPTORS_H

#include <limits.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct pando_descriptor {
    int number;
    int flags;                   /* of open(2): access mode, O_APPEND, ... */
    long long position;          /* -1: not seekable */
    char target[PATH_MAX + 1];   /* as /proc names it: "socket:[17]", "/var/log/app.log" */
    int domain, type, listening; /* of a socket; domain -1: not a socket */
    int hung_up;                 /* the peer has closed, and everything it sent has been read */
    socklen_t local_bytes, peer_bytes; /* 0: none */
    struct sockaddr_storage local, peer;
};

/* Whether it is a socket with a peer, datagram sockets excepted. */
int pando_may_be_connection(int number);

/* 0 or -1 with errno (EBADF, ENOENT: closed meanwhile). */
int pando_describe(int number, struct pando_descriptor *found);

/* Whether a descriptor of another process and one of ours are the same open file (kcmp(2)): 1, 0, or -1 with errno
 * (EPERM, ENOSYS: the kernel does not say). */
int pando_same_open_file(pid_t pid, int theirs, int ours);

/* For UNIX sockets with these inodes, finds the inodes of their peers (sock_diag(7)); 0: no peer. 0 or -1 with
 * errno. */
int pando_unix_peers(const unsigned *inodes, long long *peers, size_t count);

/* Describes a descriptor of another process, as at most PATH_MAX bytes of text and a NUL. 0, or -1 with errno
 * (ENOENT: it is closed, or the process has ended). */
int pando_target(pid_t pid, int number, char target[PATH_MAX + 1]);

#endif
