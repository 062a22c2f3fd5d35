/* The scoreboard, the records of links and the end of descriptors without Ruby around them, under the
 * sanitizers: what they promise, and what a hostile peer or a filter may try. */
#include "sys/fds.h"
#include "sys/record.h"
#include "sys/scoreboard.h"
#include "require.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) != -1;
    return count;
}

static void sizes_of_a_scoreboard(void)
{
    struct pando_scoreboard board = {.fd = -1};
    REQUIRE(pando_scoreboard_create(&board, 0) == -1 && errno == EINVAL);
    REQUIRE(pando_scoreboard_create(&board, PANDO_SEATS_MAX + 1) == -1 && errno == EINVAL);
    REQUIRE(pando_scoreboard_create(&board, SIZE_MAX) == -1 && errno == EINVAL);
    REQUIRE(pando_scoreboard_create(&board, 3) == 0);
    REQUIRE(board.seats == 3);
    for (size_t seat = 0; seat < 3; seat++) {
        struct pando_row *row = pando_scoreboard_row(&board, seat);
        REQUIRE((uintptr_t)row % (uintptr_t)sysconf(_SC_PAGESIZE) == 0);
        memset((void *)row, 0xff, sizeof *row); /* all of it is ours */
    }
    REQUIRE(!pando_scoreboard_row(&board, 3) && !pando_scoreboard_take(&board, 3));
    REQUIRE(ftruncate(board.fd, 0) == -1 && errno == EPERM);
    close(board.fd);
    pando_scoreboard_unmap(&board);
    pando_scoreboard_unmap(&board);
}

static void refused(int fd, int reason)
{
    struct pando_scoreboard board = {.fd = -1};
    int before = open_descriptors();
    REQUIRE(pando_scoreboard_attach(&board, fd) == -1);
    REQUIRE(errno == reason);
    REQUIRE(board.fd == -1 && board.mapping == NULL);
    REQUIRE(open_descriptors() == before);
}

static int memory(off_t bytes, int seals)
{
    int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(fd != -1 && ftruncate(fd, bytes) == 0);
    REQUIRE(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

/* Every size around what a board may have, sealed or not, with any number of seats in its head. */
static void what_is_no_scoreboard(void)
{
    struct pando_scoreboard board;
    uint64_t head[2], wrong[] = {0, 1, 3, 1ULL << 32, UINT64_MAX};
    off_t sizes[] = {0, 1, 15, 16, 4095, 4096, 4097, 4096 + 255, 4096 + 256, 4096 + 257, 1 << 20};
    REQUIRE(pando_scoreboard_create(&board, 2) == 0);
    REQUIRE(pread(board.fd, head, sizeof head, 0) == sizeof head && head[1] == 2);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int seals = 0; seals <= F_SEAL_SHRINK; seals += F_SEAL_SHRINK) {
            int fd = memory(sizes[i], seals);
            refused(fd, EINVAL); /* without a head */
            if (sizes[i] >= (off_t)sizeof head) REQUIRE(pwrite(fd, head, sizeof head, 0) == sizeof head);
            refused(fd, EINVAL); /* with one that says two seats */
            close(fd);
        }
    }
    int whole = memory(3 * (off_t)board.stride, 0); /* all right, but its owner could shrink it */
    REQUIRE(pwrite(whole, head, sizeof head, 0) == sizeof head);
    refused(whole, EINVAL);
    close(whole);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        REQUIRE(pwrite(board.fd, &wrong[i], sizeof wrong[i], 8) == 8);
        refused(board.fd, EINVAL);
    }
    REQUIRE(pwrite(board.fd, &head[1], 8, 8) == 8);
    struct pando_scoreboard second;
    REQUIRE(pando_scoreboard_attach(&second, board.fd) == 0 && second.seats == 2);
    pando_scoreboard_unmap(&second);
    close(board.fd);
    refused(board.fd, EBADF);
    pando_scoreboard_unmap(&board);
}

