/* The table of character classes, see chars.h. Pure C, for any process. */
#include "chars.h"

#define T PANDO_HTTP_TOKEN
#define P PANDO_HTTP_PATH
#define Q PANDO_HTTP_QUERY
#define V PANDO_HTTP_VALUE
#define H PANDO_HTTP_HOST
#define X PANDO_HTTP_HEX
#define D PANDO_HTTP_DIGIT
#define EVERYWHERE (T | P | Q | V | H)

const uint8_t pando_http_chars[256] = {
    ['\t'] = V,
    [' '] = V,
    ['!'] = EVERYWHERE,
    ['"'] = V,
    ['#'] = T | V,
    ['$'] = EVERYWHERE,
    ['%'] = T | Q | V,
    ['&'] = EVERYWHERE,
    ['\''] = EVERYWHERE,
    ['('] = P | Q | V | H,
    [')'] = P | Q | V | H,
    ['*'] = EVERYWHERE,
    ['+'] = EVERYWHERE,
    [','] = P | Q | V | H,
    ['-'] = EVERYWHERE,
    ['.'] = EVERYWHERE,
    ['/'] = P | Q | V,
    ['0' ... '9'] = EVERYWHERE | X | D,
    [':'] = P | Q | V,
    [';'] = P | Q | V | H,
    ['<'] = V,
    ['='] = P | Q | V | H,
    ['>'] = V,
    ['?'] = Q | V,
    ['@'] = P | Q | V,
    ['A' ... 'F'] = EVERYWHERE | X,
    ['G' ... 'Z'] = EVERYWHERE,
    ['['] = P | Q | V,
    ['\\'] = Q | V,
    [']'] = P | Q | V,
    ['^'] = T | Q | V,
    ['_'] = EVERYWHERE,
    ['`'] = T | Q | V,
    ['a' ... 'f'] = EVERYWHERE | X,
    ['g' ... 'z'] = EVERYWHERE,
    ['{'] = Q | V,
    ['|'] = T | P | Q | V,
    ['}'] = Q | V,
    ['~'] = EVERYWHERE,
    [0x80 ... 0xff] = V, /* obs-text */
};
