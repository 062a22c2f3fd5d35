/* The ways to write to a pipe without waiting (sys/write_now.c), each by itself: which of them this machine's kernel
 * needs is its own affair. */
#include "sys/write_now.h"
#include "require.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef ssize_t (*way)(int fd, const char *bytes, size_t length);

static char page[PANDO_WRITE_AT_ONCE], place[PANDO_WRITE_AT_ONCE];

/* How many pages it takes until nothing is taken: whoever waits never comes back. */
static int fill(way write_to, int fd)
{
    int pages = 0;
    ssize_t written;
    while ((written = write_to(fd, page, sizeof(page))) == (ssize_t)sizeof(page)) pages++;
    REQUIRE(written == -1 && errno == EAGAIN);
    return pages;
}

static void hold(way write_to)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    int pages = fill(write_to, ends[1]);
    REQUIRE(pages > 0);
    REQUIRE((fcntl(ends[1], F_GETFL) & O_NONBLOCK) == 0);
    REQUIRE(read(ends[0], place, sizeof(place)) == (ssize_t)sizeof(place));
    REQUIRE(write_to(ends[1], "line\n", 5) == 5);
    for (int i = 1; i < pages; i++) REQUIRE(read(ends[0], place, sizeof(place)) == (ssize_t)sizeof(place));
    REQUIRE(read(ends[0], place, sizeof(place)) == 5 && memcmp(place, "line\n", 5) == 0);
    close(ends[0]);
    REQUIRE(write_to(ends[1], "line\n", 5) == -1 && errno == EPIPE);
    close(ends[1]);
    REQUIRE(write_to(ends[1], "line\n", 5) == -1);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    REQUIRE(pando_write_flagged(ends[1], "x", 1) == 1 || errno == EOPNOTSUPP);
    if (errno != EOPNOTSUPP) hold(pando_write_flagged);
    hold(pando_write_reopened);
    hold(pando_write_polled);
    hold(pando_write_now);
    puts("all hold");
    return 0;
}
