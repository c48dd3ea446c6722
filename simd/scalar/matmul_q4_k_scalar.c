/* Q4_K in panels. File block of 256: | d, dmin: f16 | scales[12]: 8 x (6-bit sc, 6-bit mn) | qs[128] |. 32 bytes of qs hold sub-blocks
 * 2c (low) and 2c + 1 (high). Value (d * sc) * code - dmin * mn. */
#include "simd/scalar/lines_scalar.h"

enum { FILE_BYTES = 144 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)(n_cols / 256) * sizeof(qn_panel_q4_k);
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_q4_k *p = (qn_panel_q4_k *)panel;
    qn_line head[4], q[8];
    (void)fmt;
    for (int64_t i = 0; i < n_cols / 256; i++, p++, rows += FILE_BYTES) {
        qn_words_get(rows, row_bytes, n_rows, 4, head);
        qn_halves_put(head[0], p->d, p->dmin);
        qn_scales_k_put(head + 1, p->sc, p->mn);
        for (int32_t c = 0; c < 4; c++) {
            qn_words_get(rows + 16 + 32 * c, row_bytes, n_rows, 8, q);
            for (int32_t g = 0; g < 4; g++) {
                qn_line_put(q + 2 * g, 0, 4, p->q[2 * c][g]);
                qn_line_put(q + 2 * g, 4, 4, p->q[2 * c + 1][g]);
            }
        }
    }
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_q4_k *p = (const qn_panel_q4_k *)panel + b / 8;
    const int32_t j = (int32_t)(b % 8);
    for (int32_t i = 0; i < 32; i++) out->q[i] = (int16_t)qn_line_code(p->q[j], r, i, 4);
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

void qn_rows_init_q4_k_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "Q4_K", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
