/* Q2_K in panels. File block of 256: | s[16]: scale (low), minimum (high) | q[64] | d, dmin: f16 |. Sub-block of 32 b = 4 h + p: bits 2p, 2p + 1
 * of q[32 h ..]. Value (d * scale) * code - dmin * min, scale and min for 16 weights. */
#include "simd/scalar/lines_scalar.h"

enum { FILE_BYTES = 84 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)(n_cols / 256) * sizeof(qn_panel_q2_k);
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_q2_k *p = (qn_panel_q2_k *)panel;
    qn_line s[4], q[16];
    (void)fmt;
    for (int64_t i = 0; i < n_cols / 256; i++, p++, rows += FILE_BYTES) {
        qn_words_get(rows, row_bytes, n_rows, 4, s);
        qn_words_get(rows + 16, row_bytes, n_rows, 16, q);
        qn_halves_get(rows + 80, row_bytes, n_rows, p->d);
        qn_halves_get(rows + 82, row_bytes, n_rows, p->dmin);
        qn_bytes_put(s, 4, p->s);
        for (int32_t b = 0; b < 8; b++)
            for (int32_t half = 0; half < 2; half++) qn_line_put(q + b / 4 * 8 + 4 * half, b % 4 * 2, 2, p->q[b][half]);
    }
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_q2_k *p = (const qn_panel_q2_k *)panel + b / 8;
    const float d = qn_f32_from_f16(p->d[r]), dmin = qn_f32_from_f16(p->dmin[r]);
    for (int32_t i = 0; i < 32; i++) out->q[i] = (int16_t)qn_line_code(p->q[b % 8], r, i, 2);
    for (int32_t half = 0; half < 2; half++) {
        const uint8_t s = p->s[b % 8 * 2 + half][r];
        out->d[half] = d * (float)(s & 15);
        out->m[half] = -(dmin * (float)(s >> 4));
    }
    out->halves = out->min = true;
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

void qn_rows_init_q2_k_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "Q2_K", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
