/* Q6_K in panels. File block of 256: | ql[128] | qh[64] | sc[16]: i8 | d: f16 |. Half h of 128 weights, quarter j (32 weights), weight i: low bits in
 * ql[64 h + 32 (j % 2) + i], nibble j / 2; high bits in qh[32 h + i], bits 2j, 2j + 1. Value (d * sc) * (code - 32), sc for 16 weights. */
#include "simd/scalar/lines_scalar.h"

enum { FILE_BYTES = 210 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)(n_cols / 256) * sizeof(qn_panel_q6_k);
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_q6_k *p = (qn_panel_q6_k *)panel;
    qn_line ql[16], qh[8], sc[4];
    (void)fmt;
    for (int64_t i = 0; i < n_cols / 256; i++, p++, rows += FILE_BYTES) {
        for (int32_t b = 0; b < 8; b++) {
            const int32_t half = b / 4, j = b % 4;
            if (j == 0) {
                qn_words_get(rows + 64 * half, row_bytes, n_rows, 16, ql);
                qn_words_get(rows + 128 + 32 * half, row_bytes, n_rows, 8, qh);
            }
            for (int32_t g = 0; g < 4; g++) qn_line_put(ql + j % 2 * 8 + 2 * g, j / 2 * 4, 4, p->b[b].q[g]);
            for (int32_t g = 0; g < 2; g++) qn_line_put(qh + 4 * g, 2 * j, 2, p->b[b].h[g]);
        }
        qn_words_get(rows + 192, row_bytes, n_rows, 4, sc);
        qn_bytes_put(sc, 4, (uint8_t(*)[QN_PANEL])p->sc);
        qn_halves_get(rows + 208, row_bytes, n_rows, p->d);
        memset(p->zero, 0, sizeof p->zero);
    }
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_q6_k *p = (const qn_panel_q6_k *)panel + b / 8;
    const int32_t j = (int32_t)(b % 8);
    const float d = qn_f32_from_f16(p->d[r]);
    for (int32_t i = 0; i < 32; i++) {
        const uint32_t code = qn_line_code(p->b[j].q, r, i, 4) + 16 * qn_line_code(p->b[j].h, r, i, 2);
        out->q[i] = (int16_t)((int32_t)code - 32);
    }
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
