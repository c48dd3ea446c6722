#include "src/token/charsmap.h"

#include <string.h>

/* The blob, little-endian:
 *    0              4                      4 + n_array
 *    | n_array: u32 | units of the array: u32 | replacements, each with a NUL |
 * A unit of the double array (Darts-clone):
 *    bit 31      | 30 .. 10 | 9           | 8        | 7 .. 0
 *    1: a value in bits 30 .. 0, else base, shifted left by 8 where bit 9 is set | has a value | label                               */
static uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

qn_status qn_charsmap_check(const uint8_t *map, size_t n_bytes, qn_err *err)
{
    if (n_bytes < 4 || load_u32(map) > n_bytes - 4 || load_u32(map) < 4)
        return qn_fail(err, QN_ERR_FORMAT, "tokenizer.ggml.precompiled_charsmap: its array does not fit into its %zu bytes", n_bytes);
    if (n_bytes - 4 > load_u32(map) && map[n_bytes - 1] != 0)
        return qn_fail(err, QN_ERR_FORMAT, "tokenizer.ggml.precompiled_charsmap: the last replacement has no end");
    return QN_OK;
}

static uint32_t base_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

size_t qn_charsmap_longest(const uint8_t *map, size_t n_bytes, qn_str text, qn_str *to)
{
    const size_t n_array = load_u32(map), n_units = n_array / 4;
    const uint8_t *units = map + 4, *strings = units + n_array;
    const size_t n_strings = n_bytes - 4 - n_array;
    size_t best = 0;
    uint32_t at = base_of(load_u32(units));
    for (size_t i = 0; i < text.len; i++) {
        const uint32_t c = (unsigned char)text.ptr[i];
        at ^= c;
        if (c == 0 || at >= n_units) break;
        const uint32_t unit = load_u32(units + 4 * (size_t)at);
        if ((unit & (1u << 31 | 0xff)) != c) break;
        at ^= base_of(unit);
        if (!(unit & 1u << 8)) continue;
        if (at >= n_units) break;
        const uint32_t value = load_u32(units + 4 * (size_t)at) & 0x7fffffff;
        if (value >= n_strings) break;
        best = i + 1;
        *to = (qn_str){ (const char *)strings + value, strlen((const char *)strings + value) }; /* the last byte is NUL: checked */
    }
    return best;
}
