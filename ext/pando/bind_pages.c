/* Binds sys/pages.c. Runs in any process. */
#include "bind_pages.h"
#include "bind_sys.h"

#include "sys/allocator.h"

#include <stdlib.h>

/* From the objspace extension: exported by every Ruby, but in no public header. */
extern void rb_objspace_each_objects(int (*visit)(void *, void *, size_t, void *), void *data);

static struct {
    uintptr_t *pages;
    size_t count, size;
} heap; /* kept from count to count, so that a count allocates nothing */

static int compare(const void *left, const void *right)
{
    uintptr_t one = *(const uintptr_t *)left, other = *(const uintptr_t *)right;
    return one < other ? -1 : one > other;
}

static int add_page(void *from, void *to, size_t stride, void *data)
{
    if (heap.count < heap.size) heap.pages[heap.count] = (uintptr_t)from & ~(uintptr_t)(PANDO_HEAP_PAGE - 1);
    heap.count++;
    return 0;
}

const uintptr_t *pando_heap_pages(size_t *count)
{
    heap.count = 0;
    rb_objspace_each_objects(add_page, NULL);
    if (heap.count > heap.size) {
        size_t size = heap.count * 2;
        uintptr_t *pages = realloc(heap.pages, size * sizeof(*pages));
        if (!pages) rb_memerror();
        heap.pages = pages;
        heap.size = size;
        heap.count = 0;
        rb_objspace_each_objects(add_page, NULL);
    }
    qsort(heap.pages, heap.count, sizeof(*heap.pages), compare);
    *count = 0;
    for (size_t at = 0; at < heap.count; at++)
        if (*count == 0 || heap.pages[*count - 1] != heap.pages[at]) heap.pages[(*count)++] = heap.pages[at];
    return heap.pages;
}

/* Bytes that no other process maps: [Ruby's heap, malloc, compiled code, libraries' data, stack]. */
static VALUE private_memory(VALUE self)
{
    uint64_t bytes[PANDO_USES];
    size_t count;
    const uintptr_t *pages = pando_heap_pages(&count);
    if (pando_pages_count(pages, count, bytes) == -1) rb_sys_fail("/proc/self/pagemap");
    VALUE found = rb_ary_new_capa(PANDO_USES);
    for (int use = 0; use < PANDO_USES; use++) rb_ary_push(found, ULL2NUM(bytes[use]));
    return found;
}

/* Gives malloc's free pages back to the kernel. Does nothing where the C library (or another malloc) does so by
 * itself. */
static VALUE trim_memory(VALUE self)
{
    pando_trim_memory();
    return Qnil;
}

/* nil: malloc is the C library's own. */
static VALUE jemalloc(VALUE self)
{
    const char *version = pando_jemalloc_version();
    return version ? rb_str_new_cstr(version) : Qnil;
}

void pando_init_pages(void)
{
    rb_define_singleton_method(pando_mSys, "private_memory", private_memory, 0);
    rb_define_singleton_method(pando_mSys, "trim_memory", trim_memory, 0);
    rb_define_singleton_method(pando_mSys, "jemalloc", jemalloc, 0);
}
