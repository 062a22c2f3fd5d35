/* A stage for the reactor: this program plays the monitor and all workers, by
 * orders from standard input, one a line; each gets one line back. The reactor
 * is its child. So a test decides at which step a worker stops.
 *
 *     reactor_stage LISTENER_FD name=number...     (the settings of a pando_reactor_config)
 */
#include "http/channel.h"
#include "http/reactor.h"
#include "sys/record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LANES 8
#define PATIENCE 10000 /* milliseconds */
#define REQUIRE(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

static void fail(const char *condition, int line)
{
    fprintf(stderr, "reactor_stage.c:%d: %s (errno %d: %s)\n", line, condition, errno, strerror(errno));
    exit(99);
}

static struct pando_channel channel;
static int wake_fd, control = -1;
static struct pando_listener listener;
static pid_t reactor;
static struct {
    int wake, mine, theirs;
} lanes[LANES];

static struct pando_reactor_config config = {
    .listeners = &listener, .listener_count = 1,
    .max_header_bytes = 65536, .max_target_bytes = 8192, .max_headers = 100,
    .max_body_bytes = PANDO_REACTOR_NO_LIMIT, .body_memory = 114688,
    .answer_memory = 262144, .answer_total = 64 << 20, .spool_total = 1 << 30,
    .buffer_memory = 512 << 20,
    .header_timeout = 30000, .body_timeout = 30000, .idle_timeout = 30000, .write_timeout = 30000, .grace = 2000,
    .queue_timeout = 30000, .max_connections = 1000, .max_queue = 1000, .retry_after = 7, .retry = 1,
};

static void configure(const char *name, uint64_t value)
{
#define NUMBER(member) if (strcmp(name, #member) == 0) { config.member = value; return; }
    NUMBER(max_header_bytes) NUMBER(max_target_bytes) NUMBER(max_headers) NUMBER(max_body_bytes) NUMBER(body_memory)
    NUMBER(header_timeout) NUMBER(body_timeout) NUMBER(idle_timeout) NUMBER(write_timeout) NUMBER(queue_timeout)
    NUMBER(max_connections) NUMBER(max_queue) NUMBER(max_requests) NUMBER(retry)
    NUMBER(answer_memory) NUMBER(answer_total) NUMBER(spool_total)
    NUMBER(buffer_memory) NUMBER(spool_in_memory)
    NUMBER(retry_after) NUMBER(max_per_address) NUMBER(monitor_silence)
    if (strcmp(name, "proxy_protocol") == 0) { listener.flags = value ? PANDO_LISTENER_PROXIED : 0; return; }
    if (strcmp(name, "held") == 0) { listener.flags = value ? PANDO_LISTENER_HELD : 0; return; }
    REQUIRE(!"unknown setting");
}

/* Paths with commas between them. */
static void configure_paths(const char *list)
{
    static char paths[256];
    REQUIRE(strlen(list) + 2 < sizeof(paths));
    strcpy(paths, list);
    for (char *comma = paths; (comma = strchr(comma, ',')); comma++) *comma = '\0';
    config.stream_paths = paths; /* static: an empty one follows */
}

/* --- the monitor --- */

static void start_reactor(void)
{
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    fflush(stdout);
    reactor = fork();
    REQUIRE(reactor != -1);
    if (reactor == 0) {
        close(ends[0]);
        if (control != -1) close(control);
        for (int i = 0; i < LANES; i++) {
            close(lanes[i].wake);
            close(lanes[i].mine);
            close(lanes[i].theirs);
        }
        pando_channel_unmap(&channel);
        config.channel = channel.fd;
        config.wake = dup(wake_fd);
        config.control = ends[1];
        int status = pando_reactor_run(&config);
        exit(status); /* with the sanitizers' look at what is left */
    }
    close(ends[1]);
    if (control != -1) close(control);
    control = ends[0];
}

static void order(uint32_t kind, uint32_t lane, uint32_t cause)
{
    struct pando_reactor_record record = {.kind = kind, .lane = lane, .cause = cause};
    int opens = kind == PANDO_REACTOR_LANE_OPEN;
    int fds[2] = {opens ? lanes[lane].wake : -1, opens ? lanes[lane].theirs : -1};
    REQUIRE(pando_record_send(control, &record, sizeof(record), fds, opens ? 2 : 0) == 0);
}

static void listen_at(uint32_t number, uint32_t flags)
{
    struct pando_reactor_record record = {.kind = PANDO_REACTOR_LISTENER_OPEN, .lane = number, .cause = flags};
    REQUIRE(pando_record_send(control, &record, sizeof(record), &listener.fd, 1) == 0);
}

