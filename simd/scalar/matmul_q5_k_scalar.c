/* Q5_K in panels. File block of 256: | d, dmin: f16 | scales[12]: 8 x (6-bit sc, 6-bit mn) | qh[32]: bit j of byte i is bit 4 of weight i
 * of sub-block j | qs[128] as in Q4_K |. Value (d * sc) * code - dmin * mn. */
#include "simd/scalar/scalar.h"

#include <string.h>

enum { FILE_BYTES = 176 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)(n_cols / 256) * sizeof(qn_panel_q5_k);
}

static void pack_super(const uint8_t *file, int32_t r, qn_panel_q5_k *p)
{
    const uint8_t *qh = file + 16;
    p->d[r] = qn_load_u16(file);
    p->dmin[r] = qn_load_u16(file + 2);
    for (int32_t j = 0; j < 8; j++) {
        const uint8_t *qs = file + 48 + j / 2 * 32;
        uint8_t code[32], high[32];
        for (int32_t i = 0; i < 32; i++) {
            code[i] = qs[i] >> (j % 2 * 4) & 15;
            high[i] = qh[i] >> j & 1;
        }
        qn_nibbles_put(code, r, p->b[j].q);
        qn_plane1_put(high, r, p->b[j].h);
        qn_scale_min_k4(file + 4, j, &p->sc[j][r], &p->mn[j][r]);
    }
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_q5_k *p = (qn_panel_q5_k *)panel;
    memset(panel, 0, panel_bytes(fmt, n_cols));
    for (int64_t i = 0; i < n_cols / 256; i++)
        for (int32_t r = 0; r < n_rows; r++) pack_super(rows + (size_t)r * row_bytes + (size_t)i * FILE_BYTES, r, p + i);
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_q5_k *p = (const qn_panel_q5_k *)panel + b / 8;
    const int32_t j = (int32_t)(b % 8);
    uint8_t code[32];
    qn_nibbles_get(p->b[j].q, r, code);
    for (int32_t i = 0; i < 32; i++) out->q[i] = (int16_t)(code[i] + 16 * qn_plane1_get(p->b[j].h, r, i));
    out->d[0] = out->d[1] = qn_f32_from_f16(p->d[r]) * (float)p->sc[j][r];
    out->m[0] = out->m[1] = -(qn_f32_from_f16(p->dmin[r]) * (float)p->mn[j][r]);
    out->halves = false;
    out->min = true;
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

void qn_rows_init_q5_k_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "Q5_K", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
