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

/* In double: the angle of a late position has lost its fraction in float32. */
static void angles_of(const qn_rope *r, int32_t position, float *out)
{
    double magnitude = 1;
    if (r->ext_factor != 0) magnitude = r->attn_factor * (1 + 0.1 * log(1 / r->freq_scale));
    else if (r->attn_factor != 0) magnitude = r->attn_factor;
    for (int32_t i = 0; i < r->n_rot / 2; i++) {
        double freq = pow(r->base, -2.0 * i / r->n_rot);
        if (r->factors) freq /= (double)r->factors[i];
        double theta = position * freq * r->freq_scale;
        if (r->ext_factor != 0) {
            const double mix = yarn_ramp(r, i) * r->ext_factor;
            theta = theta * (1 - mix) + position * freq * mix;
        }
        out[2 * i] = (float)(cos(theta) * magnitude);
        out[2 * i + 1] = (float)(sin(theta) * magnitude);
    }
}

void qn_op_angles(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads)
{
    (void)s;
    int64_t begin, end;
    qn_split(x->batch->n, i_thread, n_threads, &begin, &end);
    for (int32_t i = 0; i < x->plan->n_ropes; i++) {
        const qn_rope *r = &x->plan->rope[i];
        for (int64_t t = begin; t < end; t++) angles_of(r, x->batch->position[t], x->angle[i] + t * r->n_rot);
    }
}
