/* Q6_K in panels. File block of 256: | ql[128] | qh[64] | sc[16]: i8 | d: f16 |. Half h of 128 weights, quarter j (32 weights), weight i: low bits in
 * ql[64 h + 32 (j % 2) + i], nibble j / 2; high bits in qh[32 h + i], bits 2j, 2j + 1. Value (d * sc) * (code - 32), sc for 16 weights. */
#include "simd/scalar/scalar.h"

#include <string.h>

enum { FILE_BYTES = 210 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)(n_cols / 256) * sizeof(qn_panel_q6_k);
}

static void plane2_put(const uint8_t *high, int32_t r, qn_line *h)
{
    for (int32_t half = 0; half < 2; half++) {
        uint32_t lane = 0;
        for (int32_t i = 0; i < 16; i++) lane |= (uint32_t)high[16 * half + i] << (i / 2 * 2 + i % 2 * 16);
        h[half][r] = lane;
    }
}

static uint32_t plane2_get(const qn_line *h, int32_t r, int32_t i)
{
    return h[i / 16][r] >> (i % 16 / 2 * 2 + i % 2 * 16) & 3;
}

static void pack_super(const uint8_t *file, int32_t r, qn_panel_q6_k *p)
{
    p->d[r] = qn_load_u16(file + 208);
    for (int32_t j = 0; j < 16; j++) p->sc[j][r] = (int8_t)file[192 + j];
    for (int32_t b = 0; b < 8; b++) {
        const int32_t half = b / 4, j = b % 4;
        const uint8_t *ql = file + 64 * half + 32 * (j % 2), *qh = file + 128 + 32 * half;
        uint8_t code[32], high[32];
        for (int32_t i = 0; i < 32; i++) {
            code[i] = ql[i] >> (j / 2 * 4) & 15;
            high[i] = qh[i] >> (2 * j) & 3;
        }
        qn_nibbles_put(code, r, p->b[b].q);
        plane2_put(high, r, p->b[b].h);
    }
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_q6_k *p = (qn_panel_q6_k *)panel;
    memset(panel, 0, panel_bytes(fmt, n_cols));
    for (int64_t i = 0; i < n_cols / 256; i++)
        for (int32_t r = 0; r < n_rows; r++) pack_super(rows + (size_t)r * row_bytes + (size_t)i * FILE_BYTES, r, p + i);
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_q6_k *p = (const qn_panel_q6_k *)panel + b / 8;
    const int32_t j = (int32_t)(b % 8);
    const float d = qn_f32_from_f16(p->d[r]);
    uint8_t code[32];
    qn_nibbles_get(p->b[j].q, r, code);
    for (int32_t i = 0; i < 32; i++) out->q[i] = (int16_t)(code[i] + 16 * plane2_get(p->b[j].h, r, i) - 32);
    out->d[0] = d * (float)p->sc[2 * j][r];
    out->d[1] = d * (float)p->sc[2 * j + 1][r];
    out->halves = true;
    out->min = false;
}

static void unpack_row(const qn_fmt *fmt, const uint8_t *panel, int32_t r, int64_t n_cols, float *out)
{
    (void)fmt;
    qn_unpack_a16_scalar(panel, r, n_cols, out, read_block);
}

static void run(const qn_matmul_args *a)
{
    qn_matmul_a16_scalar(a, read_block);
}

static void run8(const qn_matmul_args *a)
{
    qn_matmul_a8_scalar(a, read_block);
}

void qn_rows_init_q6_k_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "Q6_K", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
