/* IQ4_NL in panels. File block: | d: f16 | qs[16]: weights i (low), i + 16 (high) |, value d * level[code]. */
#include "quant/iq4_levels.h"
#include "simd/scalar/lines_scalar.h"

enum { FILE_BYTES = 18 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)((n_cols + 63) / 64) * sizeof(qn_panel_iq4_nl);
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_iq4_nl *p = (qn_panel_iq4_nl *)panel;
    qn_line q[4];
    const int64_t n = n_cols / 32;
    (void)fmt;
    if (n % 2) memset(p + n / 2, 0, sizeof *p);
    for (int64_t b = 0; b < n; b++, rows += FILE_BYTES) {
        qn_halves_get(rows, row_bytes, n_rows, p[b / 2].d[b % 2]);
        qn_words_get(rows + 2, row_bytes, n_rows, 4, q);
        qn_block4_put(q, p[b / 2].q[b % 2]);
    }
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_iq4_nl *p = (const qn_panel_iq4_nl *)panel + b / 2;
    for (int32_t i = 0; i < 32; i++) out->q[i] = qn_iq4_levels[qn_line_code(p->q[b % 2], r, i, 4)];
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

void qn_rows_init_iq4_nl_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "IQ4_NL", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
