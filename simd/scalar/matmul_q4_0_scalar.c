/* Q4_0 in panels. File block: | d: f16 | qs[16]: weights i (low), i + 16 (high) |, value d * (code - 8). */
#include "simd/scalar/scalar.h"

#include <string.h>

enum { FILE_BYTES = 18 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)((n_cols + 63) / 64) * sizeof(qn_panel_q4_0);
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_q4_0 *p = (qn_panel_q4_0 *)panel;
    memset(panel, 0, panel_bytes(fmt, n_cols));
    for (int64_t b = 0; b < n_cols / 32; b++) {
        for (int32_t r = 0; r < n_rows; r++) {
            const uint8_t *file = rows + (size_t)r * row_bytes + (size_t)b * FILE_BYTES;
            uint8_t code[32];
            qn_codes4(file + 2, code);
            p[b / 2].d[b % 2][r] = qn_load_u16(file);
            qn_nibbles_put(code, r, p[b / 2].q[b % 2]);
        }
    }
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_q4_0 *p = (const qn_panel_q4_0 *)panel + b / 2;
    uint8_t code[32];
    qn_nibbles_get(p->q[b % 2], r, code);
    for (int32_t i = 0; i < 32; i++) out->q[i] = (int16_t)(code[i] - 8);
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

void qn_rows_init_q4_0_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "Q4_0", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
