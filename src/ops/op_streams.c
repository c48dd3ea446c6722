#include "src/ops/exec.h"

#include <math.h>
#include <string.h>

/* A thread's part: columns of all rows while rows are few, else rows. */
typedef struct share {
    int64_t row, end_row, col, n_cols;
} share;

static share share_of(const qn_exec *x, const qn_stage *s, int64_t width, int32_t i_thread, int32_t n_threads)
{
    share p = { 0, qn_exec_n_rows(x, s), 0, width };
    int64_t end = width;
    if (p.end_row > QN_OWN_ROWS) qn_split(p.end_row, i_thread, n_threads, &p.row, &p.end_row);
    else qn_split(width, i_thread, n_threads, &p.col, &end);
    p.n_cols = end - p.col;
    return p;
}

/* Sixteen sums, then halves: one order for all compilers. */
static float dot(const float *a, const float *b, int64_t n)
{
    enum { N = 16 };
    float sum[N] = { 0 };
    int64_t i = 0;
    for (; i + N <= n; i += N)
        for (int j = 0; j < N; j++) sum[j] += a[i + j] * b[i + j];
    for (; i < n; i++) sum[i % N] += a[i] * b[i];
    for (int half = N / 2; half; half /= 2)
        for (int j = 0; j < half; j++) sum[j] += sum[j + half];
    return sum[0];
}

static void add_times(float *out, float c, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] += c * x[i];
}

/* What makes `row` as long as one of this length; what is nothing stays so. */
static float to_length(const float *row, float length, int64_t n)
{
    const float own = sqrtf(dot(row, row, n));
    return own > 0 ? length / own : 0;
}

/* Coefficients of a row: out [n_mixed]. @param normed  [width] of scratch */
static void route(const qn_exec *x, const qn_stream_step *a, const float *row, int32_t n_mixed, float *normed, float *out)
{
    const int32_t n = a->of.n;
    float c[QN_MAX_STREAMS];
    qn_norm_row(x, &a->by.norm, row, a->of.width, normed);
    for (int32_t k = 0; k < n; k++) c[k] = dot(normed, a->by.router + k * a->of.width, a->of.width) / (float)a->of.width;
    x->k->softcap(c, 1, n, c);
    for (int32_t i = 0; i < n_mixed; i++) {
        out[i] = 0;
        for (int32_t k = 0; k < n; k++) out[i] += a->by.mix[i * n + k] * c[k];
    }
}

/* Rows of a token lie in one place before and in another after the outputs' rows have moved: streams are made anew in that layer, predictions stay. */
void qn_op_streams_predict(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_stream_step *a = &s->u.stream_step;
    const int64_t width = a->of.width;
    const int32_t n = a->of.n;
    float m[QN_MAX_STREAMS * QN_MAX_STREAMS];
    const share p = share_of(x, s, width, i_thread, n_threads);
    for (int64_t t = p.row; t < p.end_row; t++) {
        const float *u = qn_exec_row(x, QN_REG_U, (int32_t)t);
        float *f = qn_exec_row(x, QN_REG_F, (int32_t)t);
        route(x, a, u + a->of.i_active * width, n * n, qn_exec_scratch(x, i_thread), m);
        for (int32_t j = 0; j < n; j++) {
            float *out = f + j * width + p.col;
            memcpy(out, u + j * width + p.col, (size_t)p.n_cols * sizeof *out);
            for (int32_t i = 0; i < n; i++) add_times(out, m[j * n + i], u + i * width + p.col, p.n_cols);
        }
        memcpy(qn_exec_row(x, a->of.x, (int32_t)t) + p.col, f + a->of.i_active * width + p.col, (size_t)p.n_cols * sizeof *f);
    }
}

