/* Two threads and a ring: one puts numbered lines, as fast as it can, while the writer writes them to a pipe that this
 * program reads. Each line that found room must arrive, whole and in order. For ThreadSanitizer.
 *
 *     log_lines LINES */
#include "http/log_writer.h"
#include "require.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned long count;

static void *put_lines(void *place)
{
    struct pando_log_writer *writer = place;
    char line[400];
    for (unsigned long number = 0; number < count; number++) {
        int bytes = snprintf(line, sizeof(line), "%lu %0*d\n", number, (int)(number % 300), 7);
        while (!pando_log_writer_put(writer, line, (size_t)bytes)) {
            pando_log_writer_nudge(writer);
            usleep(100);
        }
        if (number % 16 == 0)
            pando_log_writer_nudge(writer);
        if (number % 1000 == 0)
            pando_log_writer_reopen(writer);
    }
    pando_log_writer_nudge(writer);
    REQUIRE(pando_log_writer_stop(writer, 60000));
    return NULL;
}

int main(int arguments, char **argument)
{
    static struct pando_log_writer writer;
    static _Atomic uint64_t failure;
    char folder[] = "/tmp/log_lines.XXXXXX", path[64], line[512];
    REQUIRE(arguments == 2 && mkdtemp(folder));
    count = strtoul(argument[1], NULL, 10);
    snprintf(path, sizeof(path), "%s/pipe", folder);
    REQUIRE(mkfifo(path, 0600) == 0);
    int keep = open(path, O_RDWR); /* a pipe that stays open while it is opened anew */
    FILE *pipe = fopen(path, "r");
    REQUIRE(keep != -1 && pipe && pando_log_writer_start(&writer, path, &failure) == 0);

    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, put_lines, &writer) == 0);
    for (unsigned long number = 0; number < count; number++) {
        REQUIRE(fgets(line, sizeof(line), pipe) && strtoul(line, NULL, 10) == number);
        REQUIRE(strlen(strchr(line, ' ')) == (number % 300 ? number % 300 : 1) + 2);
    }
    REQUIRE(pthread_join(thread, NULL) == 0 && failure == 0);
    unlink(path);
    rmdir(folder);
    printf("%lu lines\n", count);
    return 0;
}
