/* Lists and describes open descriptors, see descriptors.h. Runs in any process. */
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES 4096 /* bytes of directory entries read at a time */

/* The record of getdents64(2). */
struct entry {
    uint64_t inode;
    int64_t next;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* The descriptor that an entry of /proc/self/fd names; -1: none ("." for example). */
static int number_of(const struct entry *entry)
{
    char *end;
    long number = strtol(entry->name, &end, 10);
    return end == entry->name || *end || number < 0 || number > INT_MAX ? -1 : (int)number;
}

/* Without opendir(3), which calls malloc: a forked child would have to copy pages for that. */
ssize_t pando_open_descriptors(int *numbers, size_t room)
{
    _Alignas(struct entry) char bytes[ENTRIES];
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t count = 0;
    ssize_t got;
    if (folder == -1) return -1;
    while ((got = syscall(SYS_getdents64, folder, bytes, sizeof(bytes))) > 0) {
        for (ssize_t at = 0; at < got; at += ((struct entry *)(bytes + at))->size) {
            int number = number_of((struct entry *)(bytes + at));
            if (number == -1 || number == folder) continue;
            if (count < room) numbers[count] = number;
            count++;
        }
    }
    int failure = errno;
    close(folder);
    if (got == 0) return (ssize_t)count;
    errno = failure;
    return -1;
}

static int socket_option(int number, int option)
{
    int value = 0;
    socklen_t bytes = sizeof(value);
    return getsockopt(number, SOL_SOCKET, option, &value, &bytes) == -1 ? -1 : value;
}

/* A peer that has closed leaves a readable end of file. */
static int hung_up(int number)
{
    char byte;
    struct pollfd asked = {.fd = number, .events = POLLRDHUP};
    if (poll(&asked, 1, 0) != 1) return 0;
    if (asked.revents & POLLHUP) return 1;
    return (asked.revents & POLLRDHUP) && recv(number, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void describe_socket(int number, struct pando_descriptor *found)
{
    socklen_t bytes = sizeof(found->local);
    found->domain = socket_option(number, SO_DOMAIN);
    found->type = socket_option(number, SO_TYPE);
    found->listening = socket_option(number, SO_ACCEPTCONN) == 1;
    if (getsockname(number, (struct sockaddr *)&found->local, &bytes) == 0 && bytes <= sizeof(found->local))
        found->local_bytes = bytes;
    bytes = sizeof(found->peer);
    if (getpeername(number, (struct sockaddr *)&found->peer, &bytes) == 0 && bytes <= sizeof(found->peer)) {
        found->peer_bytes = bytes;
        found->hung_up = hung_up(number);
    }
}

int pando_may_be_connection(int number)
{
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof(peer);
    if (getpeername(number, (struct sockaddr *)&peer, &bytes) == -1) return 0;
    return socket_option(number, SO_TYPE) != SOCK_DGRAM;
}

int pando_target(pid_t pid, int number, char target[PATH_MAX + 1])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, number);
    ssize_t length = readlink(path, target, PATH_MAX);
    if (length == -1) return -1;
    target[length] = '\0';
    return 0;
}

int pando_describe(int number, struct pando_descriptor *found)
{
    *found = (struct pando_descriptor){.number = number, .position = -1, .domain = -1, .type = -1};
    if (pando_target(getpid(), number, found->target) == -1) return -1;
    found->flags = fcntl(number, F_GETFL);
    if (found->flags == -1) return -1;
    if (strncmp(found->target, "socket:", 7) == 0)
        describe_socket(number, found);
    else if (!(found->flags & O_PATH))
        found->position = lseek(number, 0, SEEK_CUR);
    return 0;
}

int pando_same_open_file(pid_t pid, int theirs, int ours)
{
    long order = syscall(SYS_kcmp, pid, getpid(), KCMP_FILE, (unsigned long)theirs, (unsigned long)ours);
    return order == -1 ? -1 : order == 0;
}
