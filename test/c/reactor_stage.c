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
#include <sys/prctl.h>
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
    int wake, mine, theirs, memory;
    struct pando_lane *shared;
    uint32_t last; /* turn that was claimed */
    int slot;      /* of it */
    uint32_t slot_number, generation; /* of the worker */
} lanes[LANES];
static uint64_t rung;

static struct pando_reactor_config config = {
    .listeners = &listener, .listener_count = 1,
    .max_header_bytes = 65536, .max_target_bytes = 8192, .max_headers = 100,
    .max_body_bytes = PANDO_REACTOR_NO_LIMIT, .body_memory = 114688,
    .response_memory = 262144, .response_total = 64 << 20, .spool_total = 1 << 30,
    .buffer_memory = 512 << 20,
    .header_timeout = 30000, .body_timeout = 30000, .idle_timeout = 30000, .write_timeout = 30000, .grace = 2000,
    .queue_timeout = {30000, 30000}, .max_connections = 1000, .pools = 1, .max_queue = {1000, 1000}, .retry_after = 7, .retry = 1,
};

static void configure(const char *name, uint64_t value)
{
#define NUMBER(member) if (strcmp(name, #member) == 0) { config.member = value; return; }
    NUMBER(max_header_bytes) NUMBER(max_target_bytes) NUMBER(max_headers) NUMBER(max_body_bytes) NUMBER(body_memory)
    NUMBER(header_timeout) NUMBER(body_timeout) NUMBER(idle_timeout) NUMBER(write_timeout)
    NUMBER(max_connections) NUMBER(pools) NUMBER(max_requests) NUMBER(retry)
    NUMBER(response_memory) NUMBER(response_total) NUMBER(spool_total)
    NUMBER(buffer_memory) NUMBER(spool_in_memory)
    NUMBER(retry_after) NUMBER(max_per_address) NUMBER(monitor_silence)
    if (strcmp(name, "queue_timeout") == 0) { config.queue_timeout[0] = config.queue_timeout[1] = value; return; }
    if (strcmp(name, "last_queue_timeout") == 0) { config.queue_timeout[1] = value; return; }
    if (strcmp(name, "max_queue") == 0) { config.max_queue[0] = config.max_queue[1] = value; return; }
    if (strcmp(name, "log_format") == 0) { config.access_log.format = value; return; }
    if (strcmp(name, "log_sample") == 0) { config.access_log.sample = value; return; }
    if (strcmp(name, "proxy_protocol") == 0) { listener.flags = value ? PANDO_LISTENER_PROXIED : 0; return; }
    if (strcmp(name, "held") == 0) { listener.flags = value ? PANDO_LISTENER_HELD : 0; return; }
    REQUIRE(!"unknown setting");
}

