/* One reactor and several workers on a channel, the workers dying at any moment:
 *
 *     channel_stress processes|threads WORKERS TURNS [SEED]
 *
 * Processes are killed by SIGKILL wherever they are; threads, for the sanitizers,
 * give up at the steps between which a kill can fall. Every published turn must be
 * taken at most once, and end in exactly one way: answered, withdrawn, or left
 * claimed by a lane whose worker is dead. Nobody may sleep while there is work. */
#include "http/channel.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS_MAX 64
#define IN_FLIGHT 48
#define PATIENCE 5000 /* milliseconds: a wake-up that has not come by then is lost */

#define REQUIRE(condition)                                                                  \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                        \
        }                                                                                   \
    } while (0)

struct shared {
    _Atomic uint64_t lost_wakeups;
    _Atomic uint8_t executed[]; /* by turn */
};

struct worker {
    uint32_t lane;
    int eventfd;
    pid_t pid;
    pthread_t thread;
    _Atomic int over; /* thread: has ended */
    unsigned seed;
};

enum fate { WAITING = 1, ANSWERED, WITHDRAWN, LOST };

static struct pando_channel channel;
static struct shared *shared;
static struct worker workers[WORKERS_MAX];
static int reactor_eventfd, threads;
static unsigned worker_count;
static uint64_t turns;
static _Atomic int stop;

/* The reactor's private memory. */
static struct {
    uint32_t turn;
    uint32_t bytes, answered;
    int busy;
} book[PANDO_CHANNEL_SLOTS];
static uint64_t position[PANDO_CHANNEL_LANES];
static uint8_t *fates;
static uint64_t counts[LOST + 1];
static uint64_t kills;
static unsigned busy, seed;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ULL + (uint64_t)time.tv_nsec;
}

static void ring(int fd)
{
    uint64_t one = 1;
    REQUIRE(write(fd, &one, sizeof one) == sizeof one);
}

/* 0 if nothing came. */
static int wait_for(int fd, int milliseconds)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    uint64_t count;
    if (poll(&poll_fd, 1, milliseconds) <= 0) return 0;
    return read(fd, &count, sizeof count) == sizeof count;
}

/* --- workers --- */

static char pattern(uint32_t turn, uint32_t at)
{
    return (char)(turn * 31 + at * 7);
}

/* Threads only: here a process could be killed. */
static int dies(struct worker *self)
{
    return threads && rand_r(&self->seed) % 20000 == 0;
}

/* 0: the worker is dead. */
static int put(struct worker *self, struct pando_lane *lane, struct pando_frame *frame, struct iovec *parts, int last)
{
    for (;;) {
        int done = last ? pando_lane_put_last(lane, frame, parts, 2, 1) : pando_lane_put(lane, frame, parts, 2);
        REQUIRE(done >= 0);
        if (done && dies(self)) return 0;
        if (done && pando_channel_rouse_reactor(&channel)) ring(reactor_eventfd);
        if (done) return 1;
        if (pando_lane_starve(lane) && !wait_for(self->eventfd, PATIENCE)) atomic_fetch_add(&shared->lost_wakeups, 1);
        pando_lane_fed(lane);
    }
}

static int serve(struct worker *self, struct pando_lane *lane, uint32_t slot_number, uint32_t turn)
{
    struct pando_slot *slot = &channel.shared->slots[slot_number];
    char copy[PANDO_SLOT_BYTES];
    uint32_t bytes = slot->head_bytes;
    REQUIRE(bytes > 0 && bytes <= PANDO_SLOT_BYTES);
    memcpy(copy, slot->data, bytes);
    REQUIRE(pando_channel_holds(&channel, slot_number, turn, self->lane));
    for (uint32_t i = 0; i < bytes; i += 97) REQUIRE(copy[i] == pattern(turn, i));
    REQUIRE(atomic_fetch_add(&shared->executed[turn], 1) == 0);

    /* In two frames, each gathered from two parts. */
    uint32_t first = bytes / 3;
    struct pando_frame frame = {.kind = PANDO_FRAME_DATA, .slot = slot_number, .turn = turn, .bytes = first};
    struct iovec parts[2] = {{copy, first / 2}, {copy + first / 2, first - first / 2}};
    if (dies(self) || !put(self, lane, &frame, parts, 0)) return 0;
    frame.bytes = bytes - first;
    parts[0] = (struct iovec){copy + first, 1 < frame.bytes ? 1 : frame.bytes};
    parts[1] = (struct iovec){copy + first + parts[0].iov_len, frame.bytes - parts[0].iov_len};
    return put(self, lane, &frame, parts, 1);
}

