/* The hot set without Ruby around it, under the sanitizers: what is found in a child, what the next one gets, what a
 * process has of its own, and what is left alone. */
#include "sys/hot_set.h"
#include "sys/pagemap.h"
#include "sys/maps.h"
#include "sys/present.h"
#include "require.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES (PANDO_PAGEMAP_ENTRIES + 600) /* more than are looked up at once */
#define MUCH (UINT64_C(1) << 40)
#define LONG (UINT64_C(600) * 1000000000)

static char *area;
static const int written[] = { 3, 4, 10, 130, 599, PANDO_PAGEMAP_ENTRIES - 1, PANDO_PAGEMAP_ENTRIES, PAGES - 1 };
#define WRITTEN (sizeof(written) / sizeof(*written))

struct sibling {
    pid_t pid;
    int pagemap, life; /* it ends when that is closed */
};

/* A child that does its work and waits: its pages can be looked at meanwhile. */
static struct sibling start(void (*work)(void))
{
    int ready[2], life[2];
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0 && pipe2(life, O_CLOEXEC) == 0);
    struct sibling sibling = { .pid = fork(), .life = life[1] };
    REQUIRE(sibling.pid != -1);
    char byte = 0;
    if (sibling.pid == 0) {
        close(life[1]);
        work();
        REQUIRE(write(ready[1], &byte, 1) == 1);
        REQUIRE(read(life[0], &byte, 1) == 0);
        _exit(0);
    }
    close(life[0]);
    close(ready[1]);
    REQUIRE(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)sibling.pid);
    sibling.pagemap = open(path, O_RDONLY | O_CLOEXEC);
    REQUIRE(sibling.pagemap != -1);
    return sibling;
}

static void end(struct sibling sibling)
{
    int status;
    close(sibling.life);
    REQUIRE(waitpid(sibling.pid, &status, 0) == sibling.pid);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(sibling.pagemap);
}

static void write_pages(void)
{
    for (size_t i = 0; i < WRITTEN; i++) area[(size_t)written[i] * PAGE] = 2;
}

static void write_nothing(void)
{
}

static bool holds(const struct pando_hot_set *set, const char *address)
{
    for (size_t i = 0; i < pando_hot_set_count(set); i++)
        if (set->pages->ranges[i].from <= (uintptr_t)address && (uintptr_t)address < set->pages->ranges[i].to)
            return true;
    return false;
}

static bool is_empty(const struct pando_hot_set *set)
{
    return pando_hot_set_count(set) == 0 && pando_hot_set_bytes(set) == 0 && set->pages == NULL;
}

static bool was_written(int page)
{
    for (size_t i = 0; i < WRITTEN; i++)
        if (written[i] == page) return true;
    return false;
}

static struct pando_hot_set observed(void)
{
    struct pando_hot_set set = { 0 };
    struct sibling first = start(write_pages);
    REQUIRE(pando_hot_set_observe(&set, first.pagemap, NULL, -1) == 0);
    end(first);
    return set;
}

static void a_set_is_what_a_child_has_written(void)
{
    struct pando_hot_set set = observed();
    uint64_t bytes = 0;
    for (int page = 0; page < PAGES; page++) REQUIRE(holds(&set, area + (size_t)page * PAGE) == was_written(page));
    for (size_t i = 0; i < pando_hot_set_count(&set); i++) {
        const struct pando_range *range = &set.pages->ranges[i];
        REQUIRE(range->from < range->to);
        REQUIRE(i == 0 || range[-1].to < range->from);
        bytes += range->to - range->from;
    }
    REQUIRE(bytes == pando_hot_set_bytes(&set));
    pando_hot_set_clear(&set);
    REQUIRE(is_empty(&set));
    pando_hot_set_clear(&set);
}

static void a_second_look_replaces_the_first(void)
{
    struct pando_hot_set set = observed();
    size_t count = pando_hot_set_count(&set);
    struct sibling idle = start(write_nothing);
    REQUIRE(pando_hot_set_observe(&set, idle.pagemap, NULL, -1) == 0);
    end(idle);
    REQUIRE(pando_hot_set_count(&set) < count);
    for (int page = 0; page < PAGES; page++) REQUIRE(!holds(&set, area + (size_t)page * PAGE));
    pando_hot_set_clear(&set);
}

