/* Q3_K in panels. File block of 256: | qh[32] | q[64] | s[12] | d: f16 |. Sub-block of 32 b = 4 h + p: bits 2p, 2p + 1 of q[32 h ..], above them
 * bit b of qh. Scale k of 16 weights: nibble k / 8 of s[k % 8], above it bits 2 (k / 4), + 1 of s[8 + k % 4].
 * Value (d * (scale - 32)) * (code - 4). */
#include "simd/scalar/lines_scalar.h"

enum { FILE_BYTES = 110 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)(n_cols / 256) * sizeof(qn_panel_q3_k);
}

static void pack_scales(qn_line *words, qn_panel_q3_k *p)
{
    uint8_t s[12][QN_PANEL];
    qn_bytes_put(words, 3, s);
    for (int32_t b = 0; b < 8; b++) {
        const int32_t k = 2 * b % 8, up = b / 4 * 4;
        for (int32_t r = 0; r < QN_PANEL; r++) p->sl[b][r] = (uint8_t)((s[k][r] >> up & 15) | (s[k + 1][r] >> up & 15) << 4);
    }
    for (int32_t j = 0; j < 4; j++) {
        for (int32_t r = 0; r < QN_PANEL; r++) {
            uint32_t v = 0;
            for (int32_t m = 0; m < 4; m++) v |= (uint32_t)(s[8 + m][r] >> 2 * j & 3) << 2 * m;
            p->sh[j][r] = (uint8_t)v;
        }
    }
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_q3_k *p = (qn_panel_q3_k *)panel;
    qn_line qh[8], q[16], s[3];
    (void)fmt;
    for (int64_t i = 0; i < n_cols / 256; i++, p++, rows += FILE_BYTES) {
        qn_words_get(rows, row_bytes, n_rows, 8, qh);
        qn_words_get(rows + 32, row_bytes, n_rows, 16, q);
        qn_words_get(rows + 96, row_bytes, n_rows, 3, s);
        qn_halves_get(rows + 108, row_bytes, n_rows, p->d);
        memset(p->zero, 0, sizeof p->zero);
        pack_scales(s, p);
        for (int32_t b = 0; b < 8; b++) qn_line3_put(q + b / 4 * 8, b % 4 * 2, qh, b, p->q[b]);
    }
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_q3_k *p = (const qn_panel_q3_k *)panel + b / 8;
    const int32_t j = (int32_t)(b % 8);
    const float d = qn_f32_from_f16(p->d[r]);
    for (int32_t i = 0; i < 32; i++) out->q[i] = (int16_t)(qn_line3_code(p->q[j], r, i) - 4);
    for (int32_t half = 0; half < 2; half++) {
        const int32_t low = p->sl[j][r] >> 4 * half & 15, high = p->sh[j / 2][r] >> (j % 2 * 4 + 2 * half) & 3;
        out->d[half] = d * (float)((low | high << 4) - 32);
    }
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

void qn_rows_init_q3_k_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "Q3_K", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