/* Paths with commas between them; those of pools have its number in front. */
static void configure_paths(const char **place, const char *list)
{
    char *paths = calloc(1, strlen(list) + 2);
    REQUIRE(paths);
    strcpy(paths, list);
    for (char *comma = paths; (comma = strchr(comma, ',')); comma++) *comma = '\0';
    *place = paths;
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
            close(lanes[i].memory);
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

static void order_for(uint32_t kind, uint32_t lane, uint32_t cause, uint32_t pool)
{
    struct pando_reactor_record record = {.kind = kind, .lane = lane, .cause = cause, .pool = pool};
    int opens = kind == PANDO_REACTOR_LANE_OPEN;
    if (opens) record.slot = lanes[lane].slot_number, record.generation = lanes[lane].generation;
    int fds[3] = {-1, -1, -1};
    if (opens) memcpy(fds, (int[]){lanes[lane].wake, lanes[lane].theirs, lanes[lane].memory}, sizeof(fds));
    REQUIRE(pando_record_send(control, &record, sizeof(record), fds, opens ? 3 : 0) == 0);
}

static void order(uint32_t kind, uint32_t lane, uint32_t cause)
{
    order_for(kind, lane, cause, 0);
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

#include "reactor_stage_worker.h"

/* --- what the reactor counts --- */

static void stats(void)
{
    const struct pando_stats *counted = &channel.shared->stats;
    uint64_t waits = 0;
#define COUNT(name) printf("%s %llu ", #name, (unsigned long long)pando_stat_get(&counted->name));
    PANDO_STATS_GAUGES(COUNT)
    PANDO_STATS_COUNTERS(COUNT)
#define SUM(name) \
    do { \
        unsigned long long sum = 0; \
        for (unsigned i = 0; i < PANDO_REACTOR_POOLS; i++) sum += pando_stat_get(&counted->pools[i].name); \
        printf("%s %llu ", #name, sum); \
    } while (0);
    PANDO_STATS_POOL_GAUGES(SUM)
    PANDO_STATS_POOL_COUNTERS(SUM)
    uint64_t answers = 0, durations = 0, queue_nanoseconds = 0, nanoseconds = 0;
    for (unsigned i = 0; i < PANDO_REACTOR_POOLS; i++) {
        const struct pando_pool_stats *pool = &counted->pools[i];
        for (unsigned k = 0; k < PANDO_HISTOGRAM_BUCKETS; k++) {
            waits += pando_stat_get(&pool->queue.counts[k]);
            durations += pando_stat_get(&pool->duration.counts[k]);
        }
        queue_nanoseconds += pando_stat_get(&pool->queue.nanoseconds);
        nanoseconds += pando_stat_get(&pool->duration.nanoseconds);
        for (unsigned k = 0; k < PANDO_METHODS * PANDO_STATS_CLASSES; k++)
            answers += pando_stat_get(&pool->answers[0][0] + k);
    }
    printf("waits %llu queue_nanoseconds %llu durations %llu nanoseconds %llu answers %llu\n",
           (unsigned long long)waits, (unsigned long long)queue_nanoseconds, (unsigned long long)durations,
           (unsigned long long)nanoseconds, (unsigned long long)answers);
}

/* Those of pool `pool` to requests with the method, by class of status. */
static void answers(unsigned pool, unsigned method)
{
    REQUIRE(pool < PANDO_REACTOR_POOLS && method < PANDO_METHODS);
    for (unsigned k = 0; k < PANDO_STATS_CLASSES; k++)
        printf("%llu ", (unsigned long long)pando_stat_get(&channel.shared->stats.pools[pool].answers[method][k]));
    printf("\n");
}

/* --- orders --- */

/* As the monitor has them for each new worker. */
static void new_memory(uint32_t number)
{
    if (lanes[number].shared) {
        pando_lane_unmap(lanes[number].shared);
        close(lanes[number].memory);
    }
    lanes[number].memory = pando_lane_create();
    lanes[number].shared = pando_lane_map(lanes[number].memory);
    lanes[number].last = 0;
    REQUIRE(lanes[number].shared && pando_lane_guard(lanes[number].shared) == 0);
}

static int wanted(uint32_t number, uint32_t epoch, uint32_t turn)
{
    return (uint32_t)atomic_load(&channel.shared->epoch) == epoch && atomic_load(&lanes[number].shared->gone) != turn;
}

/* So many of the worker's threads have or want the interpreter lock. */
static void lock_users(uint32_t first, uint32_t count)
{
    atomic_store(&lanes[first].shared->lock_users, PANDO_LANE_LOCK | count);
    if (count == 0 && atomic_load(&channel.shared->waiting[0]) > 0) committed();
}

static int waiting(void)
{
    int offered = 0;
    for (int i = 0; i < LANES; i++) offered |= pando_lane_offers(lanes[i].shared);
    return offered || atomic_load(&channel.shared->waiting[0]) > 0;
}

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
    VERB("open") { order_for(PANDO_REACTOR_LANE_OPEN, a, a, b); ok(1); } /* of pool b */
    VERB("join") { order(PANDO_REACTOR_LANE_OPEN, a, b); ok(1); } /* of the worker whose first lane is b */
    VERB("dead") { order(PANDO_REACTOR_LANE_DEAD, a, b); new_memory(a); ok(1); }
    VERB("close") { order(PANDO_REACTOR_LANE_CLOSE, a, 0); ok(1); }
    VERB("drain") { order(PANDO_REACTOR_DRAIN, 0, 0); ok(1); }
    VERB("record") { order(a, b, c); ok(1); }
    VERB("listen") { listen_at(a, b); ok(1); }
    VERB("listener") printf("%u\n", slot_of(a)->listener);
    VERB("report") report();
    VERB("hangup") { close(control); control = -1; ok(1); }
    VERB("take") take(a, (int)b);
    VERB("serve") serve(a);
    VERB("data") { size_t n = from_hex(text, data); ok(put(a, PANDO_FRAME_DATA, b, c, 0, data, n, PATIENCE)); }
    VERB("try") { size_t n = from_hex(text, data); ok(put(a, PANDO_FRAME_DATA, b, c, 0, data, n, 200)); }
    VERB("much") ok(much(a, b, c, (size_t)d));
    VERB("interim") { size_t n = from_hex(text, data); ok(put(a, PANDO_FRAME_DATA, b, c, 1, data, n, PATIENCE)); }
    VERB("end") ok(put(a, PANDO_FRAME_END, b, c, d, NULL, 0, PATIENCE));
    VERB("abort") ok(put(a, PANDO_FRAME_ABORT, b, c, d, NULL, 0, PATIENCE));
    VERB("cut") { atomic_store(&lanes[a].shared->cut, c); ok(1); }
    VERB("half") { half(a, b, c); ok(1); }
    VERB("want_file") { put(a, PANDO_FRAME_WANT_FILE, b, c, 0, NULL, 0, PATIENCE); receive(a, b, c); }
    VERB("want_socket") { put(a, PANDO_FRAME_WANT_SOCKET, b, c, 0, NULL, 0, PATIENCE); receive(a, b, c); }
    VERB("ask_socket") ok(put(a, PANDO_FRAME_WANT_SOCKET, b, c, 0, NULL, 0, PATIENCE));
    VERB("receive") receive(a, b, c);
    VERB("half_closed") printf("%d\n", pando_lane_half_closed(lanes[a].shared, (uint32_t)lanes[a].slot, c));
    VERB("pass") { send_file(a, b, c, text); ok(1); }
    VERB("file") ok(put(a, PANDO_FRAME_FILE, b, c, d, NULL, 0, PATIENCE));
    VERB("spoil") { atomic_store(&lanes[a].shared->written, 0xfffffff0u); committed(); ok(1); }
    VERB("word") { atomic_store(&lanes[a].shared->offers[0], (uint64_t)c << 32 | b); ok(1); }
    VERB("word?") printf("%u\n", (uint32_t)atomic_load(&lanes[a].shared->offers[0]));
    VERB("flicker") { flicker(a); ok(1); }
    VERB("closed") { pando_lane_close(lanes[a].shared); committed(); ok(1); }
    VERB("seems_asleep") { atomic_store(&lanes[a].shared->asleep, b); ok(1); }
    VERB("offered") printf("%d\n", pando_lane_offers(lanes[a].shared));
    VERB("data?") {
        for (int i = 0; i < (int)PANDO_LANE_SLOTS; i++) print_hex(lanes[a].shared->slots[i].data, 64);
        putchar('\n');
    }
    VERB("lock") { lock_users(a, b); ok(1); }
    VERB("asleep") printf("%u\n", atomic_load(&lanes[a].shared->asleep));
    VERB("sleep") printf("%d\n", fall_asleep(a));
    VERB("step_back") { pando_lane_step_back(lanes[a].shared, now()); ok(1); }
    VERB("waiting") printf("%d\n", waiting());
    VERB("wanted") printf("%d\n", wanted(a, b, c));
    VERB("stats") stats();
    VERB("answers") answers(a, b);
    VERB("name") { lanes[a].slot_number = b; lanes[a].generation = c; ok(1); }
    VERB("reopen") { order(PANDO_REACTOR_REOPEN_LOG, 0, 0); ok(1); }
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
            configure_paths(&config.stream_paths, value + 1);
        else if (strcmp(arguments[i], "pool_paths") == 0)
            configure_paths(&config.pool_paths, value + 1);
        else if (strcmp(arguments[i], "ready_path") == 0)
            config.ready_path = value + 1;
        else if (strcmp(arguments[i], "live_path") == 0)
            config.live_path = value + 1;
        else if (strcmp(arguments[i], "spool_directory") == 0)
            config.spool_directory = value + 1;
        else if (strcmp(arguments[i], "access_log") == 0)
            config.access_log.path = value + 1;
        else if (strcmp(arguments[i], "pool_names") == 0)
            configure_paths(&config.access_log.pool_names, value + 1);
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
        new_memory((uint32_t)i);
    }
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    start_reactor();
    while (fgets(line, sizeof(line), stdin) && obey()) fflush(stdout);
    return 0;
}
