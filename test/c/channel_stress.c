/* One reactor and several workers on a channel, the workers dying at any moment:
 *
 *     channel_stress processes|threads WORKERS TURNS [SEED]
 *
 * Processes are killed by SIGKILL wherever they are; threads, for the sanitizers, give up at the steps between which a
 * kill can fall. Every offered turn must be taken at most once, and end in exactly one way: answered, withdrawn, or left
 * claimed on the lane of a worker that is dead. Nobody may sleep while there is an offer for it. */
#include "http/channel.h"
#include "require.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS_MAX 64
#define PATIENCE 5000 /* milliseconds: a wake-up that has not come by then is lost */

struct shared {
    _Atomic uint64_t lost_wakeups;
    _Atomic uint8_t executed[]; /* by turn */
};

struct worker {
    struct pando_lane *lane;
    int memory, eventfd;
    pid_t pid;
    pthread_t thread;
    uint64_t rung;
    uint32_t last;
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

/* The reactor's private memory: of each lane, what is on offer, and what is being answered. */
struct request {
    uint32_t turn; /* 0: none */
    uint32_t bytes, answered;
};
static struct {
    struct request offered[PANDO_LANE_SLOTS], taken;
    uint64_t position;
} book[WORKERS_MAX];
static uint8_t *fates;
static uint64_t counts[LOST + 1];
static uint64_t kills, turn;
static unsigned seed;

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
static int put(struct worker *self, struct pando_frame *frame, struct iovec *parts, int last)
{
    struct pando_lane *lane = self->lane;
    for (;;) {
        int done = last ? pando_lane_put_last(lane, frame, parts, 2, 1) : pando_lane_put(lane, frame, parts, 2);
        REQUIRE(done >= 0);
        if (done && dies(self)) return 0;
        if (done && pando_channel_rouse_reactor(&channel, &self->rung)) ring(reactor_eventfd);
        if (done) return 1;
        if (pando_lane_starve(lane) && !wait_for(self->eventfd, PATIENCE)) atomic_fetch_add(&shared->lost_wakeups, 1);
        pando_lane_fed(lane);
    }
}

static int serve(struct worker *self, uint32_t place, uint32_t turn)
{
    struct pando_slot *slot = &self->lane->slots[place];
    char copy[PANDO_SLOT_BYTES];
    uint32_t bytes = slot->head_bytes, epoch = slot->epoch;
    REQUIRE(slot->turn == turn && bytes > 0 && bytes <= PANDO_SLOT_BYTES);
    memcpy(copy, slot->data, bytes);
    for (uint32_t i = 0; i < bytes; i++) REQUIRE(copy[i] == pattern(turn, i));
    if (dies(self)) return 0;
    pando_lane_copied(self->lane, place, turn);
    atomic_fetch_add(&shared->executed[turn], 1);
    uint32_t first = bytes / 3;
    struct pando_frame frame = {.kind = PANDO_FRAME_DATA, .epoch = epoch, .turn = turn, .bytes = first};
    struct iovec parts[2] = {{copy, first / 2}, {copy + first / 2, first - first / 2}};
    if (dies(self) || !put(self, &frame, parts, 0)) return 0;
    frame.bytes = bytes - first;
    parts[0] = (struct iovec){copy + first, 1 < frame.bytes ? 1 : frame.bytes};
    parts[1] = (struct iovec){copy + first + parts[0].iov_len, frame.bytes - parts[0].iov_len};
    return put(self, &frame, parts, 1);
}

static void work(struct worker *self)
{
    if (!threads) REQUIRE((self->lane = pando_lane_map(self->memory)) && pando_lane_guard(self->lane) == 0);
    while (!atomic_load(&stop)) {
        uint32_t turn;
        pando_lane_awake(self->lane);
        int slot = pando_lane_claim(self->lane, self->last, &turn);
        if (slot != -1) {
            self->last = turn;
            if (dies(self) || !serve(self, (uint32_t)slot, turn)) return;
        } else if (pando_lane_sleep(self->lane, now())) {
            if (pando_channel_rouse_reactor(&channel, &self->rung)) ring(reactor_eventfd);
            if (wait_for(self->eventfd, PATIENCE)) continue;
            if (!atomic_load(&stop) && pando_lane_offers(self->lane)) atomic_fetch_add(&shared->lost_wakeups, 1);
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

/* With a lane that nobody has had before. */
static void start(struct worker *worker)
{
    worker->seed = (unsigned)rand_r(&seed);
    worker->memory = pando_lane_create();
    REQUIRE((worker->lane = pando_lane_map(worker->memory)));
    worker->rung = worker->last = 0;
    book[worker - workers].position = pando_lane_join(worker->lane);
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

static void settle(struct request *request, enum fate fate)
{
    REQUIRE(fates[request->turn] == WAITING);
    fates[request->turn] = (uint8_t)fate;
    counts[fate]++;
    request->turn = 0;
}

static void offer(unsigned number, uint32_t place)
{
    struct pando_lane *lane = workers[number].lane;
    struct pando_slot *slot = &lane->slots[place];
    struct request *request = &book[number].offered[place];
    uint32_t bytes = 1 + (uint32_t)rand_r(&seed) % (rand_r(&seed) % 16 ? 300 : PANDO_SLOT_BYTES);
    *request = (struct request){.turn = (uint32_t)++turn, .bytes = bytes};
    slot->epoch = 1;
    slot->turn = request->turn;
    slot->head_bytes = bytes;
    for (uint32_t i = 0; i < bytes; i++) slot->data[i] = pattern(request->turn, i);
    fates[request->turn] = WAITING;
    pando_lane_offer(lane, place, request->turn);
    if (pando_lane_rouse(lane)) ring(workers[number].eventfd);
    if (rand_r(&seed) % 50 == 0 && pando_lane_withdraw(lane, place, request->turn)) settle(request, WITHDRAWN);
}

static struct request *oldest_claimed(unsigned number)
{
    struct request *first = NULL;
    for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++) {
        struct request *one = &book[number].offered[slot];
        if (one->turn == 0) continue;
        enum pando_offer state = pando_lane_offered(workers[number].lane, slot, one->turn);
        REQUIRE(state == PANDO_OFFER_MADE || state == PANDO_OFFER_CLAIMED || state == PANDO_OFFER_COPIED);
        if (state != PANDO_OFFER_MADE && (!first || one->turn < first->turn)) first = one;
    }
    return first;
}

/* If the end of the one before was read. The worker goes on while we look: a claim that we see may have followed one in
 * a slot that we had looked at before. */
static void look(unsigned number)
{
    if (book[number].taken.turn != 0) return;
    struct request *before, *first = NULL;
    do {
        before = first;
        first = oldest_claimed(number);
    } while (first != before);
    if (!first) return;
    book[number].taken = *first;
    first->turn = 0;
}

static int drain(unsigned number)
{
    struct worker *worker = &workers[number];
    struct pando_frame frame;
    const char *payload;
    int frames = 0, verdict;
    while ((verdict = pando_lane_peek(worker->lane, &book[number].position, &frame, &payload)) == 1) {
        struct request *request = &book[number].taken;
        if (request->turn == 0) look(number);
        REQUIRE(frame.epoch == 1 && request->turn == frame.turn);
        for (uint32_t i = 0; i < frame.bytes; i++) REQUIRE(payload[i] == pattern(frame.turn, request->answered + i));
        request->answered += frame.bytes;
        if (frame.kind == PANDO_FRAME_END) {
            REQUIRE(frame.value == 1 && request->answered == request->bytes);
            settle(request, ANSWERED);
        }
        if (pando_lane_consume(worker->lane, &book[number].position, &frame)) ring(worker->eventfd);
        frames++;
    }
    REQUIRE(verdict == 0);
    return frames;
}

static int read_lanes(void)
{
    int done = 0;
    for (unsigned i = 0; i < worker_count; i++) {
        done += drain(i);
        look(i);
        for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++) {
            if (turn >= turns || book[i].offered[slot].turn || !pando_lane_has_room(workers[i].lane, slot)) continue;
            offer(i, slot);
            done++;
        }
    }
    return done;
}

/* Its whole frames are read; what it holds is lost, what it had not claimed is taken back. */
static void bury(struct worker *worker)
{
    unsigned number = (unsigned)(worker - workers);
    drain(number);
    for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++) {
        struct request *offered = &book[number].offered[slot];
        if (offered->turn && pando_lane_withdraw(worker->lane, slot, offered->turn)) settle(offered, WITHDRAWN);
        if (offered->turn) settle(offered, LOST);
    }
    if (book[number].taken.turn) settle(&book[number].taken, LOST);
    pando_lane_unmap(worker->lane);
    close(worker->memory);
    kills++;
    start(worker);
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

static int busy(void)
{
    int count = 0;
    for (unsigned i = 0; i < worker_count; i++) {
        count += book[i].taken.turn != 0;
        for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++) count += book[i].offered[slot].turn != 0;
    }
    return count;
}

/* Nobody tells that it has claimed something: then there is room for the next, which may wait a little. */
static void sleep_until_woken(void)
{
    pando_channel_sleep(&channel);
    if (read_lanes() == 0 && !wait_for(reactor_eventfd, threads ? PATIENCE : 50) && busy() == 0)
        atomic_fetch_add(&shared->lost_wakeups, 1);
    pando_channel_awake(&channel);
}

static void react(void)
{
    uint64_t next_kill = 200;
    for (;;) {
        if (turn >= turns && busy() == 0) return;
        if (!threads && turn > next_kill) {
            kill_one();
            next_kill = turn + (uint64_t)(rand_r(&seed) % 1500);
        }
        bury_the_dead();
        if (read_lanes() == 0) sleep_until_woken();
    }
}

static void end_workers(void)
{
    atomic_store(&stop, 1);
    for (unsigned i = 0; i < worker_count; i++) {
        ring(workers[i].eventfd);
        if (threads) pthread_join(workers[i].thread, NULL);
        else if (kill(workers[i].pid, SIGKILL) == 0) waitpid(workers[i].pid, NULL, 0);
    }
}

static void judge(void)
{
    for (uint64_t each = 1; each <= turn; each++) {
        uint8_t times = atomic_load(&shared->executed[each]);
        REQUIRE(fates[each] > WAITING);
        REQUIRE(fates[each] != ANSWERED || times == 1);
        REQUIRE(fates[each] != WITHDRAWN || times == 0);
        REQUIRE(times <= 1);
    }
    REQUIRE(counts[ANSWERED] + counts[WITHDRAWN] + counts[LOST] == turn);
    REQUIRE(atomic_load(&shared->lost_wakeups) == 0);
    printf("%llu turns: %llu answered, %llu withdrawn, %llu lost with %llu dead workers\n",
           (unsigned long long)turn, (unsigned long long)counts[ANSWERED], (unsigned long long)counts[WITHDRAWN],
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
    struct pando_channel created;
    REQUIRE(pando_channel_create(&created) == 0 && pando_channel_attach(&channel, created.fd, 1) == 0);
    pando_channel_new_epoch(&channel);
    fates = calloc(turns + 2, 1);
    shared = mmap(NULL, sizeof *shared + turns + 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(fates && shared != MAP_FAILED);
    reactor_eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (unsigned i = 0; i < worker_count; i++) {
        workers[i].eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        start(&workers[i]);
    }
    react();
    end_workers();
    judge();
    free(fates);
    pando_channel_unmap(&channel);
    pando_channel_unmap(&created);
    return 0;
}
