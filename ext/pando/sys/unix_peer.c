/* Finds the peers of UNIX sockets, see descriptors.h. Runs in any process. */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "descriptors.h"

#define ANSWER_BYTES 4096
#define PATIENCE_US 100000 /* the kernel answers at once or not at all */

struct question {
    struct nlmsghdr head;
    struct unix_diag_req body;
};

static int ask(int netlink, unsigned inode)
{
    struct question question = {
        .head = {.nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = AF_UNIX,
                 .udiag_states = UINT32_MAX,
                 .udiag_ino = inode,
                 .udiag_show = UDIAG_SHOW_PEER,
                 .udiag_cookie = {UINT32_MAX, UINT32_MAX}},
    };
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    return sendto(netlink, &question, sizeof(question), 0, (struct sockaddr *)&kernel, sizeof(kernel)) == -1 ? -1 : 0;
}

static long long peer_of(const struct unix_diag_msg *message, unsigned bytes)
{
    unsigned left = bytes;
    const struct rtattr *attribute = (const struct rtattr *)(message + 1);
    for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
        uint32_t peer;
        if (attribute->rta_type != UNIX_DIAG_PEER || RTA_PAYLOAD(attribute) < sizeof(peer)) continue;
        memcpy(&peer, RTA_DATA(attribute), sizeof(peer));
        return peer;
    }
    return 0;
}

static long long read_answer(int netlink)
{
    union {
        struct nlmsghdr head;
        char bytes[ANSWER_BYTES];
    } answer;
    ssize_t length = recv(netlink, &answer, sizeof(answer), 0);
    if (length == -1) return -1;
    if (!NLMSG_OK(&answer.head, (size_t)length)) return errno = EBADMSG, -1;
    if (answer.head.nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *error = NLMSG_DATA(&answer.head);
        errno = answer.head.nlmsg_len >= NLMSG_LENGTH(sizeof(*error)) && error->error ? -error->error : EBADMSG;
        return -1;
    }
    if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
        return errno = EBADMSG, -1;
    return peer_of(NLMSG_DATA(&answer.head),
                   (unsigned)(answer.head.nlmsg_len - NLMSG_LENGTH(sizeof(struct unix_diag_msg))));
}

int pando_unix_peers(const unsigned *inodes, long long *peers, size_t count)
{
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (netlink == -1) return -1;
    struct timeval patience = {.tv_usec = PATIENCE_US};
    int failed = setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    for (size_t i = 0; i < count && !failed; i++) {
        peers[i] = ask(netlink, inodes[i]) == -1 ? -1 : read_answer(netlink);
        if (peers[i] == -1 && errno == ENOENT) peers[i] = 0; /* closed meanwhile */
        else failed = peers[i] == -1;
    }
    int failure = errno;
    close(netlink);
    errno = failure;
    return failed ? -1 : 0;
}
