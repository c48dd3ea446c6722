/* Q5_1 in panels. File block: | d: f16 | m: f16 | qh: bit i is bit 4 of weight i | qs[16]: weights i (low), i + 16 (high) |, value d * code + m. */
#include "simd/scalar/lines_scalar.h"

enum { FILE_BYTES = 24 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)(n_cols / 32) * sizeof(qn_panel_q5_1);
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_q5_1 *p = (qn_panel_q5_1 *)panel;
    qn_line w[6];
    (void)fmt;
    for (int64_t b = 0; b < n_cols / 32; b++, p++, rows += FILE_BYTES) {
        qn_words_get(rows, row_bytes, n_rows, 6, w);
        qn_halves_put(w[0], p->d, p->m);
        qn_bits_put(w[1], p->h);
        qn_block4_put(w + 2, p->q);
    }
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_q5_1 *p = (const qn_panel_q5_1 *)panel + b;
    for (int32_t i = 0; i < 32; i++) out->q[i] = (int16_t)(qn_line_code(p->q, r, i, 4) + 16 * qn_line_code(&p->h, r, i, 1));
    out->d[0] = out->d[1] = qn_f32_from_f16(p->d[r]);
    out->m[0] = out->m[1] = qn_f32_from_f16(p->m[r]);
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

void qn_rows_init_q5_1_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "Q5_1", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
