/* Every format without kernels of its own: a panel is 16 rows as the file has them, decoded in pieces, each piece once for all tokens.
 * acc = fma(w, x, acc), columns ascending. */
#include "simd/scalar/scalar.h"

#include <math.h>
#include <string.h>

enum { PIECE = 4096 }; /* columns decoded at a time: a multiple of every block, 16 KiB */

static size_t row_bytes_of(const qn_fmt *fmt, int64_t n_cols)
{
    return (size_t)(n_cols / fmt->block) * (size_t)fmt->bytes;
}

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    return (QN_PANEL * row_bytes_of(fmt, n_cols) + 63) / 64 * 64;
}

static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    const size_t n = row_bytes_of(fmt, n_cols);
    memset(panel, 0, panel_bytes(fmt, n_cols));
    for (int64_t r = 0; r < n_rows; r++) memcpy(panel + (size_t)r * n, rows + (size_t)r * row_bytes, n);
}

static void unpack_row(const qn_fmt *fmt, const uint8_t *panel, int32_t r, int64_t n_cols, float *out)
{
    fmt->decode(panel + (size_t)r * row_bytes_of(fmt, n_cols), n_cols / fmt->block, out);
}

static void piece_add(const float *w, int64_t n, const float *x, float *acc)
{
    float sum = *acc;
    for (int64_t i = 0; i < n; i++) sum = fmaf(w[i], x[i], sum);
    *acc = sum;
}

static void run(const qn_matmul_args *a)
{
    const size_t row_bytes = row_bytes_of(a->fmt, a->n_cols);
    for (int64_t row = 0; row < a->n_rows; row++) {
        const uint8_t *w = a->w + (size_t)(row / QN_PANEL) * a->panel_bytes + (size_t)(row % QN_PANEL) * row_bytes;
        for (int32_t t = 0; t < a->n_tokens; t++) a->out[t * a->out_stride + row] = 0;
        for (int64_t c = 0; c < a->n_cols; c += PIECE) {
            const int64_t n = a->n_cols - c < PIECE ? a->n_cols - c : PIECE;
            a->fmt->decode(w + row_bytes_of(a->fmt, c), n / a->fmt->block, a->scratch);
            for (int32_t t = 0; t < a->n_tokens; t++)
                piece_add(a->scratch, n, a->act.x + t * a->act.x_stride + c, &a->out[t * a->out_stride + row]);
        }
    }
}

void qn_rows_init_fallback_scalar(qn_kernels *k)
{
    const qn_matmul_row row = { "scalar", QN_ACT_F32, true, panel_bytes, pack, unpack_row, run, NULL };
    for (int32_t id = 0; id < QN_MAX_FMT_ID; id++) k->matmul[id] = row;
}