static void report(void)
{
    struct pando_reactor_record record;
    struct pando_record received;
    struct pollfd ready = {.fd = control, .events = POLLIN};
    REQUIRE(poll(&ready, 1, PATIENCE) == 1);
    int result = pando_record_receive(control, &record, sizeof(record), &received);
    if (result == 1)
        printf("record %u %u\n", record.kind, record.lane);
    else
        printf("end\n");
}

/* --- a worker --- */

static void print_hex(const char *data, size_t bytes)
{
    putchar(' ');
    if (bytes == 0) putchar('-');
    for (size_t i = 0; i < bytes; i++) printf("%02x", (unsigned char)data[i]);
}

static int digit(char hex)
{
    return hex <= '9' ? hex - '0' : hex - 'a' + 10;
}

static size_t from_hex(const char *text, char *data)
{
    size_t bytes = 0;
    for (; text[0] && text[1]; text += 2) data[bytes++] = (char)(digit(text[0]) << 4 | digit(text[1]));
    return bytes;
}

static uint64_t now(void)
{
    struct timespec clock;
    clock_gettime(CLOCK_MONOTONIC, &clock);
    return (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
}

static int claim(uint32_t number, int patience, uint32_t *turn)
{
    struct pando_lane *lane = &channel.shared->lanes[number];
    uint64_t count, deadline = now() + (uint64_t)patience * 1000000u;
    for (;;) {
        pando_lane_awake(lane);
        int slot = pando_channel_take(&channel, number, turn);
        if (slot >= 0 || now() >= deadline) return slot;
        if (!pando_lane_sleep(&channel, lane, now())) continue;
        struct pollfd ready = {.fd = lanes[number].wake, .events = POLLIN};
        poll(&ready, 1, (int)((deadline - now()) / 1000000u) + 1);
        (void)!read(lanes[number].wake, &count, sizeof(count));
    }
}

static void take(uint32_t number, int patience)
{
    uint32_t turn;
    int slot = claim(number, patience, &turn);
    if (slot < 0) {
        printf("none\n");
        return;
    }
    struct pando_slot *mine = &channel.shared->slots[slot];
    pando_stat_set(&mine->taken, now());
    printf("request %d %u %u %u %u %llu %s", slot, turn, mine->flags, mine->head_bytes, mine->body_bytes,
           (unsigned long long)mine->file_bytes, mine->remote[0] ? mine->remote : "-");
    print_hex(mine->data, mine->flags & PANDO_SLOT_ALL_IN_FILE ? 0 : mine->head_bytes + mine->body_bytes);
    putchar('\n');
}

static void committed(void)
{
    uint64_t one = 1;
    if (pando_channel_rouse_reactor(&channel)) REQUIRE(write(wake_fd, &one, sizeof(one)) == sizeof(one));
}

static int put(uint32_t number, uint32_t kind, uint32_t slot, uint32_t turn, uint64_t value, const char *data,
               size_t bytes, int patience)
{
    struct pando_lane *lane = &channel.shared->lanes[number];
    struct pando_frame frame = {kind, slot, turn, (uint32_t)bytes, value};
    struct iovec part = {(void *)data, bytes};
    uint64_t count;
    while (pando_lane_put(lane, &frame, &part, 1) != 1) {
        if (!pando_lane_starve(lane)) continue;
        struct pollfd ready = {.fd = lanes[number].wake, .events = POLLIN};
        if (poll(&ready, 1, patience) == 0) return 0;
        REQUIRE(read(lanes[number].wake, &count, sizeof(count)) == sizeof(count));
        pando_lane_fed(lane);
    }
    committed();
    return 1;
}

/* So many bytes, each of them saying where it stands. 0: the reactor takes no more. */
static int much(uint32_t number, uint32_t slot, uint32_t turn, size_t bytes)
{
    static char block[30000];
    for (size_t sent = 0; sent < bytes;) {
        size_t now = bytes - sent < sizeof(block) ? bytes - sent : sizeof(block);
        for (size_t i = 0; i < now; i++) block[i] = (char)((sent + i) / 1000 % 251);
        if (!put(number, PANDO_FRAME_DATA, slot, turn, 0, block, now, 500)) return 0;
        sent += now;
    }
    return 1;
}

/* Answers all requests, up to and with one for /enough. */
static void serve(uint32_t number)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    unsigned served = 0;
    for (int enough = 0; !enough; served++) {
        uint32_t turn;
        int slot = claim(number, PATIENCE, &turn);
        REQUIRE(slot >= 0);
        const struct pando_slot *mine = &channel.shared->slots[slot];
        enough = memcmp(mine->data, "GET /enough ", 12) == 0;
        put(number, PANDO_FRAME_DATA, (uint32_t)slot, turn, 0, answer, sizeof(answer) - 1, PATIENCE);
        put(number, PANDO_FRAME_END, (uint32_t)slot, turn, !(mine->flags & PANDO_SLOT_LAST), NULL, 0, PATIENCE);
    }
    printf("served %u\n", served);
}

