#include "src/ops/exec.h"

#include <math.h>
#include <string.h>

/* Tokens that are taken at a time: their numbers lie on the stack, their normed keys in the scratch. */
enum { PIECE = 32 };

/* One head over the tokens [first, first + n) of a timeline. */
typedef struct part {
    const qn_exec *x;
    const qn_scan_stage_args *a;
    int32_t head, first, n;
    float *scratch;
    float *state;
} part;

static float *cell(const part *p, const qn_cols *c, int64_t column, int32_t t)
{
    return qn_exec_row(p->x, c->reg, p->first + t) + c->at + column;
}

static void read_numbers(const part *p, const qn_head_cols *c, float *out)
{
    const int64_t column = (int64_t)(p->head / c->per) * c->step + p->head % c->per;
    for (int32_t t = 0; t < p->n; t++) out[t] = *cell(p, &c->first, column, t);
}

static void find_rates(const part *p, float *decay, float *rate)
{
    const qn_scan_stage_args *a = p->a;
    const qn_kernels *k = p->x->k;
    float step[PIECE];
    read_numbers(p, &a->step, step);
    for (int32_t t = 0; t < p->n; t++) step[t] += a->step_bias[p->head];
    k->softplus(step, p->n, step);
    k->scale(step, a->a[p->head], p->n, decay);
    k->exp(decay, p->n, decay);
    if (!a->delta) {
        memcpy(rate, step, (size_t)p->n * sizeof *rate);
        return;
    }
    read_numbers(p, &a->beta, rate);
    k->sigmoid(rate, p->n, rate);
}

/* x / sqrt(sum of squares + eps), times scale. */
static void unit(const qn_kernels *k, const float *x, int32_t n, float eps, float scale, float *out)
{
    k->rms_norm(x, NULL, n, eps / (float)n, out);
    k->scale(out, scale / sqrtf((float)n), n, out);
}

/* Queries and keys of the part's head, as they are or of unit length in the scratch. @return floats from one token to the next */
static int64_t find_keys(const part *p, const float **q, const float **k)
{
    const qn_scan_stage_args *a = p->a;
    const int32_t head = a->spread ? p->head / (a->n_head / a->n_key_head) : p->head % a->n_key_head, d = a->d_k;
    *q = cell(p, &a->q, (int64_t)head * d, 0);
    *k = cell(p, &a->k, (int64_t)head * d, 0);
    if (!(a->qk_eps > 0)) return p->x->stride[a->q.reg];
    float *units = p->scratch;
    for (int32_t t = 0; t < p->n; t++) {
        unit(p->x->k, *q + t * p->x->stride[a->q.reg], d, a->qk_eps, 1 / sqrtf((float)d), units + (int64_t)2 * t * d);
        unit(p->x->k, *k + t * p->x->stride[a->k.reg], d, a->qk_eps, 1, units + (int64_t)(2 * t + 1) * d);
    }
    *q = units;
    *k = units + d;
    return 2 * d;
}

/* What follows the scan, in place. */
static void finish(const part *p)
{
    const qn_scan_stage_args *a = p->a;
    const int64_t column = (int64_t)p->head * a->d_v;
    for (int32_t t = 0; t < p->n; t++) {
        float *out = cell(p, &a->out, column, t);
        const float *v = cell(p, &a->v, column, t);
        for (int32_t j = 0; a->skip && j < a->d_v; j++) out[j] += a->skip[p->head] * v[j];
        if (a->norm.kind) qn_norm_row(p->x, &a->norm, out, a->d_v, out);
        p->x->k->swiglu(cell(p, &a->gate, column, t), out, a->d_v, out);
    }
}

static void run_part(const part *p)
{
    const qn_scan_stage_args *a = p->a;
    const int64_t column = (int64_t)p->head * a->d_v;
    float decay[PIECE], rate[PIECE];
    qn_scan_args args = {
        .state = p->state,
        .d_k = a->d_k,
        .d_v = a->d_v,
        .n_tokens = p->n,
        .v = cell(p, &a->v, column, 0),
        .v_stride = p->x->stride[a->v.reg],
        .decay = decay,
        .rate = rate,
        .delta = a->delta,
        .out = cell(p, &a->out, column, 0),
        .out_stride = p->x->stride[a->out.reg],
    };
    find_rates(p, decay, rate);
    args.qk_stride = find_keys(p, &args.q, &args.k);
    p->x->k->scan(&args);
    finish(p);
}

void qn_op_scan(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    const qn_scan_stage_args *a = &s->u.scan;
    const int64_t fit = x->scratch_stride / (2 * (int64_t)a->d_k);
    const int32_t piece = fit < PIECE ? (int32_t)fit : PIECE;
    int64_t begin, end;
    for (int32_t first = 0, n; first < x->batch->n; first += n) {
        n = qn_batch_run(x->batch, first);
        float *states = qn_kv_state(x->batch->kv[first], a->i_state) + a->state_at;
        qn_split(a->n_head, i_thread, n_threads, &begin, &end);
        for (int32_t head = (int32_t)begin; head < end; head++)
            for (int32_t at = 0; at < n; at += piece)
                run_part(&(part){ x, a, head, first + at, n - at < piece ? n - at : piece, qn_exec_scratch(x, i_thread),
                                  states + qn_scan_state_floats(head, a->d_v, a->d_k) });
    }
}

/* Every timeline's states are read and written once, whatever the number of its tokens. */
void qn_cost_scan(const qn_exec *x, const qn_stage *s, qn_cost *c)
{
    const qn_scan_stage_args *a = &s->u.scan;
    const double floats = (double)qn_scan_state_floats(a->n_head, a->d_v, a->d_k);
    for (int32_t first = 0, n; first < x->batch->n; first += n) {
        n = qn_batch_run(x->batch, first);
        c->bytes += 2 * sizeof(float) * floats;
        c->mul_adds += (a->delta ? 3 : 2) * floats * n;
    }
}