static void work(struct worker *self)
{
    struct pando_lane *lane = &channel.shared->lanes[self->lane];
    pando_lane_reset(lane);
    while (!atomic_load(&stop)) {
        uint32_t turn;
        pando_lane_awake(lane);
        int slot = pando_channel_take(&channel, self->lane, &turn);
        if (slot >= 0 && dies(self)) return;
        if (slot >= 0) {
            if (!serve(self, lane, (uint32_t)slot, turn)) return;
        } else if (pando_lane_sleep(&channel, lane, now())) {
            if (wait_for(self->eventfd, PATIENCE)) continue;
            if (!atomic_load(&stop) && pando_channel_offers(&channel)) atomic_fetch_add(&shared->lost_wakeups, 1);
        }
    }
}

static void *thread_main(void *self)
{
    work(self);
    atomic_store(&((struct worker *)self)->over, 1);
    ring(reactor_eventfd);
    return NULL;
}

static void start(struct worker *worker)
{
    worker->seed = (unsigned)rand_r(&seed);
    if (threads) {
        atomic_store(&worker->over, 0);
        REQUIRE(pthread_create(&worker->thread, NULL, thread_main, worker) == 0);
        return;
    }
    worker->pid = fork();
    REQUIRE(worker->pid >= 0);
    if (worker->pid > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work(worker);
    _exit(0);
}

/* --- the reactor --- */

/* As many sleepers as requests may wait. */
static void rouse_workers(uint32_t wanted)
{
    for (unsigned tries = 0; wanted > 0 && tries < worker_count; tries++) {
        struct worker *worker = &workers[tries];
        if (!pando_lane_rouse(&channel.shared->lanes[worker->lane])) continue;
        ring(worker->eventfd);
        wanted--;
    }
}

static void settle(uint32_t slot, enum fate fate)
{
    uint32_t turn = book[slot].turn;
    REQUIRE(fates[turn] == WAITING);
    fates[turn] = (uint8_t)fate;
    counts[fate]++;
    book[slot].busy = 0;
    busy--;
    if (fate != WITHDRAWN) pando_channel_release(&channel, slot);
}

static void publish(uint32_t slot_number)
{
    struct pando_slot *slot = &channel.shared->slots[slot_number];
    uint32_t turn = (uint32_t)channel.turns ? (uint32_t)channel.turns : 1;
    uint32_t bytes = 1 + (uint32_t)rand_r(&seed) % (rand_r(&seed) % 16 ? 300 : PANDO_SLOT_BYTES);
    slot->head_bytes = bytes;
    for (uint32_t i = 0; i < bytes; i++) slot->data[i] = pattern(turn, i);
    REQUIRE(pando_channel_publish(&channel, slot_number) == turn);
    book[slot_number].turn = turn;
    book[slot_number].bytes = bytes;
    book[slot_number].answered = 0;
    book[slot_number].busy = 1;
    busy++;
    fates[turn] = WAITING;
    rouse_workers(1);
    if (rand_r(&seed) % 50 == 0 && pando_channel_withdraw(&channel, slot_number, turn)) settle(slot_number, WITHDRAWN);
}

static int drain(uint32_t lane_number)
{
    struct pando_lane *lane = &channel.shared->lanes[lane_number];
    struct pando_frame frame;
    const char *payload;
    int frames = 0, verdict;
    while ((verdict = pando_lane_peek(lane, &position[lane_number], &frame, &payload)) == 1) {
        REQUIRE(book[frame.slot].busy && book[frame.slot].turn == frame.turn);
        REQUIRE(pando_channel_claimant(&channel, frame.slot, frame.turn) == lane_number);
        for (uint32_t i = 0; i < frame.bytes; i++)
            REQUIRE(payload[i] == pattern(frame.turn, book[frame.slot].answered + i));
        book[frame.slot].answered += frame.bytes;
        if (frame.kind == PANDO_FRAME_END) {
            REQUIRE(frame.value == 1 && book[frame.slot].answered == book[frame.slot].bytes);
            settle(frame.slot, ANSWERED);
        }
        if (pando_lane_consume(lane, &position[lane_number], &frame)) ring(workers[lane_number].eventfd);
        frames++;
    }
    REQUIRE(verdict == 0);
    return frames;
}

/* Its whole frames are read, what it still holds is lost, its lane begins anew. */
static void bury(struct worker *worker)
{
    drain(worker->lane);
    for (uint32_t slot = 0; slot < IN_FLIGHT; slot++)
        if (book[slot].busy && pando_channel_claimant(&channel, slot, book[slot].turn) == worker->lane)
            settle(slot, LOST);
    kills++;
    start(worker);
    rouse_workers(pando_channel_depth(&channel));
}

static void kill_one(void)
{
    struct worker *worker = &workers[(unsigned)rand_r(&seed) % worker_count];
    int status;
    for (volatile int i = rand_r(&seed) % 20000; i > 0; i--) continue; /* the others go on meanwhile */
    REQUIRE(kill(worker->pid, SIGKILL) == 0);
    REQUIRE(waitpid(worker->pid, &status, 0) == worker->pid);
    REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* else a check of its own failed */
    bury(worker);
}

static void bury_the_dead(void)
{
    for (unsigned i = 0; threads && i < worker_count; i++) {
        if (!atomic_load(&workers[i].over)) continue;
        REQUIRE(pthread_join(workers[i].thread, NULL) == 0);
        bury(&workers[i]);
    }
}

static int read_lanes(void)
{
    int frames = 0;
    for (unsigned i = 0; i < worker_count; i++) frames += drain(workers[i].lane);
    return frames;
}

static void sleep_until_woken(void)
{
    atomic_store(&channel.shared->reactor_asleep, 1);
    if (read_lanes() == 0 && !wait_for(reactor_eventfd, PATIENCE)) atomic_fetch_add(&shared->lost_wakeups, 1);
    atomic_store(&channel.shared->reactor_asleep, 0);
}

static void react(void)
{
    uint64_t next_kill = 200;
    for (;;) {
        for (uint32_t slot = 0; slot < IN_FLIGHT; slot++)
            if (!book[slot].busy && channel.turns <= turns) publish(slot);
        if (busy == 0 && channel.turns > turns) return;
        if (!threads && channel.turns > next_kill) {
            kill_one();
            next_kill = channel.turns + (uint64_t)(rand_r(&seed) % 1500);
        }
        bury_the_dead();
        if (read_lanes() == 0 && busy == IN_FLIGHT) sleep_until_woken();
    }
}

static void end_workers(void)
{
    atomic_store(&stop, 1);
    for (unsigned i = 0; i < worker_count; i++) {
        ring(workers[i].eventfd);
        if (threads) {
            pthread_join(workers[i].thread, NULL);
        } else {
            kill(workers[i].pid, SIGKILL);
            waitpid(workers[i].pid, NULL, 0);
        }
    }
}

static void judge(void)
{
    uint64_t executed = 0, expected = channel.turns - 1;
    for (uint64_t turn = 1; turn < channel.turns; turn++) {
        uint8_t times = atomic_load(&shared->executed[turn]);
        REQUIRE(fates[turn] > WAITING);
        REQUIRE(fates[turn] != ANSWERED || times == 1);
        REQUIRE(fates[turn] != WITHDRAWN || times == 0);
        REQUIRE(times <= 1);
        executed += times;
    }
    REQUIRE(counts[ANSWERED] + counts[WITHDRAWN] + counts[LOST] == expected);
    REQUIRE(atomic_load(&shared->lost_wakeups) == 0);
    printf("%llu turns: %llu answered, %llu withdrawn, %llu lost with %llu dead workers\n",
           (unsigned long long)expected, (unsigned long long)counts[ANSWERED], (unsigned long long)counts[WITHDRAWN],
           (unsigned long long)counts[LOST], (unsigned long long)kills);
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "usage: %s processes|threads WORKERS TURNS [SEED]\n", argv[0]), 2;
    threads = strcmp(argv[1], "threads") == 0;
    worker_count = (unsigned)atoi(argv[2]);
    turns = strtoull(argv[3], NULL, 10);
    seed = argc > 4 ? (unsigned)atoi(argv[4]) : (unsigned)time(NULL);
    REQUIRE(worker_count > 0 && worker_count <= WORKERS_MAX);
    printf("seed %u\n", seed);
    fflush(stdout);

    REQUIRE(pando_channel_create(&channel) == 0);
    pando_channel_new_epoch(&channel);
    fates = calloc(turns + IN_FLIGHT + 2, 1);
    shared = mmap(NULL, sizeof *shared + turns + IN_FLIGHT + 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(fates && shared != MAP_FAILED);
    reactor_eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (unsigned i = 0; i < worker_count; i++) {
        workers[i].lane = i;
        workers[i].eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        start(&workers[i]);
    }
    react();
    end_workers();
    judge();
    free(fates);
    pando_channel_unmap(&channel);
    return 0;
}
