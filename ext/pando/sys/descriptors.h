/* What lies behind the descriptors of this process, whoever opened them. Reading
 * changes nothing: no position moves, nothing is received. */
#ifndef PANDO_SYS_DESCRIPTORS_H
#define PANDO_SYS_DESCRIPTORS_H

#include <limits.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct pando_descriptor {
    int number;
    int flags;                   /* of open(2): access mode, O_APPEND, ... */
    long long position;          /* -1: it has none */
    char target[PATH_MAX + 1];   /* what /proc says: "socket:[17]", "/var/log/app.log" */
    int domain, type, listening; /* of a socket; domain -1: it is none */
    int hung_up;                 /* the other side has closed, and all it sent has been read */
    socklen_t local_bytes, peer_bytes; /* 0: none */
    struct sockaddr_storage local, peer;
};

/* Writes the numbers of the open descriptors, as many as fit; returns how many
 * there are, or -1 with errno. */
ssize_t pando_open_descriptors(int *numbers, size_t room);

/* Whether it is a socket with a peer, other than for datagrams. */
int pando_may_be_connection(int number);

/* 0 or -1 with errno (EBADF, ENOENT: closed meanwhile). */
int pando_describe(int number, struct pando_descriptor *found);

/* Whether a descriptor of another process is the same open file as one of ours
 * (kcmp(2)): 1, 0, or -1 with errno (EPERM, ENOSYS: cannot be asked here). */
int pando_same_open_file(pid_t pid, int theirs, int ours);

/* The inodes of the sockets that unix sockets with these inodes are connected to
 * (sock_diag(7)), 0 where there is none. 0 or -1 with errno. */
int pando_unix_peers(const unsigned *inodes, long long *peers, size_t count);

/* What a descriptor of another process is, as text of at most PATH_MAX bytes and
 * a zero. 0, or -1 with errno (ENOENT: it is closed, or the process has ended). */
int pando_target(pid_t pid, int number, char target[PATH_MAX + 1]);

#endif
