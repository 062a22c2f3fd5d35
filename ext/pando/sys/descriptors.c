/* Describes open descriptors, see descriptors.h. Runs in any process. */
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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
