/* The table from addresses to lines, and the count of private pages. */
#include "origins.h"
#include "sys/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FILES 9000 /* more than a table of paths begins with */
#define OBJECTS 300000
#define FIRST UINT64_C(0x7f0000000000)
#define SLOT 40
#define REQUIRE(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

static void fail(const char *condition, int line)
{
    fprintf(stderr, "origins.c:%d: %s\n", line, condition);
    exit(1);
}

static const char *path(int number)
{
    static char text[64];
    int length = snprintf(text, sizeof(text), "/app/file%d.rb", number % FILES);
    const char *kept = pando_origins_intern(text, (size_t)length);
    REQUIRE(kept && kept != text && strcmp(kept, text) == 0);
    return kept;
}

static struct pando_place place_of(int number)
{
    return pando_origins_get(FIRST + (uintptr_t)number * SLOT);
}

static void put(int number, struct pando_place place)
{
    REQUIRE(pando_origins_put(FIRST + (uintptr_t)number * SLOT, place) == 0);
}

static void objects_keep_their_places(void)
{
    for (int number = 0; number < OBJECTS; number++) put(number, (struct pando_place){ path(number), number });
    for (int number = 0; number < OBJECTS; number++) {
        struct pando_place place = place_of(number);
        REQUIRE(place.path == path(number) && place.line == number);
    }
}

static void the_next_object_there_replaces_one(void)
{
    put(7, (struct pando_place){ path(1), 99 });
    REQUIRE(place_of(7).path == path(1) && place_of(7).line == 99);
    put(7, (struct pando_place){ NULL, 0 });
    REQUIRE(!place_of(7).path && place_of(8).path);
    REQUIRE(!pando_origins_get(SLOT).path);
}

static void nothing_is_left_after_clear(void)
{
    pando_origins_clear();
    REQUIRE(!place_of(8).path);
    put(8, (struct pando_place){ path(8), 1 });
    REQUIRE(place_of(8).line == 1);
    REQUIRE(!pando_origins_intern("a\0b", 3));
}

/* 4 MiB that are told to be Ruby's heap, beside a mapping too large to be looked at. */
static void pages_have_their_use(void)
{
    uint64_t before[PANDO_USES], after[PANDO_USES];
    uintptr_t heap[64];
    size_t size = sizeof(heap) / sizeof(*heap) * PANDO_HEAP_PAGE;
    char *memory = mmap(NULL, size * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *vast = mmap(NULL, (size_t)1 << 41, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    uintptr_t start = ((uintptr_t)memory + PANDO_HEAP_PAGE - 1) & ~(uintptr_t)(PANDO_HEAP_PAGE - 1);
    for (size_t at = 0; at < sizeof(heap) / sizeof(*heap); at++) heap[at] = start + at * PANDO_HEAP_PAGE;

    REQUIRE(pando_pages_count(heap, sizeof(heap) / sizeof(*heap), before) == 0);
    memset((void *)start, 1, size);
    REQUIRE(pando_pages_count(heap, sizeof(heap) / sizeof(*heap), after) == 0);
    REQUIRE(before[PANDO_USE_RUBY_HEAP] == 0 && after[PANDO_USE_RUBY_HEAP] == size);
    REQUIRE(after[PANDO_USE_STACK] > 0);
    if (vast != MAP_FAILED) munmap(vast, (size_t)1 << 41);
}

int main(void)
{
    objects_keep_their_places();
    the_next_object_there_replaces_one();
    nothing_is_left_after_clear();
    pages_have_their_use();
    return 0;
}
