/* The check of the programs here and of the fuzz targets. */
#ifndef PANDO_REQUIRE_H
#define PANDO_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

/* Holds in every build, unlike assert. */
#define REQUIRE(condition)                                                                  \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                        \
        }                                                                                   \
    } while (0)

#endif
