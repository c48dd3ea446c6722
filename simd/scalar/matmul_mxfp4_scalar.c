/* MXFP4 in panels. File block: | e: u8 | qs[16]: weights i (low), i + 16 (high) |, value 2^(e - 128) * (2 fp4[code]). */
#include "quant/fp4.h"
#include "simd/scalar/lines_scalar.h"

enum { FILE_BYTES = 17 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)((n_cols + 127) / 128) * sizeof(qn_panel_mxfp4);
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_mxfp4 *p = (qn_panel_mxfp4 *)panel;
    qn_line q[4];
    const int64_t n = n_cols / 32;
    if (n % 4 || n_rows < QN_PANEL) memset(panel, 0, panel_bytes(fmt, n_cols));
    for (int64_t b = 0; b < n; b++, rows += FILE_BYTES) {
        for (int64_t r = 0; r < n_rows; r++) p[b / 4].e[b % 4][r] = rows[(size_t)r * row_bytes];
        qn_words_get(rows + 1, row_bytes, n_rows, 4, q);
        qn_block4_put(q, p[b / 4].q[b % 4]);
    }
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_mxfp4 *p = (const qn_panel_mxfp4 *)panel + b / 4;
    for (int32_t i = 0; i < 32; i++) out->q[i] = qn_fp4_doubles[qn_line_code(p->q[b % 4], r, i, 4)];
    out->d[0] = out->d[1] = qn_e8m0_half(p->e[b % 4][r]);
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

void qn_rows_init_mxfp4_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "MXFP4", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
