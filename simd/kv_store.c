/* One position into its block: codes and scales are made by the format, and laid out here. */
#include "simd/kernels.h"

#include <string.h>

/* Units of n bytes, one position after another in each line of 16. */
static void scatter(const uint8_t *from, int32_t n_units, const size_t n, uint8_t *line)
{
    for (int32_t i = 0; i < n_units; i++, from += n, line += n * QN_KV_BLOCK) memcpy(line, from, n);
}

static size_t scales_bytes(const qn_kv_row *row, int32_t dim)
{
    return row->group ? (size_t)((dim + row->group - 1) / row->group) * QN_KV_BLOCK * sizeof(uint16_t) : 0;
}

static void put_scales(const qn_kv_row *row, const uint16_t *scales, int32_t dim, int32_t slot, uint16_t *out)
{
    for (int32_t g = 0; row->group && g * row->group < dim; g++) out[g * QN_KV_BLOCK + slot] = scales[g];
}

void qn_kv_store_k(const qn_kv_row *row, const float *k, int32_t dim, int32_t slot, void *block)
{
    uint16_t scales[QN_KV_MAX_DIM / QN_ACT_BLOCK];
    uint8_t codes[QN_KV_MAX_DIM * sizeof(float)], *lines = (uint8_t *)block + scales_bytes(row, dim);
    row->encode(k, dim, codes, scales);
    put_scales(row, scales, dim, slot, block);
    switch (row->bits) {
    case 32: scatter(codes, dim, 4, lines + slot * 4); break;
    case 16: scatter(codes, dim, 2, lines + slot * 2); break;
    case 8: scatter(codes, dim, 1, lines + slot); break;
    default: scatter(codes, dim / 2, 1, lines + slot); break;
    }
}

void qn_kv_store_v(const qn_kv_row *row, const float *v, int32_t dim, int32_t slot, void *block)
{
    uint16_t scales[QN_KV_MAX_DIM / QN_ACT_BLOCK];
    uint8_t *lines = (uint8_t *)block + scales_bytes(row, dim);
    row->encode(v, dim, lines + slot * dim * row->bits / 8, scales);
    put_scales(row, scales, dim, slot, block);
}
