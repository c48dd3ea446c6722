/* IQ4_XS in panels. File block of 256: | d: f16 | sh: u16 | sl[4] | qs[128] |. Sub-block b of 32: 16 bytes of qs, weights i (low), i + 16 (high);
 * its scale: nibble b % 2 of sl[b / 2], above it bits 2b, 2b + 1 of sh. Value (d * (scale - 32)) * level[code]. */
#include "quant/iq4_levels.h"
#include "simd/scalar/lines_scalar.h"

enum { FILE_BYTES = 136 };

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    (void)fmt;
    return (size_t)(n_cols / 256) * sizeof(qn_panel_iq4_xs);
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    qn_panel_iq4_xs *p = (qn_panel_iq4_xs *)panel;
    qn_line head[2], q[4];
    (void)fmt;
    for (int64_t i = 0; i < n_cols / 256; i++, p++, rows += FILE_BYTES) {
        qn_words_get(rows, row_bytes, n_rows, 2, head);
        for (int32_t r = 0; r < QN_PANEL; r++) {
            p->d[r] = (uint16_t)head[0][r];
            p->sh[0][r] = (uint8_t)(head[0][r] >> 16);
            p->sh[1][r] = (uint8_t)(head[0][r] >> 24);
        }
        qn_bytes_put(head + 1, 1, p->sl);
        for (int32_t b = 0; b < 8; b++) {
            qn_words_get(rows + 8 + 16 * b, row_bytes, n_rows, 4, q);
            qn_block4_put(q, p->q[b]);
        }
    }
}

static void read_block(const uint8_t *panel, int32_t r, int64_t b, qn_block *out)
{
    const qn_panel_iq4_xs *p = (const qn_panel_iq4_xs *)panel + b / 8;
    const int32_t j = (int32_t)(b % 8), low = p->sl[j / 2][r] >> j % 2 * 4 & 15, high = p->sh[j / 4][r] >> j % 4 * 2 & 3;
    for (int32_t i = 0; i < 32; i++) out->q[i] = qn_iq4_levels[qn_line_code(p->q[j], r, i, 4)];
    out->d[0] = out->d[1] = qn_f32_from_f16(p->d[r]) * (float)((low | high << 4) - 32);
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

void qn_rows_init_iq4_xs_scalar(qn_kernels *k)
{
    qn_row_set_scalar(k, "IQ4_XS", &(qn_matmul_row){ "scalar", QN_ACT_A16, true, panel_bytes, pack, unpack_row, run, run8 });
}
