#include "src/ops/exec.h"

#include <math.h>

#define TAU 6.283185307179586476925286766559

/* The dimension whose wave turns n_rot_turns times over the original context (YaRN, Peng et al. 2023, equation 17 and its code). */
static double yarn_dim(const qn_rope *r, double turns)
{
    return r->n_rot * log(r->n_ctx_orig / (turns * TAU)) / (2 * log(r->base));
}

/* Share of extrapolation of pair i: 1 for fast waves, which stay as they are, 0 for slow ones, which are interpolated. */
static double yarn_ramp(const qn_rope *r, int32_t i)
{
    const double low = fmax(0, floor(yarn_dim(r, r->beta_fast))), high = fmin(r->n_rot - 1, ceil(yarn_dim(r, r->beta_slow)));
    const double y = (i - low) / fmax(0.001, high - low);
    return 1 - fmin(1, fmax(0, y));
}

/* Does pair i belong to the section that text does not turn? */
static bool stays(const qn_rope *r, int32_t i)
{
    const int32_t turns = r->sections[0] + r->sections[1] + r->sections[2], all = turns + r->sections[3];
    return all > 0 && i % all >= turns;
}

void qn_rope_frequencies(const qn_rope *r, double *freq)
{
    for (int32_t i = 0; i < r->n_rot / 2; i++) {
        freq[i] = pow(r->base, -2.0 * i / r->n_rot);
        if (r->factors) freq[i] /= (double)r->factors[i];
        const double mix = r->ext_factor != 0 ? yarn_ramp(r, i) * r->ext_factor : 0;
        freq[i] *= r->freq_scale * (1 - mix) + mix;
        if (stays(r, i)) freq[i] = 0;
    }
}

static double magnitude(const qn_rope *r)
{
    if (r->ext_factor != 0) return r->attn_factor * (1 + 0.1 * log(1 / r->freq_scale));
    return r->attn_factor != 0 ? r->attn_factor : 1;
}

/* In double: the angle of a late position has lost its fraction in float32. One pair of one token is a task. */
void qn_op_angles(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    (void)s;
    for (int32_t i = 0; i < x->plan->n_ropes; i++) {
        const qn_rope *r = &x->plan->rope[i];
        const int32_t n_pairs = r->n_rot / 2;
        const double m = magnitude(r);
        int64_t begin, end;
        qn_split((int64_t)x->batch->n * n_pairs, i_thread, n_threads, &begin, &end);
        for (int64_t p = begin; p < end; p++) {
            const double theta = x->batch->position[p / n_pairs] * x->plan->freq[i][p % n_pairs];
            x->angle[i][2 * p] = (float)(cos(theta) * m);
            x->angle[i][2 * p + 1] = (float)(sin(theta) * m);
        }
    }
}
