/* Answers on their way to the clients, in memory and in files: part of reactor_private.h, which includes this header.
 * Used by the reactor only. */
#ifndef PANDO_HTTP_REACTOR_OUTPUT_H
#define PANDO_HTTP_REACTOR_OUTPUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pando_connection;
struct pando_reactor;

/* A part of the output: bytes behind this struct in its buffer, or a file. */
struct pando_output {
    struct pando_output *next;
    uint32_t capacity, start, end;      /* positions in data */
    int fd;                             /* -1: the bytes are in data */
    uint8_t spooled;                    /* a part of the connection's own overflow file, which is closed after the
                                         * last part */
    off_t offset;
    uint64_t left;
    char data[];
};

/* reactor_output.c */
/* ends: the connection ends right after these bytes, and the FIN may travel with them. */
void pando_reactor_output_bytes(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                                size_t bytes, int ends);
void pando_reactor_output_file(struct pando_reactor *reactor, struct pando_connection *connection, int fd,
                               uint64_t bytes);
void pando_reactor_output_flush(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_output_release(struct pando_reactor *reactor, struct pando_connection *connection);

/* reactor_reader.c */
/* The output queue has got its first part; it has lost its last. */
void pando_reactor_reader_begin(struct pando_reactor *reactor, struct pando_connection *connection);
void pando_reactor_reader_end(struct pando_reactor *reactor, struct pando_connection *connection);
/* Starts the timer of a client that has something to take, unless it runs. */
void pando_reactor_reader_watch(struct pando_reactor *reactor, struct pando_connection *connection);
/* Checks what the client has taken. 0: too little overall, the connection was reset. */
int pando_reactor_reader_moved(struct pando_reactor *reactor, struct pando_connection *connection);
/* A part of write_timeout has passed: resets a client that has taken too little, or nothing in all of write_timeout. */
void pando_reactor_reader_overdue(struct pando_reactor *reactor, struct pando_connection *connection);
/* Bytes that the client has ever taken; on a UNIX socket, bytes that the kernel has taken. */
uint64_t pando_reactor_reader_taken(const struct pando_connection *connection);

/* reactor_room.c */
int pando_reactor_room_in_memory(const struct pando_reactor *reactor, const struct pando_connection *connection,
                                 size_t bytes);
/* Whether all clients together may have so many bytes more in memory. */
int pando_reactor_room_of_all(const struct pando_reactor *reactor, size_t bytes);
/* Whether so many bytes more of an answer have a place, in memory or on disk. */
int pando_reactor_room_for(const struct pando_reactor *reactor, const struct pando_connection *connection,
                           size_t bytes);
/* 1: the lane waits for that client. 0: there is room, or the connection is closed. */
int pando_reactor_room_wait(struct pando_reactor *reactor, uint32_t lane, struct pando_connection *connection,
                            size_t bytes);
/* Resets the slowest reader. 0: there is none. */
int pando_reactor_room_cut(struct pando_reactor *reactor);

/* reactor_overflow.c */
void pando_reactor_overflow_init(struct pando_reactor *reactor);
int pando_reactor_overflow_possible(const struct pando_reactor *reactor, const struct pando_connection *connection,
                                    size_t bytes);
/* 0, or -1: not all was written; *bytes says how much. */
int pando_reactor_overflow_write(struct pando_reactor *reactor, struct pando_connection *connection, const char *data,
                                 size_t *bytes);
/* The file was sent up to `until`: gives the space back, now or when it is worth a system call. */
void pando_reactor_overflow_sent(struct pando_reactor *reactor, struct pando_connection *connection, uint64_t until);
void pando_reactor_overflow_close(struct pando_reactor *reactor, struct pando_connection *connection);

#endif
