/* The access log: a line for each exchange. Used by the reactor only. */
#ifndef PANDO_HTTP_REACTOR_ACCESS_LOG_H
#define PANDO_HTTP_REACTOR_ACCESS_LOG_H

#include "log_writer.h"
#include "reactor.h"

#define PANDO_LOG_LINE 98304u /* room for all values of a line if each byte is escaped */

struct pando_connection;
struct pando_reactor;

struct pando_access_log {
    struct pando_log_writer writer;
    const struct pando_access_log_config *config;
    uint32_t random;              /* state of the generator that takes the sample */
    int unannounced;              /* the writer must be woken for new lines */
    int64_t second;               /* which `clock` is for */
    char clock[40];               /* the time as the format writes it, without milliseconds */
    char line[PANDO_LOG_LINE];
};

/* Without memory, a descriptor or a thread for it the reactor serves on without the log. */
void pando_access_log_start(struct pando_reactor *reactor);
/* 0: its thread hangs in the kernel, and uses the log and the channel until the process ends. */
int pando_access_log_stop(struct pando_reactor *reactor);
void pando_access_log_note(struct pando_reactor *reactor, const struct pando_connection *connection);
/* Once in each turn of the loop. */
void pando_access_log_turn(struct pando_reactor *reactor);
void pando_access_log_reopen(struct pando_reactor *reactor);

#endif
