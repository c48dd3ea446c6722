#include "src/ops/exec.h"

#include <string.h>

/* Channels [begin, end) of the tokens of one timeline. */
typedef struct part {
    const qn_exec *x;
    const qn_conv_stage_args *a;
    int32_t first, n_tokens;
    int64_t begin, end;
    float *tail;             /* inputs of the last n_taps - 1 tokens before, oldest first; channel 0 */
} part;

static float *cell(const part *p, const qn_cols *c, int32_t t)
{
    return qn_exec_row(p->x, c->reg, p->first + t) + c->at + p->begin;
}

/* The input of a token, counted from the part's first: those before it are in the tail. */
static const float *input(const part *p, int32_t t)
{
    const int32_t n_before = p->a->n_taps - 1;
    return t >= 0 ? cell(p, &p->a->in, t) : p->tail + (n_before + t) * p->a->n_channels + p->begin;
}

static void multiply(float *x, const float *by, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] *= by[i];
}

static void convolve(const part *p)
{
    const qn_conv_stage_args *a = p->a;
    const int64_t n = p->end - p->begin;
    for (int32_t t = 0; t < p->n_tokens; t++) {
        const float *rows[QN_MAX_TAPS];
        if (a->gated) multiply(cell(p, &a->in, t), cell(p, &a->before, t), n);
        for (int32_t i = 0; i < a->n_taps; i++) rows[i] = input(p, t - a->n_taps + 1 + i);
        float *out = cell(p, &a->out, t);
        p->x->k->conv(&(qn_conv_args){
            .rows = rows,
            .n_taps = a->n_taps,
            .w = a->w + p->begin,
            .w_stride = a->n_channels,
            .bias = a->bias ? a->bias + p->begin : NULL,
            .n = n,
            .silu = a->silu,
            .out = out,
        });
        if (a->gated) multiply(out, cell(p, &a->after, t), n);
    }
}

/* The last inputs become the tail. Ascending: a row that is still needed lies behind the one that is written. */
static void keep_tail(const part *p)
{
    const int32_t n_before = p->a->n_taps - 1;
    for (int32_t i = 0; i < n_before; i++)
        memmove(p->tail + i * p->a->n_channels + p->begin, input(p, p->n_tokens - n_before + i), (size_t)(p->end - p->begin) * sizeof(float));
}

void qn_op_conv(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_conv_stage_args *a = &s->u.conv;
    int64_t begin, end;
    qn_split((a->n_channels + 15) / 16, i_thread, n_threads, &begin, &end);
    begin *= 16;
    end = end * 16 < a->n_channels ? end * 16 : a->n_channels;
    if (begin >= end) return;
    for (int32_t first = 0, n; first < x->batch->n; first += n) {
        n = qn_batch_run(x->batch, first);
        const part p = { x, a, first, n, begin, end, qn_kv_state(x->batch->kv[first], a->i_state) };
        convolve(&p);
        keep_tail(&p);
    }
}
