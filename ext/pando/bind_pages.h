/* The pages of Ruby's heap. For any process. */
#ifndef PANDO_BIND_PAGES_H
#define PANDO_BIND_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "sys/pages.h"

/* Their addresses, each once, ascending; valid until the next call. Raises NoMemoryError. */
const uintptr_t *pando_heap_pages(size_t *count);

#endif
