/* Sends bytes to clients: at once as far as the socket takes them, the rest from a queue of buffers and files. Runs
 * in the reactor. */
#include "reactor_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PARTS 16
#define FILE_PORTION (1u << 20)    /* bytes of a file sent before others have their turn */
#define OUTPUT_BYTES 16384u
#define LITTLE 4096u
#define LARGE 16384                /* from so many answer bytes on, bounding the kernel's buffer is worth a system
                                    * call */
#define UNSENT (128 << 10)         /* bytes that the kernel may hold unsent, in addition to those in flight */
#define RELIEF (128u << 10)        /* room there must be before a worker that waited goes on */

static void account(struct pando_reactor *reactor, struct pando_connection *connection, int64_t change)
{
    connection->out_bytes = (uint64_t)((int64_t)connection->out_bytes + change);
    reactor->out_total = (uint64_t)((int64_t)reactor->out_total + change);
}

static struct pando_output *append(struct pando_reactor *reactor, struct pando_connection *connection, uint32_t bytes)
{
    struct pando_buffer buffer = {0};
    if (pando_reactor_pool_insist(&reactor->pool, &buffer, bytes, 0) == -1)
        return NULL;
    struct pando_output *output = (struct pando_output *)(void *)buffer.data;
    *output = (struct pando_output){.capacity = buffer.capacity - (uint32_t)sizeof(*output), .fd = -1};
    if (connection->out) {
        connection->out_last->next = output;
    } else {
        connection->out = output;
        pando_reactor_reader_begin(reactor, connection);
    }
    connection->out_last = output;
    account(reactor, connection, buffer.capacity);
    return output;
}

static void let_file_go(struct pando_reactor *reactor, struct pando_connection *connection, struct pando_output *output)
{
    if (!output->spooled) {
        close(output->fd);
        connection->out_files--;
    } else if (--connection->out_parts == 0) {
        pando_reactor_overflow_close(reactor, connection);
    }
}

static void remove_first(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_output *first = connection->out;
    struct pando_buffer buffer = {(char *)first, first->capacity + (uint32_t)sizeof(*first)};
    if (first->fd != -1)
        let_file_go(reactor, connection, first);
    account(reactor, connection, -(int64_t)buffer.capacity);
    connection->out = first->next;
    if (!connection->out) {
        connection->out_last = NULL;
        pando_reactor_reader_end(reactor, connection);
    }
    pando_reactor_pool_return(&reactor->pool, &buffer);
}

void pando_reactor_output_release(struct pando_reactor *reactor, struct pando_connection *connection)
{
    while (connection->out)
        remove_first(reactor, connection);
    pando_reactor_overflow_close(reactor, connection); /* without a part that would have done it */
}

/* --- to the socket --- */

/* Bytes sent; 0: the socket takes none now; -1: the connection is closed. */
static ssize_t sent(struct pando_reactor *reactor, struct pando_connection *connection, ssize_t bytes)
{
    if (bytes >= 0) {
        connection->sent += (uint64_t)bytes;
        return bytes;
    }
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
            break;
        }
        left -= size;
        remove_first(reactor, connection);
    }
    return bytes;
}

/* Sends a copy. A page passed on by sendfile(2) belongs to the socket until the client has read it, and punching a
 * hole where data was sent would change that page. */
static ssize_t send_spooled(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_output *first = connection->out;
    size_t wanted = first->left < PANDO_SCRATCH_BYTES ? (size_t)first->left : PANDO_SCRATCH_BYTES;
    ssize_t bytes = pread(first->fd, reactor->scratch, wanted, first->offset);
    if (bytes <= 0) {
        if (bytes == -1 && errno == EINTR)
            return 0;
        if (bytes == 0)
            errno = EIO;
        pando_reactor_spool_failed(reactor);
        pando_reactor_connection_reset(reactor, connection);
        return -1;
    }
    int more = (uint64_t)bytes < first->left || first->next ? MSG_MORE : 0;
    bytes = send(connection->watch.fd, reactor->scratch, (size_t)bytes, MSG_DONTWAIT | MSG_NOSIGNAL | more);
    bytes = sent(reactor, connection, bytes);
    if (bytes > 0) {
        first->offset += bytes;
        first->left -= (uint64_t)bytes;
        pando_reactor_overflow_sent(reactor, connection, (uint64_t)first->offset);
    }
    if (bytes >= 0 && first->left == 0)
        remove_first(reactor, connection);
    return bytes;
}

