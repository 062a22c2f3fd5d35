/* What goes to a client: at once as far as its socket takes it, the rest from
 * a queue of buffers and files. */
#include "reactor_private.h"

#include <errno.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PARTS 16
#define FILE_PORTION (1u << 20)    /* of a file, before others have their turn */
#define FILE_COST 65536u           /* a queued file counts as so many bytes: descriptors are scarce */
#define MOST (256u << 10)          /* bytes that wait for one client */
#define MOST_IN_NEED (64u << 10)   /* when all clients together hold up */
#define NEED (128u << 20)
#define OUTPUT_BYTES 16384u

int pando_reactor_output_full(const struct pando_reactor *reactor, const struct pando_connection *connection)
{
    return connection->out_bytes >= (reactor->out_total < NEED ? MOST : MOST_IN_NEED);
}

static void account(struct pando_reactor *reactor, struct pando_connection *connection, int64_t change)
{
    connection->out_bytes = (uint32_t)(connection->out_bytes + change);
    reactor->out_total = (uint64_t)((int64_t)reactor->out_total + change);
}

static struct pando_output *append(struct pando_reactor *reactor, struct pando_connection *connection, uint32_t bytes)
{
    struct pando_buffer buffer = {0};
    if (pando_reactor_pool_reserve(&reactor->pool, &buffer, bytes, 0) == -1)
        return NULL;
    struct pando_output *output = (struct pando_output *)(void *)buffer.data;
    *output = (struct pando_output){.capacity = buffer.capacity - (uint32_t)sizeof(*output), .fd = -1};
    if (connection->out) {
        connection->out_last->next = output;
    } else {
        connection->out = output;
        pando_reactor_pace_begin(reactor, connection);
    }
    connection->out_last = output;
    return output;
}

static void remove_first(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_output *first = connection->out;
    struct pando_buffer buffer = {(char *)first, first->capacity + (uint32_t)sizeof(*first)};
    if (first->fd == -1) {
        account(reactor, connection, -(int64_t)(first->end - first->start));
    } else {
        close(first->fd);
        account(reactor, connection, -(int64_t)FILE_COST);
    }
    connection->out = first->next;
    if (!connection->out)
        connection->out_last = NULL;
    pando_reactor_pool_return(&reactor->pool, &buffer);
}

void pando_reactor_output_release(struct pando_reactor *reactor, struct pando_connection *connection)
{
    while (connection->out)
        remove_first(reactor, connection);
}

/* --- to the socket --- */

/* Bytes sent, 0 if it takes none now, -1 if the connection is closed. */
static ssize_t sent(struct pando_reactor *reactor, struct pando_connection *connection, ssize_t bytes)
{
    if (bytes >= 0)
        return bytes;
    if (errno == EINTR)
        return 0;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        connection->writable = 0;
        return 0;
    }
    pando_reactor_connection_close(reactor, connection);
    return -1;
}

static ssize_t send_data(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct iovec parts[PARTS];
    struct msghdr message = {.msg_iov = parts};
    struct pando_output *output = connection->out;
    for (; output && output->fd == -1 && message.msg_iovlen < PARTS; output = output->next)
        parts[message.msg_iovlen++] = (struct iovec){output->data + output->start, output->end - output->start};

    int more = output ? MSG_MORE : 0;
    ssize_t bytes = sent(reactor, connection,
                         sendmsg(connection->watch.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL | more));
    for (ssize_t left = bytes; left > 0;) {
        struct pando_output *first = connection->out;
        uint32_t size = first->end - first->start;
        if (left < size) {
            first->start += (uint32_t)left;
            account(reactor, connection, -(int64_t)left);
            break;
        }
        left -= size;
        remove_first(reactor, connection);
    }
    return bytes;
}

static ssize_t send_file(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_output *first = connection->out;
    size_t wanted = first->left < FILE_PORTION ? (size_t)first->left : FILE_PORTION;
    ssize_t bytes = sendfile(connection->watch.fd, first->fd, &first->offset, wanted);
    if (bytes == 0 && wanted > 0) { /* it has shrunk, and the client was promised more */
        pando_reactor_connection_reset(reactor, connection);
        return -1;
    }
    bytes = sent(reactor, connection, bytes);
    if (bytes > 0)
        first->left -= (uint64_t)bytes;
    if (bytes >= 0 && first->left == 0)
        remove_first(reactor, connection);
    return bytes;
}

