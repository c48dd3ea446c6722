/* Numbers of models as bytes: float32, little-endian whatever the machine is. */
#ifndef QUERN_CLI_FLOATS_H
#define QUERN_CLI_FLOATS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** @param x  [n]; on a big-endian machine its bytes are turned. @return false: not all could be written */
static inline bool cli_write_floats(FILE *f, float *x, size_t n)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x[i], 4);
        u = __builtin_bswap32(u);
        memcpy(&x[i], &u, 4);
    }
#endif
    return fwrite(x, sizeof *x, n, f) == n;
}

#endif