static void what_cannot_be_read_leaves_it_empty(void)
{
    struct pando_hot_set set = observed();
    REQUIRE(pando_hot_set_observe(&set, -1, NULL, -1) == -1 && errno == EBADF);
    REQUIRE(is_empty(&set));
    struct sibling gone = start(write_pages);
    int pagemap = dup(gone.pagemap);
    end(gone);
    REQUIRE(pando_hot_set_observe(&set, pagemap, NULL, -1) == 0);
    REQUIRE(pando_hot_set_count(&set) == 0);
    close(pagemap);
    pando_hot_set_clear(&set);
}

static long faults(void)
{
    struct rusage usage;
    REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

static struct pando_hot_set set; /* of the next tests; children get it with the fork */

static void populates_all(void)
{
    struct pando_populated done;
    REQUIRE(pando_hot_set_populate(&set, MUCH, LONG, &done) == 0);
    REQUIRE(done.bytes > 0 && done.bytes <= pando_hot_set_bytes(&set) && done.nanoseconds > 0);
    long before = faults();
    write_pages();
    REQUIRE(faults() == before);
    for (int page = 0; page < PAGES; page++) REQUIRE(area[(size_t)page * PAGE] == (was_written(page) ? 2 : 1));
    area[0] = 2;
    REQUIRE(faults() == before + 1);
}

static void keeps_to_its_budget(void)
{
    struct pando_populated done;
    REQUIRE(pando_hot_set_populate(&set, 2 * PAGE + 1, LONG, &done) == 0);
    REQUIRE(done.bytes == 2 * PAGE);
    REQUIRE(pando_hot_set_populate(&set, PAGE - 1, LONG, &done) == 0);
    REQUIRE(done.bytes == 0);
    REQUIRE(pando_hot_set_populate(&set, MUCH, 0, &done) == 0);
    REQUIRE(done.bytes == 0);
}

/* In the place of pages 3, 4, 10 and 130. */
static void leaves_alone_what_is_another_mapping(void)
{
    struct pando_populated done;
    int file = memfd_create("hot set", MFD_CLOEXEC);
    REQUIRE(file != -1 && ftruncate(file, PAGE) == 0);
    REQUIRE(munmap(area + 3 * PAGE, PAGE) == 0);
    REQUIRE(mmap(area + 4 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED);
    REQUIRE(mprotect(area + 10 * PAGE, PAGE, PROT_READ) == 0);
    REQUIRE(mmap(area + 130 * PAGE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    REQUIRE(pando_hot_set_populate(&set, MUCH, LONG, &done) == 0);
    struct stat state;
    REQUIRE(fstat(file, &state) == 0 && state.st_blocks == 0);
    close(file);
    long before = faults();
    area[599 * PAGE] = 2;
    REQUIRE(faults() == before);
    REQUIRE(mprotect(area + 130 * PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
    area[130 * PAGE] = 2;
    REQUIRE(faults() == before + 1);
}

static void in_a_child(void (*work)(void))
{
    end(start(work));
}

#define WRITTEN_NEXT 10  /* of the pages that the next one is given, it writes to this one, ... */
#define NEW_NEXT 20      /* and to this one, which it is not given */

static void is_given_all_and_writes_to_two(void)
{
    struct pando_populated done;
    REQUIRE(pando_hot_set_populate(&set, MUCH, LONG, &done) == 0);
    area[WRITTEN_NEXT * PAGE] = 3;
    area[NEW_NEXT * PAGE] = 3;
}

static int memory_of(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    REQUIRE(memory != -1 || errno == EACCES || errno == EPERM);
    return memory;
}

/* A page that was given and not written to is the child's own, too. */
static void what_it_was_given_is_not_what_it_has_written(void)
{
    struct pando_hot_set seen = { 0 };
    struct sibling next = start(is_given_all_and_writes_to_two);
    int memory = memory_of(next.pid);
    if (memory == -1) return end(next); /* Yama's ptrace_scope is 2 or more */
    REQUIRE(pando_hot_set_observe(&seen, next.pagemap, &set, memory) == 0);
    for (int page = 0; page < PAGES; page++)
        REQUIRE(holds(&seen, area + (size_t)page * PAGE) == (page == WRITTEN_NEXT || page == NEW_NEXT));
    close(memory);
    REQUIRE(pando_hot_set_observe(&seen, next.pagemap, &set, -1) == 0);
    for (int page = 0; page < PAGES; page++)
        REQUIRE(holds(&seen, area + (size_t)page * PAGE) == (page == NEW_NEXT));
    end(next);
    pando_hot_set_clear(&seen);
}

/* As the first worker of a mold, which is forked before that knows its hot set. */
static void sees_what_is_observed_later(void)
{
    struct pando_hot_set later = { 0 };
    REQUIRE(pando_hot_set_share(&later) == 0);
    REQUIRE(pando_hot_set_count(&later) == 0);
    int told[2];
    REQUIRE(pipe2(told, O_CLOEXEC) == 0);
    pid_t early = fork();
    REQUIRE(early != -1);
    char byte = 0;
    if (early == 0) {
        REQUIRE(read(told[0], &byte, 1) == 1);
        for (int page = 0; page < PAGES; page++)
            REQUIRE(holds(&later, area + (size_t)page * PAGE) == was_written(page));
        later.pages->count = SIZE_MAX; /* whatever it writes there, its parent stays within the memory */
        pando_hot_set_clear(&later);
        _exit(0);
    }
    struct sibling first = start(write_pages);
    REQUIRE(pando_hot_set_observe(&later, first.pagemap, NULL, -1) == 0);
    end(first);
    REQUIRE(write(told[1], &byte, 1) == 1);
    int status;
    REQUIRE(waitpid(early, &status, 0) == early && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    struct pando_populated done;
    REQUIRE(pando_hot_set_count(&later) == PANDO_HOT_RANGES && pando_hot_set_populate(&later, MUCH, LONG, &done) == 0);
    close(told[0]);
    close(told[1]);
    pando_hot_set_clear(&later);
}

#define GONE 4 /* a page that the guessing process has no more */

static void guesses_what_is_there(void)
{
    struct pando_hot_set guess = { 0 };
    REQUIRE(madvise(area + GONE * PAGE, PAGE, MADV_DONTNEED) == 0);
    REQUIRE(pando_hot_set_guess(&guess, &set) == 0);
    for (int page = 0; page < PAGES; page++)
        REQUIRE(holds(&guess, area + (size_t)page * PAGE) == (was_written(page) && page != GONE));
    pando_hot_set_clear(&guess);
}

static void may_be_full_of(const struct pando_range *ranges, size_t count)
{
    struct pando_hot_set nonsense = { 0 }, guess = { 0 };
    struct pando_populated done;
    REQUIRE(pando_hot_set_share(&nonsense) == 0);
    for (size_t i = 0; i < PANDO_HOT_RANGES; i++) nonsense.pages->ranges[i] = ranges[i % count];
    nonsense.pages->count = SIZE_MAX;
    REQUIRE(pando_hot_set_guess(&guess, &nonsense) == 0);
    REQUIRE(pando_hot_set_populate(&guess, 8 * PAGE, LONG, &done) == 0 && done.bytes <= 8 * PAGE);
    REQUIRE(pando_hot_set_populate(&nonsense, 8 * PAGE, LONG, &done) == 0 && done.bytes <= 8 * PAGE);
    pando_hot_set_clear(&guess);
    pando_hot_set_clear(&nonsense);
}

/* In memory that others can write to there may be anything. */
static void nonsense_does_no_harm(void)
{
    uintptr_t start = (uintptr_t)area, all = UINTPTR_MAX;
    const struct pando_range ranges[] = { { 1, 0 },         { all, 0 }, { start + 5, start + 6 },
                                          { all - 1, all }, { 0, all } };
    size_t count = sizeof(ranges) / sizeof(*ranges);
    for (size_t i = 0; i < count; i++) may_be_full_of(&ranges[i], 1);
    may_be_full_of(ranges, 3);
    may_be_full_of(ranges, count);
}

static void writes_to_what_is_protected(void)
{
    struct pando_hot_set protected = { 0 };
    REQUIRE(pando_hot_set_share(&protected) == 0);
    pando_hot_set_protect(&protected);
    pid_t writer = fork();
    REQUIRE(writer != -1);
    if (writer == 0) {
        struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL); /* not the sanitizer's */
        protected.pages->count = 0;
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(writer, &status, 0) == writer && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    REQUIRE(pando_hot_set_share(&protected) == 0); /* as when a worker becomes a mold */
    protected.pages->count = 0;
    pando_hot_set_clear(&protected);
}

/* In a child, which shares all pages with this process except for those that it has written to. */
static void hands_down_what_it_has_of_its_own(void)
{
    write_pages();
    REQUIRE(pando_hot_set_observe_own(&set) == 0);
    for (int page = 0; page < PAGES; page++) REQUIRE(holds(&set, area + (size_t)page * PAGE) == was_written(page));
    in_a_child(populates_all);
    pando_hot_set_clear(&set);
}

#define CODE_PAGES 64
#define RUN 0       /* a page of code that has run, ... */
#define RUN_TOO 40  /* another one, too far away to be mapped along with it, ... */
#define NOT_RUN 20  /* and one that is not mapped with either */

static volatile char *code;
static volatile char byte;

static volatile char *data; /* mapped like a library's constants, or like a file of data */

/* As a library is mapped. */
static void map_code(void)
{
    int file = memfd_create("library", MFD_CLOEXEC);
    REQUIRE(file != -1 && ftruncate(file, CODE_PAGES * PAGE) == 0);
    code = mmap(NULL, CODE_PAGES * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    REQUIRE(code != MAP_FAILED);
    data = mmap(NULL, CODE_PAGES * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
    REQUIRE(data != MAP_FAILED);
    close(file);
}

/* The first write to `byte` is a fault of its own. */
static long faults_of_code(void)
{
    byte = 0;
    long before = faults();
    byte = code[RUN * PAGE];
    byte = code[RUN_TOO * PAGE];
    return faults() - before;
}

static void runs_without_a_fault(void)
{
    struct pando_populated done;
    REQUIRE(pando_hot_set_populate(&set, MUCH, LONG, &done) == 0);
    REQUIRE(done.bytes > 0);
    REQUIRE(faults_of_code() == 0);
    long before = faults();
    byte = code[NOT_RUN * PAGE];
    REQUIRE(faults() > before);
}

static void faults_otherwise(void)
{
    REQUIRE(faults_of_code() >= 2); /* a fault may be repeated */
}

/* No longer code in this process. */
static void copies_no_page_that_can_be_written(void)
{
    struct pando_populated done;
    REQUIRE(mprotect((void *)code, CODE_PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
    REQUIRE(pando_hot_set_populate(&set, MUCH, LONG, &done) == 0);
    faults_otherwise();
}

static void the_code_that_has_run(void)
{
    map_code();
    byte = code[RUN * PAGE];
    byte = code[RUN_TOO * PAGE];
    REQUIRE(pando_hot_set_observe_code(&set) == 0);
    REQUIRE(holds(&set, (char *)code + RUN * PAGE) && holds(&set, (char *)code + RUN_TOO * PAGE));
    REQUIRE(!holds(&set, (char *)code + NOT_RUN * PAGE));
    byte = data[0];
    REQUIRE(pando_hot_set_observe_code(&set) == 0);
    REQUIRE(!holds(&set, (char *)data) && !holds(&set, area) && !holds(&set, (char *)&byte));
    in_a_child(faults_otherwise);
    in_a_child(runs_without_a_fault);
    in_a_child(copies_no_page_that_can_be_written);
    pando_hot_set_clear(&set);
}

/* A kernel may have pages of another size: the place of an entry follows from it. */
static void pages_of_another_size(void)
{
    uint64_t entries[PANDO_PAGEMAP_ENTRIES], numbers[] = {0, 10, 20, 30, 40, 50};
    uintptr_t size = pando_page_bytes;
    int file = memfd_create("pagemap", MFD_CLOEXEC);
    REQUIRE(file != -1 && write(file, numbers, sizeof(numbers)) == (ssize_t)sizeof(numbers));
    REQUIRE(size == (uintptr_t)sysconf(_SC_PAGESIZE));
    pando_page_bytes = 65536;
    REQUIRE(pando_pagemap_read(file, entries, 3 * 65536, 5 * 65536) == 2);
    REQUIRE(entries[0] == 30 && entries[1] == 40);
    pando_page_bytes = size;
    close(file);
}

int main(void)
{
    alarm(60);
    pages_of_another_size();
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(area != MAP_FAILED);
    for (size_t page = 0; page < PAGES; page++) area[page * PAGE] = 1;
    a_set_is_what_a_child_has_written();
    a_second_look_replaces_the_first();
    what_cannot_be_read_leaves_it_empty();
    if (!pando_hot_set_supported()) {
        puts("this kernel has no MADV_POPULATE_WRITE");
        return 0;
    }
    set = observed();
    in_a_child(populates_all);
    in_a_child(keeps_to_its_budget);
    in_a_child(leaves_alone_what_is_another_mapping);
    what_it_was_given_is_not_what_it_has_written();
    sees_what_is_observed_later();
    in_a_child(guesses_what_is_there);
    in_a_child(nonsense_does_no_harm);
    in_a_child(writes_to_what_is_protected);
    pando_hot_set_clear(&set);
    in_a_child(hands_down_what_it_has_of_its_own);
    the_code_that_has_run();
    puts("all hold");
    return 0;
}