/* What goes out is a 100 Continue, late: the timer is that of the body, or of the queue where that waits already. */
static int timed_otherwise(const struct pando_connection *connection)
{
    return connection->state == PANDO_READING_BODY || pando_reactor_timer_runs(connection, PANDO_TIMER_QUEUE);
}

/* Progress is told to the timer; a client that is too slow all in all is reset. */
static int moved(struct pando_reactor *reactor, struct pando_connection *connection, ssize_t bytes)
{
    if (timed_otherwise(connection))
        return 1;
    if (bytes > 0 && !pando_reactor_pace_moved(reactor, connection, (uint64_t)bytes, reactor->config->write_timeout)) {
        pando_stat_add(&reactor->stats->slow_readers, 1);
        pando_reactor_connection_reset(reactor, connection);
        return 0;
    }
    if (bytes > 0)
        pando_reactor_timer_start(reactor, connection, PANDO_TIMER_WRITE);
    return 1;
}

void pando_reactor_output_flush(struct pando_reactor *reactor, struct pando_connection *connection)
{
    uint64_t budget = FILE_PORTION;
    while (connection->out && connection->writable) {
        if (budget == 0) {
            pando_reactor_connection_again(reactor, connection);
            return;
        }
        ssize_t bytes = connection->out->fd == -1 ? send_data(reactor, connection) : send_file(reactor, connection);
        if (bytes == -1 || !moved(reactor, connection, bytes))
            return;
        budget -= (uint64_t)bytes < budget ? (uint64_t)bytes : budget;
    }
    if (connection->blocks != PANDO_NONE && connection->out_bytes < MOST_IN_NEED)
        pando_reactor_lane_unblock(reactor, connection);
    if (connection->out)
        return;
    if (!timed_otherwise(connection))
        pando_reactor_timer_stop(reactor, connection);
    pando_reactor_connection_flushed(reactor, connection);
}

/* --- from whoever answers --- */

/* While a body is read, as behind 100 Continue, that has its own timer. */
static void watch_time(struct pando_reactor *reactor, struct pando_connection *connection)
{
    int waits = connection->out && connection->state != PANDO_READING_BODY;
    if (waits && !pando_reactor_timer_runs(connection, PANDO_TIMER_WRITE))
        pando_reactor_timer_start(reactor, connection, PANDO_TIMER_WRITE);
}

static int enqueue(struct pando_reactor *reactor, struct pando_connection *connection, const char *data, size_t bytes)
{
    while (bytes > 0) {
        struct pando_output *last = connection->out_last;
        if (!last || last->fd != -1 || last->end == last->capacity)
            last = append(reactor, connection, OUTPUT_BYTES);
        if (!last)
            return -1;
        size_t room = last->capacity - last->end, now = bytes < room ? bytes : room;
        memcpy(last->data + last->end, data, now);
        last->end += (uint32_t)now;
        account(reactor, connection, (int64_t)now);
        data += now;
        bytes -= now;
    }
    return 0;
}

/* An answer has begun, and there is no room for the rest: no other can follow. */
static void out_of_memory(struct pando_reactor *reactor, struct pando_connection *connection)
{
    pando_stat_add(&reactor->stats->shed_resources, 1);
    pando_reactor_connection_reset(reactor, connection);
}

void pando_reactor_output_bytes(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                                size_t bytes, int ends)
{
    if (!connection->out && connection->writable) {
        int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (ends ? MSG_MORE : 0); /* the last bytes and the end travel as one */
        ssize_t now = send(connection->watch.fd, data, bytes, flags);
        now = sent(reactor, connection, now);
        if (now == -1)
            return;
        data += now;
        bytes -= (size_t)now;
    }
    if (enqueue(reactor, connection, data, bytes) == -1) {
        out_of_memory(reactor, connection);
        return;
    }
    if (connection->out && connection->writable)
        pando_reactor_connection_again(reactor, connection);
    watch_time(reactor, connection);
}

void pando_reactor_output_file(struct pando_reactor *reactor, struct pando_connection *connection, int fd,
                               uint64_t bytes)
{
    struct pando_output *output = append(reactor, connection, (uint32_t)sizeof(*output));
    if (!output) {
        close(fd);
        out_of_memory(reactor, connection);
        return;
    }
    output->fd = fd;
    output->left = bytes;
    account(reactor, connection, FILE_COST);
    watch_time(reactor, connection);
    pando_reactor_output_flush(reactor, connection);
}
