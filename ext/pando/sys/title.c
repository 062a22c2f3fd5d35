/* Rewrites the process title, see title.h. Runs in workers. */
#include "title.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARG_START 48 /* field of /proc/self/stat, counted from 1 */
#define AFTER_NAME 3
#define PREFIX 12

static char *title_start;
static size_t title_length;
static char prefix[PREFIX];

/* The second field is a name that may hold spaces and parentheses, so count the fields from its end. */
static char *arg_start(char *stat)
{
    char *at = strrchr(stat, ')');
    for (int field = AFTER_NAME - 1; at && field < ARG_START; field++) {
        at = strchr(at, ' ');
        if (at) at++;
    }
    return at ? (char *)(uintptr_t)strtoull(at, NULL, 10) : NULL;
}

static char *locate(void)
{
    char stat[2048];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd == -1) return NULL;
    ssize_t length = read(fd, stat, sizeof(stat) - 1);
    close(fd);
    if (length <= 0) return NULL;
    stat[length] = '\0';
    return arg_start(stat);
}

int pando_title_locate(const char *title, size_t length)
{
    title_start = NULL;
    if (length < PREFIX) return -1;
    char *start = locate();
    if (!start || memcmp(start, title, length) != 0) return -1;
    memcpy(prefix, title, PREFIX);
    title_length = length;
    title_start = start;
    return 0;
}

int pando_title_end(const char *word, size_t length)
{
    if (!title_start || length > title_length - PREFIX || memcmp(title_start, prefix, PREFIX) != 0) return -1;
    memcpy(title_start + title_length - length, word, length);
    return 0;
}