void qn_op_streams_correct(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_stream_step *a = &s->u.stream_step;
    const int64_t width = a->of.width;
    float *y = qn_exec_scratch(x, i_thread), m[QN_MAX_STREAMS];
    const share p = share_of(x, s, width, i_thread, n_threads);
    for (int64_t t = p.row; t < p.end_row; t++) {
        const float *f = qn_exec_row(x, QN_REG_F, qn_exec_token(x, s, (int32_t)t)), *expected = f + a->of.i_active * width;
        float *u = qn_exec_row(x, QN_REG_U, (int32_t)t), *out = qn_exec_row(x, a->in.to, (int32_t)t);
        qn_rows_moved(x, &a->in, (int32_t)t, y);
        route(x, a, y, a->of.n, y + width, m);
        for (int32_t j = 0; j < a->of.n; j++)
            for (int64_t c = p.col; c < p.col + p.n_cols; c++) u[j * width + c] = f[j * width + c] + (1 + m[j]) * (y[c] - expected[c]);
        for (int64_t c = p.col; c < p.col + p.n_cols; c++) out[c] = u[a->of.i_active * width + c] * (a->scale ? a->scale[c] : 1);
    }
}

void qn_op_streams_spread(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_stream_spread *a = &s->u.stream_spread;
    float *row = qn_exec_scratch(x, i_thread);
    const share p = share_of(x, s, a->to.width, i_thread, n_threads);
    for (int64_t t = p.row; t < p.end_row; t++) {
        float *u = qn_exec_row(x, QN_REG_U, (int32_t)t);
        qn_norm_row(x, &a->norm, qn_exec_row(x, QN_REG_T, (int32_t)t), a->to.width, row);
        for (int32_t j = 1; j < a->to.n; j++) add_times(u + j * a->to.width + p.col, 1, row + p.col, p.n_cols);
    }
}

/* In place: a token is a task. */
void qn_op_streams_open(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_streams *a = &s->u.streams;
    int64_t begin, end;
    qn_split(qn_exec_n_rows(x, s), i_thread, n_threads, &begin, &end);
    for (int64_t t = begin; t < end; t++) {
        const float *from = qn_exec_row(x, a->x, (int32_t)t), length = sqrtf(dot(from, from, a->width));
        float *u = qn_exec_row(x, QN_REG_U, (int32_t)t);
        memcpy(u, from, (size_t)a->width * sizeof *u);
        for (int32_t j = 1; j < a->n; j++) x->k->scale(u + j * a->width, to_length(u + j * a->width, length, a->width), a->width, u + j * a->width);
    }
}

void qn_op_streams_close(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_streams *a = &s->u.streams;
    const share p = share_of(x, s, a->width, i_thread, n_threads);
    for (int64_t t = p.row; t < p.end_row; t++) {
        const float *u = qn_exec_row(x, QN_REG_U, (int32_t)t), *f = qn_exec_row(x, QN_REG_F, (int32_t)t), length = sqrtf(dot(u, u, a->width));
        float *out = qn_exec_row(x, a->x, (int32_t)t) + p.col;
        memcpy(out, u + p.col, (size_t)p.n_cols * sizeof *out);
        for (int32_t j = 1; j < a->n; j++) add_times(out, to_length(f + j * a->width, length, a->width), f + j * a->width + p.col, p.n_cols);
        x->k->scale(out, 1.0f / (float)a->n, p.n_cols, out);
    }
}

/* In place: a token is a task. */
void qn_op_augment(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_augment_args *a = &s->u.augment;
    float *row = qn_exec_scratch(x, i_thread);
    int64_t begin, end;
    qn_split(qn_exec_n_rows(x, s), i_thread, n_threads, &begin, &end);
    for (int64_t t = begin; t < end; t++) {
        float *to = qn_exec_row(x, a->x, (int32_t)t);
        qn_norm_row(x, &a->own, to, a->width, row);
        qn_norm_row(x, &a->post, qn_exec_row(x, a->from, (int32_t)t), a->width, row + a->width);
        x->k->add(row, row + a->width, a->width, a->keeps ? row : to);
        if (a->keeps) x->k->add(to, row, a->width, to);
    }
}