/* A frame that was being written when the worker died. */
static void half(uint32_t number, uint32_t slot, uint32_t turn)
{
    struct pando_lane *lane = &channel.shared->lanes[number];
    struct pando_frame frame = {PANDO_FRAME_DATA, slot, turn, 1000, 0};
    memcpy(lane->ring + atomic_load(&lane->written) % PANDO_LANE_BYTES, &frame, sizeof(frame));
}

static void receive(uint32_t number, uint32_t slot, uint32_t turn)
{
    static char data[1 << 20], packet[1 << 16];
    struct pando_record record;
    struct pollfd ready = {.fd = lanes[number].mine, .events = POLLIN};
    struct pando_reactor_ticket ticket;
    REQUIRE(poll(&ready, 1, PATIENCE) == 1);
    REQUIRE(pando_record_receive(lanes[number].mine, packet, sizeof(packet), &record) == 1);
    REQUIRE(record.length >= sizeof(ticket));
    memcpy(&ticket, packet, sizeof(ticket));
    REQUIRE(ticket.slot == slot && ticket.turn == turn);
    if (record.fd_count == 0) {
        printf("gone\n");
        return;
    }
    ssize_t bytes = pread(record.fds[0], data, sizeof(data), 0);
    if (bytes == -1) { /* a socket: the client itself */
        REQUIRE(errno == ESPIPE);
        REQUIRE(send(record.fds[0], "hello", 5, 0) == 5);
        printf("socket");
        print_hex(packet + sizeof(ticket), record.length - sizeof(ticket));
    } else {
        int writable = pwrite(record.fds[0], "x", 1, 0) == 1;
        printf("file %d", writable);
        print_hex(data, (size_t)bytes);
    }
    putchar('\n');
    close(record.fds[0]);
}

static void send_file(uint32_t number, uint32_t slot, uint32_t turn, const char *path)
{
    struct pando_reactor_ticket ticket = {slot, turn};
    int fd = open(path, O_RDONLY);
    REQUIRE(fd != -1);
    REQUIRE(pando_record_send(lanes[number].mine, &ticket, sizeof(ticket), &fd, 1) == 0);
    close(fd);
}

/* --- what the reactor counts --- */

static void stats(void)
{
    const struct pando_stats *counted = &channel.shared->stats;
    uint64_t waits = 0;
#define COUNT(name) printf("%s %llu ", #name, (unsigned long long)pando_stat_get(&counted->name));
    PANDO_STATS_GAUGES(COUNT)
    PANDO_STATS_COUNTERS(COUNT)
    for (unsigned i = 0; i < PANDO_STATS_WAITS; i++) waits += pando_stat_get(&counted->waits[i]);
    printf("waits %llu\n", (unsigned long long)waits);
}

/* --- orders --- */

static char line[1 << 21], text[1 << 21], data[1 << 20];

static void ok(int done)
{
    printf(done ? "ok\n" : "full\n");
}

