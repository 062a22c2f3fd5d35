/* What the load generators share: a clock, random numbers, sockets, and a reader of simple replies. */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

__attribute__((noreturn, unused)) static void die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, errno ? strerror(errno) : "not understood");
    exit(1);
}

__attribute__((unused)) static void *must(void *memory) {
    if (!memory)
        die("memory");
    return memory;
}

__attribute__((unused)) static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* SplitMix64 (Steele, Lea, Flood 2014): the same seed gives every server the same load. */
__attribute__((unused)) static uint64_t random_next(uint64_t *state) {
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

/* 0 <= x < 1 */
__attribute__((unused)) static double random_unit(uint64_t *state) { return (double)(random_next(state) >> 11) * 0x1p-53; }

__attribute__((unused)) static uint64_t random_below(uint64_t *state, uint64_t limit) { return random_next(state) % limit; }

/*
 * A non-blocking socket on its way to 127.0.0.1:port, from 127.0.0.<host>: one address has too few ports for
 * very many connections. receive_buffer: bytes, 0 for the system's own.
 */
__attribute__((unused)) static int connect_to(int port, int host, int receive_buffer) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0)
        die("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (receive_buffer)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + (uint32_t)host)};
#ifdef IP_BIND_ADDRESS_NO_PORT
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
#endif
    if (host != 1 && bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
        die("bind");
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0 && errno != EINPROGRESS)
        die("connect");
    return fd;
}

__attribute__((unused)) static int socket_error(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

/* --- replies: a head with Content-Length, or a body that ends with the connection */

enum { REPLY_MORE, REPLY_DONE, REPLY_BAD };

struct reply {
    char head[4096];
    size_t head_size;
    int complete; /* the head is */
    int status, closes;
    int64_t left; /* bytes of the body; -1: until the end */
};

/* The value of a header field, or NULL. */
__attribute__((unused)) static const char *reply_field(const struct reply *reply, const char *name) {
    size_t length = strlen(name);
    for (const char *line = strstr(reply->head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        if (!strncasecmp(line + 2, name, length) && line[2 + length] == ':')
            return line + 3 + length + strspn(line + 3 + length, " \t");
    }
    return NULL;
}

__attribute__((unused)) static int reply_read_head(struct reply *reply) {
    if (sscanf(reply->head, "HTTP/1.%*1[01] %3d", &reply->status) != 1 || reply_field(reply, "transfer-encoding"))
        return REPLY_BAD;
    const char *connection = reply_field(reply, "connection"), *length = reply_field(reply, "content-length");
    reply->closes = connection && !strncasecmp(connection, "close", 5);
    reply->left = length ? strtoll(length, NULL, 10) : -1;
    reply->complete = 1;
    return REPLY_MORE;
}

/* Takes what was received. REPLY_DONE: and nothing is missing; bytes beyond the reply are bad. */
__attribute__((unused)) static int reply_feed(struct reply *reply, const char *bytes, size_t size) {
    if (!reply->complete) {
        size_t before = reply->head_size, room = sizeof reply->head - 1 - before, taken = size < room ? size : room;
        memcpy(reply->head + before, bytes, taken);
        reply->head_size += taken;
        reply->head[reply->head_size] = '\0';
        char *end = strstr(reply->head, "\r\n\r\n");
        if (!end)
            return taken < size ? REPLY_BAD : REPLY_MORE;
        end[2] = '\0';
        size_t used = (size_t)(end + 4 - reply->head) - before;
        bytes += used;
        size -= used;
        if (reply_read_head(reply) == REPLY_BAD)
            return REPLY_BAD;
    }
    if (reply->left < 0)
        return REPLY_MORE;
    reply->left -= (int64_t)size;
    return reply->left < 0 ? REPLY_BAD : reply->left == 0 ? REPLY_DONE : REPLY_MORE;
}

/* The connection has ended. */
__attribute__((unused)) static int reply_eof(struct reply *reply) {
    reply->closes = 1;
    return reply->complete && reply->left < 0 ? REPLY_DONE : REPLY_BAD;
}

#endif
