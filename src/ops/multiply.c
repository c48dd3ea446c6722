#include "src/ops/multiply.h"

enum { TILE_FLOATS = 32 * 1024, TILE_MAX_ROWS = 1024 };

int64_t qn_tile_floats(int32_t n_chunk)
{
    const int64_t least = (int64_t)QN_PANEL * n_chunk;
    return least > TILE_FLOATS ? least : TILE_FLOATS;
}

int64_t qn_tile_panels(int32_t n_rows)
{
    const int64_t n = TILE_FLOATS / n_rows / QN_PANEL, most = TILE_MAX_ROWS / QN_PANEL;
    return n < 1 ? 1 : n > most ? most : n; /* with few rows, when extremes are noted, a multiple of QN_RANK_GROUP outputs */
}

int64_t qn_multiply(const qn_exec *x, const qn_weight *w, int32_t part, int64_t begin, int64_t end, const qn_act *act, int32_t n_rows,
                    const float *bias, int32_t i_thread, float *out, int64_t out_stride)
{
    const int64_t first = begin * QN_PANEL, last = end * QN_PANEL < w->n_rows ? end * QN_PANEL : w->n_rows;
    const qn_matmul_args args = {
        .w = w->panels + (size_t)(part * w->n_panels + begin) * w->panel_bytes,
        .panel_bytes = w->panel_bytes,
        .n_panels = end - begin,
        .n_rows = last - first,
        .n_cols = w->n_cols,
        .n_tokens = n_rows,
        .act = *act,
        .out = out,
        .out_stride = out_stride,
        .fmt = w->fmt,
        .scratch = qn_exec_scratch(x, i_thread),
    };
    qn_kernels_matmul(x->k, &x->k->matmul[w->fmt->id], &args);
    if (bias)
        for (int32_t t = 0; t < n_rows; t++) x->k->add(out + t * out_stride, bias + first, args.n_rows, out + t * out_stride);
    return args.n_rows;
}
