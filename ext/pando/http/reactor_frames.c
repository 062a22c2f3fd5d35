/* Handles the frames that workers put on their lanes: answers, and requests for descriptors. Runs in the reactor. The
 * reactor copies a frame's header before it looks at it, and only passes the payload on. */
#include "reactor_private.h"

#include "sys/record.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 4u /* files queued for one client: descriptors are scarce, and a worker passes one per answer */

static int is_offered(const struct pando_reactor_lane *lane, uint32_t turn)
{
    PANDO_EACH_OFFER (lane, slot)
        if (lane->offered[slot]->request.turn == turn)
            return 1;
    return 0;
}

/* The connection whose request a frame is about, if this lane may speak of it. */
static struct pando_connection *connection_of(struct pando_reactor *reactor, uint32_t number,
                                              const struct pando_frame *frame)
{
    struct pando_reactor_lane *lane = &reactor->lanes[number];
    if (frame->epoch != reactor->epoch)
        return NULL;
    if (lane->taken && lane->taken->request.turn == frame->turn)
        return lane->taken;
    if (!is_offered(lane, frame->turn))
        return NULL;
    if (lane->taken) /* the frame is about the next request, and this one was never ended */
        pando_reactor_request_fail(reactor, lane->taken, 502);
    pando_reactor_dispatch_look(reactor, number);
    return lane->taken && lane->taken->request.turn == frame->turn ? lane->taken : NULL;
}

/* --- descriptors --- */

/* The descriptor that belongs to a frame, or -1. Descriptors of dropped frames may still be queued in front of it. */
static int take_file(int socket, const struct pando_frame *frame)
{
    struct pando_reactor_ticket ticket;
    struct pando_record record;
    while (pando_record_receive(socket, &ticket, sizeof(ticket), &record) == 1) {
        int mine = record.length == sizeof(ticket) && !record.truncated && record.fd_count == 1 &&
                   ticket.epoch == frame->epoch && ticket.turn == frame->turn;
        if (mine)
            return record.fds[0];
        for (int i = 0; i < record.fd_count; i++)
            close(record.fds[i]);
    }
    return -1;
}

/* fd -1: the client is gone. 0, or -1 if the worker does not take it. */
static int give(int socket, const struct pando_frame *frame, int fd, const char *rest, size_t bytes)
{
    char packet[sizeof(struct pando_reactor_ticket) + PANDO_SLOT_BYTES];
    struct pando_reactor_ticket ticket = {frame->epoch, frame->turn};
    if (bytes > PANDO_SLOT_BYTES)
        return -1;
    memcpy(packet, &ticket, sizeof(ticket));
    if (bytes > 0)
        memcpy(packet + sizeof(ticket), rest, bytes);
    return pando_record_send(socket, packet, sizeof(ticket) + bytes, &fd, fd == -1 ? 0 : 1);
}

static void want_file(struct pando_reactor *reactor, int socket, const struct pando_frame *frame,
                      struct pando_connection *connection)
{
    if (give(socket, frame, connection->spool, NULL, 0) == -1)
        pando_reactor_request_fail(reactor, connection, 502);
}

/* The client stays connected, but only to the worker. */
static void given_away(struct pando_reactor *reactor, struct pando_connection *connection)
{
    pando_reactor_exchange_answered(connection);
    pando_reactor_request_settle(reactor, connection);
    pando_reactor_connection_forget(reactor, connection);
}

static void want_socket(struct pando_reactor *reactor, struct pando_reactor_lane *lane, const struct pando_frame *frame,
                        struct pando_connection *connection)
{
    int socket = lane->socket;
    const char *rest = connection->in.data ? connection->in.data + connection->raw : NULL;
    int given = !connection->out &&
                give(socket, frame, connection->watch.fd, rest, connection->in_end - connection->raw) == 0;
    if (!given) {
        give(socket, frame, -1, NULL, 0);
        pando_reactor_request_fail(reactor, connection, 502);
        return;
    }
    pando_stat_add(&reactor->stats->hijacked, 1);
    pando_reactor_choice_handed(reactor, lane);
    if (connection->streamed) {
        pando_reactor_request_lend(reactor, connection);
        return;
    }
    connection->exchange.status = 101; /* as far as the reactor is concerned: it does not see the answer */
    given_away(reactor, connection);
}

static void file(struct pando_reactor *reactor, int socket, const struct pando_frame *frame,
                 struct pando_connection *connection)
{
    struct stat status;
    int fd = take_file(socket, frame);
    int usable = fd != -1 && connection->out_files < FILES && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (!usable) {
        if (fd != -1)
            close(fd);
        pando_reactor_request_fail(reactor, connection, 502);
        return;
    }
    connection->request.answered = 1;
    if (frame->value > 0)
        pando_reactor_output_file(reactor, connection, fd, frame->value);
    else
        close(fd);
}

/* --- the answer --- */

/* The position behind a frame, computed as in pando_lane_consume. */
static uint64_t behind(uint64_t position, const struct pando_frame *frame)
{
    return position + sizeof(*frame) + (((uint64_t)frame->bytes + 7) & ~(uint64_t)7);
}

/* Whether the end of a request's answer is already in the ring: then the worker has given up. */
static int whole_in_ring(struct pando_reactor *reactor, uint32_t lane, const struct pando_frame *frame)
{
    const struct pando_lane *shared = reactor->lanes[lane].shared;
    uint64_t position = reactor->lanes[lane].position;
    struct pando_frame next;
    const char *payload;
    while (pando_lane_peek(shared, &position, &next, &payload) == 1) {
        if (next.epoch == frame->epoch && next.turn == frame->turn &&
            (next.kind == PANDO_FRAME_END || next.kind == PANDO_FRAME_ABORT))
            return 1;
        position = behind(position, &next);
    }
    return 0;
}

