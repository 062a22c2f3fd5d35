/* What fuzz targets share. A target is a file with LLVMFuzzerTestOneInput: it
 * links with libFuzzer or with driver.c. */
#ifndef PANDO_FUZZ_H
#define PANDO_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../test/c/require.h"

#define FUZZ_MAX_INPUT 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
