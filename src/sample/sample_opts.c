#include "src/sample/sampler.h"

#include "src/base/opts.h"

#include <math.h>

void qn_sample_opts_init(qn_sample_opts *o)
{
    *o = (qn_sample_opts){
        .size = sizeof *o,
        .seed = QN_SEED_RANDOM,
        .temperature = 0.8f,
        .dyn_temp_exponent = 1,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .typical_p = 1,
        .xtc_threshold = 0.1f,
        .repeat_penalty = 1,
        .penalty_last_n = 64,
        .dry_base = 1.75f,
        .dry_allowed_length = 2,
        .dry_last_n = -1,
        .mirostat_tau = 5,
        .mirostat_eta = 0.1f,
    };
}

static const char *const stage_names[QN_MAX_STAGES] = {
    [QN_STAGE_PENALTIES] = "penalties",
    [QN_STAGE_DRY] = "dry",
    [QN_STAGE_TOP_N_SIGMA] = "top_n_sigma",
    [QN_STAGE_TOP_K] = "top_k",
    [QN_STAGE_TYPICAL] = "typical_p",
    [QN_STAGE_TOP_P] = "top_p",
    [QN_STAGE_MIN_P] = "min_p",
    [QN_STAGE_XTC] = "xtc",
    [QN_STAGE_TEMPERATURE] = "temperature",
};

const char *qn_sampler_default_order(void)
{
    return "penalties;dry;top_n_sigma;top_k;typical_p;top_p;min_p;xtc;temperature";
}

static int32_t stage_find(const char *name, size_t len)
{
    for (int32_t i = 0; i < QN_MAX_STAGES; i++)
        if (strlen(stage_names[i]) == len && !memcmp(stage_names[i], name, len)) return i;
    return -1;
}

qn_status qn_sample_order_parse(const char *order, qn_stage_id *stage, int32_t *n, qn_err *err)
{
    unsigned seen = 0;
    *n = 0;
    for (const char *p = order; *p;) {
        const size_t len = strcspn(p, ";");
        const int32_t id = stage_find(p, len);
        if (id < 0)
            return qn_fail(err, QN_ERR_ARG, "order: there is no sampler '%.*s'; there are %s", (int)(len < 60 ? len : 60), p,
                           qn_sampler_default_order());
        if (seen & 1u << id) return qn_fail(err, QN_ERR_ARG, "order: '%s' is named twice", stage_names[id]);
        seen |= 1u << id;
        stage[(*n)++] = (qn_stage_id)id;
        p += len;
        if (*p == ';' && !*++p) return qn_fail(err, QN_ERR_ARG, "order: a name is missing after the last ';'");
    }
    return QN_OK;
}

/* The numbers, their bounds, and what a zero stands for. Bounds are wide: they keep products within double's range, and are no advice. */
typedef struct range {
    const char *name;
    size_t at;
    bool is_int;
    double lo, hi, zero;
} range;
#define F(field, lo, hi, zero) { #field, offsetof(qn_sample_opts, field), false, lo, hi, zero }
#define I(field, lo, hi, zero) { #field, offsetof(qn_sample_opts, field), true, lo, hi, zero }
static const range ranges[] = {
    F(temperature, 0, 1e6, 0),
    F(dyn_temp_range, 0, 1e6, 0),
    F(dyn_temp_exponent, 0, 100, 1),
    I(top_k, 0, INT32_MAX, 0),
    F(top_p, 0, 1, 1),
    F(min_p, 0, 1, 0),
    F(typical_p, 0, 1, 1),
    F(top_n_sigma, 0, 1e6, 0),
    F(xtc_probability, 0, 1, 0),
    F(xtc_threshold, 0, 1, 0.1f),
    F(repeat_penalty, 0, 1e6, 1),
    F(frequency_penalty, -1e6, 1e6, 0),
    F(presence_penalty, -1e6, 1e6, 0),
    I(penalty_last_n, -1, INT32_MAX, 0),
    F(dry_multiplier, 0, 1e6, 0),
    F(dry_base, 0, 1e6, 1.75f),
    I(dry_allowed_length, 0, INT32_MAX, 2),
    I(dry_last_n, -1, INT32_MAX, 0),
    I(n_dry_breakers, 0, 4096, 0),
    F(mirostat_tau, 0, 1e3, 5),
    F(mirostat_eta, 0, 1e3, 0.1f),
    I(n_bias, 0, INT32_MAX, 0),
};
#undef F
#undef I

static qn_status check_ranges(qn_sample_opts *o, qn_err *err)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const range *r = &ranges[i];
        char *field = (char *)o + r->at;
        int32_t as_int;
        float as_float;
        memcpy(&as_int, field, 4);
        memcpy(&as_float, field, 4);
        const double v = r->is_int ? as_int : (double)as_float;
        if (!(v >= r->lo && v <= r->hi)) return qn_fail(err, QN_ERR_ARG, "%s is %g; it must be within %g and %g", r->name, v, r->lo, r->hi);
        if (v != 0) continue;
        as_int = (int32_t)r->zero;
        as_float = (float)r->zero;
        memcpy(field, r->is_int ? (void *)&as_int : (void *)&as_float, 4);
    }
    return QN_OK;
}

qn_status qn_sample_opts_check(qn_sample_opts *out, const qn_sample_opts *in, int32_t n_vocab, qn_err *err)
{
    qn_sample_opts_init(out);
    if (in) QN_TRY(qn_opts_take(out, sizeof *out, in, "sampling", err));
    QN_TRY(check_ranges(out, err));
    if (out->mirostat != 0 && out->mirostat != 2)
        return qn_fail(err, QN_ERR_ARG, "mirostat is %d; it must be 0 (off) or 2", out->mirostat);
    if (out->dry_base < 1) return qn_fail(err, QN_ERR_ARG, "dry_base is %g; it must be at least 1", (double)out->dry_base);
    if (out->n_bias && !out->bias) return qn_fail(err, QN_ERR_ARG, "bias is NULL while n_bias is %d", out->n_bias);
    for (int32_t i = 0; i < out->n_bias; i++) {
        const qn_logit_bias b = out->bias[i];
        if (b.id < 0 || b.id >= n_vocab) return qn_fail(err, QN_ERR_ARG, "bias: there is no token %d; the vocabulary has %d", b.id, n_vocab);
        if (isnan(b.bias) || b.bias == INFINITY) return qn_fail(err, QN_ERR_ARG, "bias of token %d is %g", b.id, (double)b.bias);
    }
    return QN_OK;
}