/* When no room is left for the answer of a client that takes nothing, its worker must wait. */
static int must_wait(struct pando_reactor *reactor, uint32_t number, const struct pando_frame *frame,
                     struct pando_connection *connection)
{
    return !reactor->lanes[number].dead && pando_reactor_room_wait(reactor, number, connection, frame->bytes);
}

/* Before the socket goes to the worker, the client gets everything answered so far, unless the worker has given up. */
static int must_flush(struct pando_reactor *reactor, uint32_t number, const struct pando_frame *frame,
                      struct pando_connection *connection)
{
    if (!connection->out || whole_in_ring(reactor, number, frame))
        return 0;
    pando_reactor_reader_watch(reactor, connection);
    pando_reactor_lane_block(reactor, number, connection);
    return 1;
}

/* Whether these are the last bytes of the connection: the next frame ends it. */
static int ends_with(struct pando_reactor *reactor, uint32_t lane, const struct pando_frame *frame,
                     const struct pando_connection *connection)
{
    uint64_t position = behind(reactor->lanes[lane].position, frame);
    struct pando_frame next;
    const char *payload;
    return !connection->persistent &&
           pando_lane_peek(reactor->lanes[lane].shared, &position, &next, &payload) == 1 &&
           next.kind == PANDO_FRAME_END && next.epoch == frame->epoch && next.turn == frame->turn;
}

static void data(struct pando_reactor *reactor, uint32_t lane, const struct pando_frame *frame, const char *payload,
                 struct pando_connection *connection)
{
    if (frame->bytes == 0)
        return;
    if (frame->value == 1)
        connection->request.informed = 1;
    else if (!connection->request.answered)
        pando_reactor_exchange_answer(reactor, connection, payload, frame->bytes);
    if (frame->value != 1)
        connection->request.answered = 1;
    if (!connection->out)
        pando_reactor_timer_stop(reactor, connection);
    pando_reactor_output_bytes(reactor, connection, payload, frame->bytes,
                               ends_with(reactor, lane, frame, connection));
}

static void end(struct pando_reactor *reactor, const struct pando_frame *frame, struct pando_connection *connection)
{
    if (!connection->request.answered) { /* an answer without a status line is no answer */
        pando_reactor_request_fail(reactor, connection, 502);
        return;
    }
    pando_stat_add(&reactor->stats->pools[connection->request.pool].responses, 1);
    pando_reactor_heavy_answered(reactor, connection);
    pando_reactor_exchange_answered(connection);
    pando_reactor_request_settle(reactor, connection);
    pando_reactor_connection_answered(reactor, connection, frame->value == 1);
}

/* A frame from a worker whose client is gone, or whose request belongs to a former reactor: the worker may be waiting
 * for a descriptor. */
static void late(const struct pando_reactor_lane *lane, const struct pando_frame *frame)
{
    if (frame->kind == PANDO_FRAME_WANT_FILE || frame->kind == PANDO_FRAME_WANT_SOCKET)
        give(lane->socket, frame, -1, NULL, 0);
}

enum pando_frame_verdict pando_reactor_frame_handle(struct pando_reactor *reactor, uint32_t lane,
                                            const struct pando_frame *frame, const char *payload)
{
    struct pando_connection *connection = connection_of(reactor, lane, frame);
    int socket = reactor->lanes[lane].socket;
    int last = frame->kind == PANDO_FRAME_END || frame->kind == PANDO_FRAME_ABORT;
    if (last) {
        reactor->lanes[lane].ended = reactor->lanes[lane].offers == 0;
        reactor->lanes[lane].stepped_at = reactor->now;
    }
    if (!connection) {
        late(&reactor->lanes[lane], frame);
        return PANDO_FRAME_DONE;
    }
    if (connection->request.lent) { /* its other frames mean nothing any more */
        if (last) {
            connection->exchange.status = frame->value < 600 ? (uint16_t)frame->value : 0;
            given_away(reactor, connection);
        }
        return PANDO_FRAME_DONE;
    }

    switch (frame->kind) {
    case PANDO_FRAME_DATA:
        if (must_wait(reactor, lane, frame, connection))
            return PANDO_FRAME_NOT_NOW;
        if (connection->state == PANDO_CLOSED)
            break;
        data(reactor, lane, frame, payload, connection);
        break;
    case PANDO_FRAME_FILE:
        file(reactor, socket, frame, connection);
        break;
    case PANDO_FRAME_END:
        end(reactor, frame, connection);
        break;
    case PANDO_FRAME_ABORT:
        pando_reactor_request_fail(reactor, connection, 502);
        break;
    case PANDO_FRAME_WANT_FILE:
        if (reactor->lanes[lane].dead)
            break;
        want_file(reactor, socket, frame, connection);
        break;
    case PANDO_FRAME_WANT_SOCKET:
        if (reactor->lanes[lane].dead)
            break;
        if (must_flush(reactor, lane, frame, connection))
            return PANDO_FRAME_NOT_NOW;
        want_socket(reactor, &reactor->lanes[lane], frame, connection);
        break;
    default: /* peek lets no other kind through today */
        break;
    }
    return PANDO_FRAME_DONE;
}
