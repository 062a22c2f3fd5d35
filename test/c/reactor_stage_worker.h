/* What the stage plays of a worker: a part of reactor_stage.c, whose variables it uses. */

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

static void committed(void)
{
    uint64_t one = 1;
    if (pando_channel_rouse_reactor(&channel, &rung)) REQUIRE(write(wake_fd, &one, sizeof(one)) == sizeof(one));
}

static int claimed(uint32_t number, uint32_t *turn)
{
    struct pando_lane *lane = lanes[number].shared;
    int slot = lanes[number].slot = pando_lane_claim(lane, lanes[number].last, turn);
    if (slot == -1) return 0;
    lanes[number].last = *turn;
    atomic_store(&lane->taken[slot], now());
    if (lane->slots[slot].epoch == (uint32_t)atomic_load(&channel.shared->epoch)) return 1;
    pando_lane_copied(lane, (uint32_t)slot, *turn); /* another reactor's, which is gone */
    return 0;
}

/* 1: nothing is there yet, and the reactor knows that we wait. */
static int fall_asleep(uint32_t number)
{
    if (!pando_lane_sleep(lanes[number].shared, now())) return 0;
    if (atomic_load(&channel.shared->waiting[0]) > 0) committed();
    return 1;
}

/* Nothing: patience was in vain. */
static int claim(uint32_t number, int patience, uint32_t *turn)
{
    struct pando_lane *lane = lanes[number].shared;
    uint64_t count, deadline = now() + (uint64_t)patience * 1000000u;
    for (;;) {
        pando_lane_awake(lane);
        if (claimed(number, turn)) return 1;
        if (now() >= deadline) return 0;
        if (!fall_asleep(number)) continue;
        struct pollfd ready = {.fd = lanes[number].wake, .events = POLLIN};
        poll(&ready, 1, (int)((deadline - now()) / 1000000u) + 1);
        (void)!read(lanes[number].wake, &count, sizeof(count));
    }
}

static const struct pando_slot *slot_of(uint32_t number)
{
    return &lanes[number].shared->slots[lanes[number].slot];
}

static void take(uint32_t number, int patience)
{
    uint32_t turn;
    if (!claim(number, patience, &turn)) {
        printf("none\n");
        return;
    }
    const struct pando_slot *mine = slot_of(number);
    REQUIRE(mine->turn == turn);
    printf("request %u %u %u %u %u %llu %s", mine->epoch, turn, mine->flags, mine->head_bytes, mine->body_bytes,
           (unsigned long long)mine->file_bytes, mine->remote[0] ? mine->remote : "-");
    print_hex(mine->data, mine->flags & PANDO_SLOT_ALL_IN_FILE ? 0 : mine->head_bytes + mine->body_bytes);
    putchar('\n');
    pando_lane_copied(lanes[number].shared, (uint32_t)lanes[number].slot, turn);
}

static int put(uint32_t number, uint32_t kind, uint32_t epoch, uint32_t turn, uint64_t value, const char *data,
               size_t bytes, int patience)
{
    struct pando_lane *lane = lanes[number].shared;
    struct pando_frame frame = {kind, epoch, turn, (uint32_t)bytes, value};
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
        REQUIRE(claim(number, PATIENCE, &turn));
        const struct pando_slot *mine = slot_of(number);
        uint32_t epoch = mine->epoch, last = mine->flags & PANDO_SLOT_LAST;
        enough = memcmp(mine->data, "GET /enough ", 12) == 0;
        pando_lane_copied(lanes[number].shared, (uint32_t)lanes[number].slot, turn);
        put(number, PANDO_FRAME_DATA, epoch, turn, 0, answer, sizeof(answer) - 1, PATIENCE);
        put(number, PANDO_FRAME_END, epoch, turn, !last, NULL, 0, PATIENCE);
    }
    printf("served %u\n", served);
}

/* Nothing is on the lane, and its worker waits. */
static int is_quiet(struct pando_lane *lane)
{
    return atomic_load(&lane->asleep) && atomic_load(&lane->written) == atomic_load(&lane->consumed);
}

static void set_state(struct pando_lane *lane, uint32_t slot, uint32_t state)
{
    uint64_t word = atomic_load(&lane->offers[slot]);
    uint32_t before = (uint32_t)word;
    int is_free = before == PANDO_OFFER_NONE || before == PANDO_OFFER_COPIED || before == PANDO_OFFER_DAMAGED;
    if (is_free && is_quiet(lane)) atomic_compare_exchange_strong(&lane->offers[slot], &word, word >> 32 << 32 | state);
}

/* A process of its own, until we end: slots that are free have no room at one moment, and have it the next. */
static void flicker(uint32_t number)
{
    pid_t pid = fork();
    REQUIRE(pid != -1);
    if (pid != 0) return;
    struct pando_lane *lane = pando_lane_map(lanes[number].memory); /* a child has no other */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || !lane) _exit(1);
    for (;;) {
        for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++) set_state(lane, slot, PANDO_OFFER_DAMAGED);
        for (uint32_t slot = 0; slot < PANDO_LANE_SLOTS; slot++) set_state(lane, slot, PANDO_OFFER_NONE);
    }
}

/* A frame that was being written when the worker died. */
static void half(uint32_t number, uint32_t epoch, uint32_t turn)
{
    struct pando_lane *lane = lanes[number].shared;
    struct pando_frame frame = {PANDO_FRAME_DATA, epoch, turn, 1000, 0};
    memcpy(lane->ring + atomic_load(&lane->written) % PANDO_LANE_BYTES, &frame, sizeof(frame));
}

static void receive(uint32_t number, uint32_t epoch, uint32_t turn)
{
    static char data[1 << 20], packet[1 << 16];
    struct pando_record record;
    struct pollfd ready = {.fd = lanes[number].mine, .events = POLLIN};
    struct pando_reactor_ticket ticket;
    REQUIRE(poll(&ready, 1, PATIENCE) == 1);
    REQUIRE(pando_record_receive(lanes[number].mine, packet, sizeof(packet), &record) == 1);
    REQUIRE(record.length >= sizeof(ticket));
    memcpy(&ticket, packet, sizeof(ticket));
    REQUIRE(ticket.epoch == epoch && ticket.turn == turn);
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

static void send_file(uint32_t number, uint32_t epoch, uint32_t turn, const char *path)
{
    struct pando_reactor_ticket ticket = {epoch, turn};
    int fd = open(path, O_RDONLY);
    REQUIRE(fd != -1);
    REQUIRE(pando_record_send(lanes[number].mine, &ticket, sizeof(ticket), &fd, 1) == 0);
    close(fd);
}