static int obey(void)
{
    char verb[16];
    unsigned a = 0, b = 0, c = 0;
    unsigned long long d = 0;
    REQUIRE(sscanf(line, "%15s", verb) == 1);
    text[0] = '\0';
    sscanf(line, "%*s %u %u %u %s", &a, &b, &c, text);
    sscanf(line, "%*s %*u %*u %*u %llu", &d);
#define VERB(name) else if (strcmp(verb, name) == 0)
    if (0) {}
    VERB("open") { order(PANDO_REACTOR_LANE_OPEN, a, 0); ok(1); }
    VERB("dead") { order(PANDO_REACTOR_LANE_DEAD, a, b); pando_lane_reset(&channel.shared->lanes[a]); ok(1); }
    VERB("close") { order(PANDO_REACTOR_LANE_CLOSE, a, 0); ok(1); }
    VERB("drain") { order(PANDO_REACTOR_DRAIN, 0, 0); ok(1); }
    VERB("record") { order(a, b, c); ok(1); }
    VERB("listen") { listen_at(a, b); ok(1); }
    VERB("listener") printf("%u\n", channel.shared->slots[a].listener);
    VERB("report") report();
    VERB("hangup") { close(control); control = -1; ok(1); }
    VERB("take") take(a, (int)b);
    VERB("serve") serve(a);
    VERB("data") { size_t n = from_hex(text, data); ok(put(a, PANDO_FRAME_DATA, b, c, 0, data, n, PATIENCE)); }
    VERB("try") { size_t n = from_hex(text, data); ok(put(a, PANDO_FRAME_DATA, b, c, 0, data, n, 200)); }
    VERB("much") ok(much(a, b, c, (size_t)d));
    VERB("interim") { size_t n = from_hex(text, data); ok(put(a, PANDO_FRAME_DATA, b, c, 1, data, n, PATIENCE)); }
    VERB("end") ok(put(a, PANDO_FRAME_END, b, c, d, NULL, 0, PATIENCE));
    VERB("abort") ok(put(a, PANDO_FRAME_ABORT, b, c, 0, NULL, 0, PATIENCE));
    VERB("half") { half(a, b, c); ok(1); }
    VERB("want_file") { put(a, PANDO_FRAME_WANT_FILE, b, c, 0, NULL, 0, PATIENCE); receive(a, b, c); }
    VERB("want_socket") { put(a, PANDO_FRAME_WANT_SOCKET, b, c, 0, NULL, 0, PATIENCE); receive(a, b, c); }
    VERB("ask_socket") ok(put(a, PANDO_FRAME_WANT_SOCKET, b, c, 0, NULL, 0, PATIENCE));
    VERB("receive") receive(a, b, c);
    VERB("flags") printf("%u\n", atomic_load((_Atomic uint32_t *)&channel.shared->slots[b].flags));
    VERB("pass") { send_file(a, b, c, text); ok(1); }
    VERB("file") ok(put(a, PANDO_FRAME_FILE, b, c, d, NULL, 0, PATIENCE));
    VERB("spoil") { atomic_store(&channel.shared->lanes[a].written, 0xfffffff0u); committed(); ok(1); }
    VERB("claim") { atomic_store(&channel.shared->slots[b].claim, (uint64_t)c << 32 | a); ok(1); }
    VERB("asleep") printf("%u\n", atomic_load(&channel.shared->lanes[a].asleep));
    VERB("sleep") printf("%d\n", pando_lane_sleep(&channel, &channel.shared->lanes[a], now()));
    VERB("waiting") printf("%d\n", pando_channel_offers(&channel));
    VERB("wanted") printf("%d\n", pando_channel_holds(&channel, b, c, a));
    VERB("stats") stats();
    VERB("signal") { REQUIRE(kill(reactor, (int)a) == 0); ok(1); }
    VERB("pid") printf("%d\n", (int)reactor);
    VERB("wait") {
        int status;
        REQUIRE(waitpid(reactor, &status, 0) == reactor);
        printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    }
    VERB("start") { start_reactor(); ok(1); }
    VERB("quit") return 0;
    else fail(verb, __LINE__);
    return 1;
}

int main(int count, char **arguments)
{
    signal(SIGPIPE, SIG_IGN);
    REQUIRE(count > 1);
    listener.fd = atoi(arguments[1]);
    for (int i = 2; i < count; i++) {
        char *value = strchr(arguments[i], '=');
        REQUIRE(value != NULL);
        *value = '\0';
        if (strcmp(arguments[i], "stream_paths") == 0)
            configure_paths(value + 1);
        else if (strcmp(arguments[i], "ready_path") == 0)
            config.ready_path = value + 1;
        else if (strcmp(arguments[i], "live_path") == 0)
            config.live_path = value + 1;
        else if (strcmp(arguments[i], "spool_directory") == 0)
            config.spool_directory = value + 1;
        else
            configure(arguments[i], strtoull(value + 1, NULL, 10));
    }
    REQUIRE(pando_channel_create(&channel) == 0);
    wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (int i = 0; i < LANES; i++) {
        int ends[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        lanes[i].mine = ends[0];
        lanes[i].theirs = ends[1];
        lanes[i].wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        pando_lane_reset(&channel.shared->lanes[i]);
    }
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    start_reactor();
    while (fgets(line, sizeof(line), stdin) && obey()) fflush(stdout);
    return 0;
}