static ssize_t send_file(struct pando_reactor *reactor, struct pando_connection *connection)
{
    struct pando_output *first = connection->out;
    size_t wanted = first->left < FILE_PORTION ? (size_t)first->left : FILE_PORTION;
    ssize_t bytes = sendfile(connection->watch.fd, first->fd, &first->offset, wanted);
    if (bytes == 0 && wanted > 0) { /* the file has shrunk, and the client was promised more */
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

static ssize_t send_first(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->out->fd == -1)
        return send_data(reactor, connection);
    return connection->out->spooled ? send_spooled(reactor, connection) : send_file(reactor, connection);
}

static int has_relief(const struct pando_reactor *reactor, const struct pando_connection *connection)
{
    uint64_t half = reactor->config->response_memory / 2;
    return !connection->out || pando_reactor_room_for(reactor, connection, half < RELIEF ? (size_t)half : RELIEF);
}

void pando_reactor_output_flush(struct pando_reactor *reactor, struct pando_connection *connection)
{
    uint64_t budget = FILE_PORTION;
    while (connection->out && connection->writable) {
        if (budget == 0) {
            pando_reactor_connection_again(reactor, connection);
            return;
        }
        ssize_t bytes = send_first(reactor, connection);
        if (bytes == -1 || (bytes > 0 && !pando_reactor_reader_moved(reactor, connection)))
            return;
        budget -= (uint64_t)bytes < budget ? (uint64_t)bytes : budget;
    }
    if (connection->blocks != PANDO_NONE && has_relief(reactor, connection))
        pando_reactor_lane_unblock(reactor, connection);
    if (!connection->out)
        pando_reactor_connection_flushed(reactor, connection);
}

/* --- what the answer's author has to send --- */

static int enqueue(struct pando_reactor *reactor, struct pando_connection *connection, const char *data, size_t bytes)
{
    while (bytes > 0) {
        struct pando_output *last = connection->out_last;
        if (!last || last->fd != -1 || last->end == last->capacity)
            last = append(reactor, connection, bytes + sizeof(*last) <= LITTLE ? LITTLE : OUTPUT_BYTES);
        if (!last)
            return -1;
        size_t room = last->capacity - last->end, now = bytes < room ? bytes : room;
        memcpy(last->data + last->end, data, now);
        last->end += (uint32_t)now;
        data += now;
        bytes -= now;
    }
    return 0;
}

/* The number of bytes now in the file, or -1: no memory to record them. */
static ssize_t spool(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                     size_t bytes)
{
    struct pando_output *last = connection->out_last;
    pando_reactor_overflow_write(reactor, connection, data, &bytes);
    if (bytes == 0) {
        if (connection->out_parts == 0)
            pando_reactor_overflow_close(reactor, connection); /* no part will do it */
        return 0;
    }
    if (!last || !last->spooled) {
        last = append(reactor, connection, LITTLE);
        if (!last)
            return -1;
        last->spooled = 1;
        last->fd = connection->overflow;
        last->offset = (off_t)(connection->overflow_end - bytes);
        connection->out_parts++;
    }
    last->left += bytes;
    return (ssize_t)bytes;
}

/* Keeps bytes in memory if they find no other place: it is one frame, and the reactor takes no further one. */
static int keep(struct pando_reactor *reactor, struct pando_connection *connection, const char *data, size_t bytes)
{
    ssize_t spooled = 0;
    if (bytes > 0 && !pando_reactor_room_in_memory(reactor, connection, bytes))
        spooled = spool(reactor, connection, data, bytes);
    if (spooled == -1)
        return -1;
    return enqueue(reactor, connection, data + spooled, bytes - (size_t)spooled);
}

/* Nobody can be made to wait for these bytes, so others make way. 0: the connection itself had to go. */
static int make_room(struct pando_reactor *reactor, struct pando_connection *connection, size_t bytes)
{
    while (bytes > 0 && connection->state != PANDO_CLOSED && !pando_reactor_room_for(reactor, connection, bytes))
        if (pando_reactor_room_of_all(reactor, bytes) || !pando_reactor_room_cut(reactor))
            break;
    return connection->state != PANDO_CLOSED;
}

/* TCP_NOTSENT_LOWAT: without it the kernel takes several MiB for a client that reads slowly. Only TCP has the
 * option. */
static void bound_unsent(struct pando_connection *connection)
{
    int most = UNSENT;
    if (!connection->unsent_bounded)
        setsockopt(connection->watch.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof(most));
    connection->unsent_bounded = 1;
}

/* The answer has begun and there is no room for the rest. No other answer can follow. */
static void out_of_memory(struct pando_reactor *reactor, struct pando_connection *connection)
{
    pando_stat_add(&reactor->stats->shed_resources, 1);
    pando_reactor_connection_reset(reactor, connection);
}

void pando_reactor_output_bytes(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                                size_t bytes, int ends)
{
    if (connection->sent + bytes >= LARGE)
        bound_unsent(connection);
    if (!connection->out && connection->writable) {
        int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (ends ? MSG_MORE : 0); /* so that the last bytes and the FIN travel
                                                                          * together */
        ssize_t now = send(connection->watch.fd, data, bytes, flags);
        now = sent(reactor, connection, now);
        if (now == -1)
            return;
        data += now;
        bytes -= (size_t)now;
    }
    if (!make_room(reactor, connection, bytes))
        return;
    if (keep(reactor, connection, data, bytes) == -1) {
        out_of_memory(reactor, connection);
        return;
    }
    if (connection->out && connection->writable)
        pando_reactor_connection_again(reactor, connection);
    pando_reactor_reader_watch(reactor, connection);
}

void pando_reactor_output_file(struct pando_reactor *reactor, struct pando_connection *connection, int fd,
                               uint64_t bytes)
{
    struct pando_output *output = append(reactor, connection, LITTLE);
    if (!output) {
        close(fd);
        out_of_memory(reactor, connection);
        return;
    }
    output->fd = fd;
    output->left = bytes;
    connection->out_files++;
    bound_unsent(connection);
    pando_reactor_reader_watch(reactor, connection);
    pando_reactor_output_flush(reactor, connection);
}
