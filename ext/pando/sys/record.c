/* Sends and receives records, see record.h. Runs in any process. */
#include "record.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int pando_record_send(int link, const void *bytes, size_t length, const int *fds, int fd_count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * PANDO_RECORD_MAX_FDS)];
    struct iovec data = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    ssize_t sent;

    if (fd_count < 0 || fd_count > PANDO_RECORD_MAX_FDS) return errno = EINVAL, -1;
    if (fd_count > 0) {
        memset(control, 0, sizeof control);
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)fd_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)fd_count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * (size_t)fd_count);
    }
    do {
        sent = sendmsg(link, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent == -1 && errno == EINTR);
    return sent == -1 ? -1 : 0;
}

/* Keeps what fits and closes the rest, so that no peer can fill our descriptor table. */
static void take_fds(struct pando_record *record, struct cmsghdr *header)
{
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
        if (record->fd_count < PANDO_RECORD_MAX_FDS)
            record->fds[record->fd_count++] = fd;
        else {
            record->truncated = 1;
            close(fd);
        }
    }
}

int pando_record_receive(int link, void *bytes, size_t capacity, struct pando_record *record)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * PANDO_RECORD_MAX_FDS) +
                                          CMSG_SPACE(sizeof(struct ucred))];
    struct iovec data = {.iov_base = bytes, .iov_len = capacity};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1,
                             .msg_control = control, .msg_controllen = sizeof control};
    ssize_t received;

    memset(record, 0, sizeof *record);
    /* ECONNRESET comes once, when the peer has gone and left something of ours unread. The peer's last records
     * follow, then the end. */
    do {
        received = recvmsg(link, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (received == -1 && (errno == EINTR || errno == ECONNRESET));
    if (received == -1) return -1;

    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET) continue;
        if (header->cmsg_type == SCM_RIGHTS) take_fds(record, header);
        if (header->cmsg_type == SCM_CREDENTIALS) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(header), sizeof sender);
            record->sender = sender.pid;
        }
    }
    record->stripped = (message.msg_flags & MSG_CTRUNC) && !(message.msg_flags & MSG_TRUNC) &&
                       record->fd_count < PANDO_RECORD_MAX_FDS;
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) record->truncated = 1;
    record->length = (size_t)received;
    return received > 0 || record->fd_count > 0;
}