/* Buffers of exactly the promised size, on the heap, where a byte too many is seen. */
static void names_of_every_length(void)
{
    struct pando_row *row = aligned_alloc(64, sizeof *row);
    char *verb = malloc(PANDO_VERB_MAX + 1), *subject = malloc(PANDO_SUBJECT_MAX + 1);
    REQUIRE(row && verb && subject);
    memset(row, 0, sizeof *row); /* as the kernel gives it */
    pando_row_reset(row);
    REQUIRE(pando_row_job(row, 0, verb, subject) == 0);
    for (size_t length = 0; length < 300; length++) {
        char *text = malloc(length + 1);
        memset(text, 'a' + (int)(length % 26), length);
        pando_row_start(row, 0, text, length, text, length, length, length + 1, 1);
        REQUIRE(pando_row_job(row, 0, verb, subject) == 2 * (length + 1));
        REQUIRE(strlen(verb) == (length < PANDO_VERB_MAX ? length : PANDO_VERB_MAX));
        REQUIRE(strlen(subject) == (length < PANDO_SUBJECT_MAX ? length : PANDO_SUBJECT_MAX));
        REQUIRE(row->jobs[0].soft_deadline == length && row->jobs[0].hard_deadline == length + 1 && row->jobs[0].busy_since != 0);
        pando_row_finish(row, 0);
        REQUIRE(row->requests == length + 1 && row->jobs[0].busy_since == 0 && row->jobs[0].hard_deadline == 0);
        free(text);
    }
    memset(row->jobs[0].verb, 'x', PANDO_VERB_MAX + PANDO_SUBJECT_MAX); /* a row without any end of text */
    REQUIRE(pando_row_job(row, 0, verb, subject) != 0);
    REQUIRE(strlen(verb) == PANDO_VERB_MAX && strlen(subject) == PANDO_SUBJECT_MAX);
    row->jobs[0].number = 7; /* its writer was killed */
    REQUIRE(pando_row_job(row, 0, verb, subject) == 0);
    pando_row_start(row, 0, "GET", 3, "/", 1, 0, 0, 1);
    REQUIRE(pando_row_job(row, 0, verb, subject) == 8 && strcmp(verb, "GET") == 0);
    free(row);
    free(verb);
    free(subject);
}

/* Each name is one letter over and over: a mixture of two would show. */
static void a_reader_beside_a_writer(void)
{
    struct pando_scoreboard board;
    char verb[PANDO_VERB_MAX + 1], subject[PANDO_SUBJECT_MAX + 1], text[PANDO_SUBJECT_MAX];
    REQUIRE(pando_scoreboard_create(&board, 1) == 0);
    pid_t writer = fork();
    REQUIRE(writer != -1);
    for (unsigned turn = 0; writer == 0; turn++) {
        memset(text, 'a' + (int)(turn % 26), sizeof text);
        pando_row_start(pando_scoreboard_row(&board, 0), 0, text, PANDO_VERB_MAX, text, sizeof text, 0, 0, 1);
    }
    unsigned seen = 0;
    while (seen < 200000) {
        if (pando_row_job(pando_scoreboard_row(&board, 0), 0, verb, subject) == 0) continue;
        seen++;
        REQUIRE(strlen(verb) == PANDO_VERB_MAX && strlen(subject) == PANDO_SUBJECT_MAX);
        REQUIRE(strspn(verb, (char[]){subject[0], 0}) == PANDO_VERB_MAX);
        REQUIRE(strspn(subject, (char[]){subject[0], 0}) == PANDO_SUBJECT_MAX);
    }
    kill(writer, SIGKILL);
    REQUIRE(waitpid(writer, NULL, 0) == writer);
    close(board.fd);
    pando_scoreboard_unmap(&board);
}

static void link_pair(int ends[2], int credentials)
{
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    REQUIRE(setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &credentials, sizeof credentials) == 0);
}

