/* Q8_0 in panels. File block: | d: f16 | q[32]: i8 |, value d * q. */
#include "simd/scalar/scalar.h"

#include <string.h>

enum { FILE_BYTES = 34 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)((n_cols + 63) / 64) * sizeof(qn_panel_q8_0);
}

/* Bytes of a lane: k0 k2 k1 k3. */
static void bytes_put(const uint8_t *q, int32_t r, qn_line *line)
{
    for (int32_t g = 0; g < 8; g++, q += 4)
        line[g][r] = (uint32_t)q[0] | (uint32_t)q[2] << 8 | (uint32_t)q[1] << 16 | (uint32_t)q[3] << 24;
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_q8_0 *p = (qn_panel_q8_0 *)panel;
    memset(panel, 0, panel_bytes(fmt, n_cols));
    for (int64_t b = 0; b < n_cols / 32; b++) {
        for (int32_t r = 0; r < n_rows; r++) {
            const uint8_t *file = rows + (size_t)r * row_bytes + (size_t)b * FILE_BYTES;
            p[b / 2].d[b % 2][r] = qn_load_u16(file);
            bytes_put(file + 2, r, p[b / 2].q[b % 2]);
        }
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
