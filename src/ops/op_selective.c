#include "src/ops/exec.h"

enum { PIECE = 32 }; /* tokens that are taken at a time: their B and C lie in the scratch, normed */

/* Channels [begin, end) over the tokens [first, first + n) of a timeline. */
typedef struct part {
    const qn_exec *x;
    const qn_selective_stage_args *a;
    int32_t first, n;
    int64_t begin, end;
    float *scratch;
    float *state;            /* of channel begin                                             */
} part;

static float *cell(const part *p, const qn_cols *c, int32_t t)
{
    return qn_exec_row(p->x, c->reg, p->first + t) + c->at;
}

/* Every thread norms B and C for itself: they are short. */
static void find_bc(const part *p, qn_selective_args *args)
{
    const qn_selective_stage_args *a = p->a;
    args->b = cell(p, &a->b, 0);
    args->c = cell(p, &a->c, 0);
    args->bc_stride = p->x->stride[a->b.reg];
    if (!a->b_norm.kind) return;
    for (int32_t t = 0; t < p->n; t++) {
        float *normed = p->scratch + (int64_t)2 * t * a->d_state;
        qn_norm_row(p->x, &a->b_norm, cell(p, &a->b, t), a->d_state, normed);
        qn_norm_row(p->x, &a->c_norm, cell(p, &a->c, t), a->d_state, normed + a->d_state);
    }
    args->b = p->scratch;
    args->c = p->scratch + a->d_state;
    args->bc_stride = 2 * (int64_t)a->d_state;
}

static void run_part(const part *p)
{
    const qn_selective_stage_args *a = p->a;
    const qn_kernels *k = p->x->k;
    const int64_t n = p->end - p->begin;
    qn_selective_args args = {
        .state = p->state,
        .n = n,
        .d_state = a->d_state,
        .n_tokens = p->n,
        .a = a->a + p->begin,
        .a_stride = a->n_channels,
        .x = cell(p, &a->x, 0) + p->begin,
        .dt = cell(p, &a->dt, 0) + p->begin,
        .x_stride = p->x->stride[a->x.reg],
        .dt_stride = p->x->stride[a->dt.reg],
        .out = cell(p, &a->out, 0) + p->begin,
        .out_stride = p->x->stride[a->out.reg],
    };
    for (int32_t t = 0; t < p->n; t++) k->softplus(cell(p, &a->dt, t) + p->begin, n, cell(p, &a->dt, t) + p->begin);
    find_bc(p, &args);
    k->selective(&args);
    for (int32_t t = 0; t < p->n; t++) {
        float *out = cell(p, &a->out, t) + p->begin;
        const float *x = cell(p, &a->x, t) + p->begin;
        for (int64_t i = 0; i < n; i++) out[i] += a->skip[p->begin + i] * x[i];
        k->swiglu(cell(p, &a->gate, t) + p->begin, out, n, out);
    }
}

void qn_op_selective(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_selective_stage_args *a = &s->u.selective;
    const int64_t fit = x->scratch_stride / (2 * (int64_t)a->d_state);
    const int32_t piece = fit < PIECE ? (int32_t)fit : PIECE;
    int64_t begin, end;
    qn_split((a->n_channels + 15) / 16, i_thread, n_threads, &begin, &end);
    begin *= 16;
    end = end * 16 < a->n_channels ? end * 16 : a->n_channels;
    if (begin >= end) return;
    for (int32_t first = 0, n; first < x->batch->n; first += n) {
        n = qn_batch_run(x->batch, first);
        float *state = qn_kv_state(x->batch->kv[first], a->i_state) + a->state_at + begin * a->d_state;
        for (int32_t at = 0; at < n; at += piece)
            run_part(&(part){ x, a, first + at, n - at < piece ? n - at : piece, begin, end, qn_exec_scratch(x, i_thread), state });
    }
}

void qn_cost_selective(const qn_exec *x, const qn_stage *s, qn_cost *c)
{
    const qn_selective_stage_args *a = &s->u.selective;
    const double floats = (double)qn_scan_state_floats(1, a->n_channels, a->d_state);
    for (int32_t first = 0, n; first < x->batch->n; first += n) {
        n = qn_batch_run(x->batch, first);
        c->bytes += 2 * sizeof(float) * floats;
        c->mul_adds += 2 * floats * n;
    }
}
