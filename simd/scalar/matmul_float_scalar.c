/* F32, F16 and BF16 in panels: column after column, 16 rows side by side. acc = fma(w, x, acc), columns ascending. */
#include "simd/scalar/lines_scalar.h"

#include <math.h>

static size_t panel_bytes(const qn_fmt *fmt, int64_t n_cols)
{
    return ((size_t)n_cols * QN_PANEL * (size_t)fmt->bytes + 63) / 64 * 64;
}

/* Columns [c, n_cols) one by one. Sizes of 2 and 4 bytes are constants to the compiler. */
static inline void turn(const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t c, int64_t n_cols, size_t size, uint8_t *panel)
{
    for (; c < n_cols; c++)
        for (int64_t r = 0; r < n_rows; r++)
            memcpy(panel + (size_t)(c * QN_PANEL + r) * size, rows + (size_t)r * row_bytes + (size_t)c * size, size);
}

/* A cache line of each row at a time: rows that are a power of two apart share their places in the cache. */
static void pack(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel)
{
    const int64_t n_once = 64 / fmt->bytes, n_whole = n_cols / n_once * n_once;
    if (n_whole < n_cols) memset(panel, 0, panel_bytes(fmt, n_cols));
    for (int64_t c = 0; c < n_whole; c += n_once) {
        const uint8_t *from = rows + (size_t)c * (size_t)fmt->bytes;
        uint8_t *to = panel + (size_t)c * QN_PANEL * (size_t)fmt->bytes;
        qn_line w[16];
        if (fmt->bytes == 4) {
            qn_words_get(from, row_bytes, n_rows, 16, (qn_line *)to);
            continue;
        }
        qn_words_get(from, row_bytes, n_rows, 16, w);
        for (int32_t k = 0; k < 16; k++) qn_halves_put(w[k], ((qn_halves *)to)[2 * k], ((qn_halves *)to)[2 * k + 1]);
    }
    if (fmt->bytes == 2) turn(rows, row_bytes, n_rows, n_whole, n_cols, 2, panel);
    else turn(rows, row_bytes, n_rows, n_whole, n_cols, 4, panel);
}

static void unpack_row(const qn_fmt *fmt, const uint8_t *panel, int32_t r, int64_t n_cols, float *out)
{
    const size_t size = (size_t)fmt->bytes;
    for (int64_t c = 0; c < n_cols; c++) fmt->decode(panel + (size_t)(c * QN_PANEL + r) * size, 1, out + c);
}

static void run(const qn_matmul_args *a)
{
    const size_t size = (size_t)a->fmt->bytes;
    for (int64_t row = 0; row < a->n_rows; row++) {
        const uint8_t *w = a->w + (size_t)(row / QN_PANEL) * a->panel_bytes + (size_t)(row % QN_PANEL) * size;
        for (int32_t t = 0; t < a->n_tokens; t++) a->out[t * a->out_stride + row] = 0;
        for (int64_t c = 0; c < a->n_cols; c++) {
            float v;
            a->fmt->decode(w + (size_t)c * QN_PANEL * size, 1, &v);
            for (int32_t t = 0; t < a->n_tokens; t++) {
                float *acc = &a->out[t * a->out_stride + row];
                *acc = fmaf(v, a->act.x[t * a->act.x_stride + c], *acc);
            }
        }
    }
}

void qn_rows_init_float_scalar(qn_kernels *k)
{
    static const char *const names[] = { "F32", "F16", "BF16" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        qn_row_set_scalar(k, names[i], &(qn_matmul_row){ "scalar", QN_ACT_F32, true, panel_bytes, pack, unpack_row, run, NULL });
}
