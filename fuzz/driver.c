/* A small coverage-guided fuzzer for machines without clang: it needs only gcc's
 * -fsanitize-coverage=trace-pc on the code under test, and not on this file.
 *
 *     TARGET CORPUS_FOLDER SECONDS [SEED]   fuzz; inputs that reach new code are kept in memory
 *     TARGET FILE...                        run each file once
 *
 * An input that fails is written to crash-input in the working directory. */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAP_SIZE 8192
#define MAX_CORPUS 4096

typedef struct {
    size_t size;
    uint8_t *data;
} sample;

static uint8_t hits[MAP_SIZE], seen[MAP_SIZE];
static uintptr_t previous;
static sample corpus[MAX_CORPUS];
static size_t corpus_size;
static uint8_t current[FUZZ_MAX_INPUT];
static size_t current_size;
static uint64_t state;

/* Called by the instrumented code at every branch. */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    uintptr_t place = (uintptr_t)__builtin_return_address(0);
    uint8_t *count = &hits[(place ^ previous) % MAP_SIZE];
    if (*count < UINT8_MAX)
        (*count)++;
    previous = place >> 1;
}

static const char *const words[] = {
    "\r\n", "\r\n\r\n", " ", "\t", ":", ": ", ",", ", ", ";", "=", "\"", "\\", "/", "?", "#", "%", "%41", "*", "@", "[", "]",
    "[::1]", "1.2.3.4", "::", "http://", "https://", "GET", "HEAD", "POST", "OPTIONS", "CONNECT", "PRI", " HTTP/1.1\r\n",
    " HTTP/1.0\r\n", " HTTP/2.0\r\n", "HTTP/1.", "Host: ", "Host: a\r\n", "Content-Length: ", "Content-Length: 5\r\n",
    "Transfer-Encoding: ", "chunked", "Transfer-Encoding: chunked\r\n", "gzip", "identity", "Connection: ", "close",
    "keep-alive", "upgrade", "Expect: 100-continue\r\n", "0", "5", "0\r\n\r\n", "5\r\nhello\r\n", "ffffffffffffffff",
    "9223372036854775807", "18446744073709551616", "65535", "65536", "-1", "+1", "v1.a", "rack.", "status", "date",
    "PROXY ", "TCP4 ", "TCP6 ", "UNKNOWN", "192.0.2.1 ", "2001:db8::1 "};
#define WORDS (sizeof(words) / sizeof(words[0]))

static uint64_t roll(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return below ? state % below : 0;
}

static void insert(size_t at, const void *bytes, size_t size)
{
    if (current_size + size > FUZZ_MAX_INPUT)
        return;
    memmove(current + at + size, current + at, current_size - at);
    memcpy(current + at, bytes, size);
    current_size += size;
}

static void mutate(void)
{
    size_t at = (size_t)roll(current_size + 1);
    switch (roll(8)) {
    case 0:
        if (at < current_size)
            current[at] ^= (uint8_t)(1u << roll(8));
        break;
    case 1:
        if (at < current_size)
            current[at] = (uint8_t)roll(256);
        break;
    case 2: {
        uint8_t byte = (uint8_t)roll(256);
        insert(at, &byte, 1);
        break;
    }
    case 3: {
        size_t size = (size_t)roll(roll(8) ? 4 : 64);
        if (at + size <= current_size) {
            memmove(current + at, current + at + size, current_size - at - size);
            current_size -= size;
        }
        break;
    }
    case 4: { /* repeat a part */
        uint8_t part[64];
        size_t size = (size_t)roll(sizeof(part));
        if (at + size <= current_size) {
            memcpy(part, current + at, size);
            insert(at, part, size);
        }
        break;
    }
    case 5: { /* a part of another sample */
        const sample *other = &corpus[roll(corpus_size)];
        size_t from = (size_t)roll(other->size + 1);
        insert(at, other->data + from, (size_t)roll(other->size - from + 1));
        break;
    }
    default: {
        const char *word = words[roll(WORDS)];
        insert(at, word, strlen(word));
    }
    }
}

/* 1, 2, 3, 4-7, 8-15 ... times: more is news, one more is not. */
static uint8_t bucket(uint8_t count)
{
    if (count < 4)
        return (uint8_t)(count ? 1u << (count - 1) : 0);
    return (uint8_t)(1u << (31 - __builtin_clz(count) + 1 > 7 ? 7 : 31 - __builtin_clz(count) + 1));
}

static int run_current(void)
{
    int news = 0;
    memset(hits, 0, sizeof(hits));
    previous = 0;
    LLVMFuzzerTestOneInput(current, current_size);
    for (size_t i = 0; i < MAP_SIZE; i++) {
        uint8_t reached = bucket(hits[i]);
        if (reached & ~seen[i]) {
            seen[i] |= reached;
            news = 1;
        }
    }
    return news;
}

static void keep_current(void)
{
    if (corpus_size == MAX_CORPUS)
        return;
    sample *kept = &corpus[corpus_size++];
    kept->size = current_size;
    kept->data = malloc(current_size + 1);
    memcpy(kept->data, current, current_size);
}

static void load(const char *path)
{
    int fd = open(path, O_RDONLY);
    ssize_t size = fd < 0 ? -1 : read(fd, current, sizeof(current));
    if (size < 0) {
        perror(path);
        exit(2);
    }
    close(fd);
    current_size = (size_t)size;
}

static void load_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder) {
        perror(path);
        exit(2);
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char file[4096];
        if (entry->d_name[0] == '.' || snprintf(file, sizeof(file), "%s/%s", path, entry->d_name) >= (int)sizeof(file))
            continue;
        load(file);
        run_current();
        keep_current();
    }
    closedir(folder);
}

static void save_crash(int signal)
{
    int fd = open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, current, current_size) == (ssize_t)current_size) {
        static const char text[] = "the input is in crash-input\n";
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    }
    raise(signal);
}

static void fuzz(time_t seconds)
{
    time_t end = time(NULL) + seconds;
    unsigned long runs = 0;
    for (; runs % 1024 || time(NULL) < end; runs++) {
        const sample *base = &corpus[roll(corpus_size)];
        memcpy(current, base->data, base->size);
        current_size = base->size;
        for (uint64_t changes = 1 + roll(6); changes > 0; changes--)
            mutate();
        if (run_current())
            keep_current();
    }
    printf("%lu runs, %zu samples, no failure\n", runs, corpus_size);
}

int main(int argc, char **argv)
{
    struct stat info;
    struct sigaction action = {.sa_handler = save_crash, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGABRT, &action, NULL);

    if (argc >= 3 && stat(argv[1], &info) == 0 && S_ISDIR(info.st_mode)) {
        state = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)time(NULL);
        printf("seed %llu\n", (unsigned long long)state);
        state = state * 0x9E3779B97F4A7C15u + 1;
        current_size = 0;
        keep_current();
        load_folder(argv[1]);
        fuzz(atol(argv[2]));
        return 0;
    }
    for (int i = 1; i < argc; i++) {
        load(argv[i]);
        LLVMFuzzerTestOneInput(current, current_size);
    }
    return argc > 1 ? 0 : 2;
}