static void end_link(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* Any number of descriptors, also more than pando_record_send would ever send. */
static void send_descriptors(int link, const char *bytes, size_t length, int count)
{
    size_t space = CMSG_SPACE(sizeof(int) * (size_t)count);
    struct iovec data = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = calloc(1, space), .msg_controllen = space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    for (int i = 0; i < count; i++) memcpy(CMSG_DATA(header) + (size_t)i * sizeof(int), &(int){0}, sizeof(int));
    REQUIRE(sendmsg(link, &message, MSG_NOSIGNAL) == (ssize_t)length);
    free(message.msg_control);
}

static void descriptors_of_any_number(int credentials)
{
    int ends[2];
    link_pair(ends, credentials);
    int before = open_descriptors();
    for (int count = 1; count <= 250; count++) {
        struct pando_record record;
        char *bytes = malloc(8);
        send_descriptors(ends[1], "x", 1, count);
        REQUIRE(pando_record_receive(ends[0], bytes, 8, &record) == 1);
        REQUIRE(record.length == 1 && bytes[0] == 'x');
        REQUIRE(record.sender == (credentials ? getpid() : 0));
        REQUIRE(record.fd_count == (count < PANDO_RECORD_MAX_FDS ? count : PANDO_RECORD_MAX_FDS));
        REQUIRE(record.truncated == (count > PANDO_RECORD_MAX_FDS));
        REQUIRE(open_descriptors() == before + record.fd_count);
        for (int i = 0; i < record.fd_count; i++) {
            REQUIRE(fcntl(record.fds[i], F_GETFD) == FD_CLOEXEC);
            close(record.fds[i]);
        }
        free(bytes);
    }
    REQUIRE(open_descriptors() == before);
    end_link(ends);
}

static void records_of_any_length(void)
{
    int ends[2];
    char sent[4096];
    memset(sent, 'r', sizeof sent);
    link_pair(ends, 1);
    for (size_t length = 1; length < sizeof sent; length += length < 1100 ? 1 : 97) {
        struct pando_record record;
        char *bytes = malloc(1024);
        REQUIRE(pando_record_send(ends[1], sent, length, NULL, 0) == 0);
        REQUIRE(pando_record_receive(ends[0], bytes, 1024, &record) == 1);
        REQUIRE(record.length == (length < 1024 ? length : 1024));
        REQUIRE(record.truncated == (length > 1024));
        REQUIRE(memcmp(bytes, sent, record.length) == 0);
        free(bytes);
    }
    end_link(ends);
}

static void the_end_of_a_link(void)
{
    int ends[2], pass[1] = {0};
    char bytes[64];
    struct pando_record record;
    link_pair(ends, 1);
    REQUIRE(pando_record_receive(ends[0], bytes, sizeof bytes, &record) == -1 && errno == EAGAIN);
    REQUIRE(pando_record_send(ends[1], "x", 1, pass, -1) == -1 && errno == EINVAL);
    REQUIRE(pando_record_send(ends[1], "x", 1, pass, PANDO_RECORD_MAX_FDS + 1) == -1 && errno == EINVAL);
    REQUIRE(pando_record_send(ends[1], "", 0, NULL, 0) == 0); /* empty: looks like the end */
    REQUIRE(pando_record_receive(ends[0], bytes, sizeof bytes, &record) == 0);
    REQUIRE(pando_record_send(ends[1], "", 0, pass, 1) == 0); /* empty, but with something */
    REQUIRE(pando_record_receive(ends[0], bytes, sizeof bytes, &record) == 1 && record.fd_count == 1);
    close(record.fds[0]);
    REQUIRE(pando_record_send(ends[1], "last words", 10, NULL, 0) == 0);
    REQUIRE(pando_record_send(ends[0], "never read", 10, NULL, 0) == 0); /* hence ECONNRESET first */
    close(ends[1]);
    REQUIRE(pando_record_receive(ends[0], bytes, sizeof bytes, &record) == 1 && record.length == 10);
    REQUIRE(pando_record_receive(ends[0], bytes, sizeof bytes, &record) == 0);
    REQUIRE(pando_record_send(ends[0], "x", 1, NULL, 0) == -1 && errno == EPIPE); /* and no SIGPIPE */
    close(ends[0]);
}

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define FAR 2000

/* As a filter that is older than close_range(2). Who tries to close a number beyond FAR is killed: nothing is open
 * there, and up to the limit there may be a billion. */
static void filter_closes(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, FAR, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* More than fit into one list of them. */
static void only_what_is_open_is_closed(void)
{
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    pid_t child = fork();
    REQUIRE(child != -1);
    if (child == 0) {
        int kept[] = {FAR - 1, 40, 1, 77};
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max > FAR);
        for (int fd = 30; fd < FAR; fd++) REQUIRE(dup2(STDERR_FILENO, fd) == fd);
        filter_closes();
        REQUIRE(pando_close_all_but(kept, 4) == 0);
        for (int fd = 0; fd < FAR; fd++)
            REQUIRE((fcntl(fd, F_GETFD) != -1) == (fd <= STDERR_FILENO || fd == 40 || fd == 77 || fd == FAR - 1));
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    alarm(120); /* should a reader or a writer never get through */
    sizes_of_a_scoreboard();
    what_is_no_scoreboard();
    names_of_every_length();
    a_reader_beside_a_writer();
    descriptors_of_any_number(1);
    descriptors_of_any_number(0);
    records_of_any_length();
    the_end_of_a_link();
    only_what_is_open_is_closed();
    puts("all hold");
    return 0;
}
