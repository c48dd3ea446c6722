/* Q8_0 in panels. File block: | d: f16 | q[32]: i8 |, value d * q. */
#include "simd/scalar/lines_scalar.h"

enum { FILE_BYTES = 34 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)((n_cols + 63) / 64) * sizeof(qn_panel_q8_0);
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_q8_0 *p = (qn_panel_q8_0 *)panel;
    qn_line w[8];
    const int64_t n = n_cols / 32;
    (void)fmt;
    if (n % 2) memset(p + n / 2, 0, sizeof *p);
    for (int64_t b = 0; b < n; b++, rows += FILE_BYTES) {
        qn_halves_get(rows, row_bytes, n_rows, p[b / 2].d[b % 2]);
        qn_words_get(rows + 2, row_bytes, n_rows, 8, w);
        for (int32_t k = 0; k < 8; k++) qn_word_put(w[k], p[b / 2].q[b % 2][k]);
    }
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_q8_0 *p = (const qn_panel_q8_0 *)panel + b / 2;
    static const int32_t shift[4] = { 0, 16, 8, 24 };
    for (int32_t i = 0; i < 32; i++) out->q[i] = (int8_t)(p->q[b % 2][i / 4][r] >> shift[i % 4] & 255);
    out->d[0] = out->d[1] = qn_f32_from_f16(p->d[b % 2][r]);
    out->halves = out->min = false;
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

void qn_rows_init_q8_0_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "Q8_0", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
