/* The main function of the reactor's own program, which the monitor executes. It links http/ and a little of sys/,
 * and no Ruby. Runs in the reactor. */
#include "http/reactor_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int number(const char *text)
{
    char *end;
    long value = text ? strtol(text, &end, 10) : -1;
    return value > STDERR_FILENO && value <= INT_MAX && *end == '\0' ? (int)value : -1;
}

int main(void)
{
    static struct pando_reactor_papers papers;
    int file = number(getenv(PANDO_REACTOR_VARIABLE));
    if (file == -1 || pando_reactor_papers_read(&papers, file) == -1) {
        dprintf(STDERR_FILENO, "pando reactor: only the pando monitor that it was built with can run it\n");
        return PANDO_REACTOR_FAILED;
    }
    pando_reactor_live(pando_reactor_papers_config(&papers), papers.monitor);
}
