#include "models/model.h"

#include "src/format/keys.h"

#include <string.h>

static qn_status optional_f64(const qn_net *net, const qn_file *file, const char *name, double *out, qn_err *err)
{
    float v = (float)*out;
    const float before = v;
    QN_TRY(qn_net_read_f32(net, file, name, &v, err));
    if (v != before) *out = v;
    return QN_OK;
}

static qn_status read_yarn(const qn_net *net, qn_rope *r, const qn_file *file, double factor, qn_err *err)
{
    r->freq_scale = 1 / factor;
    r->ext_factor = 1;
    r->attn_factor = 1;
    QN_TRY(optional_f64(net, file, "rope.scaling.attn_factor", &r->attn_factor, err));
    QN_TRY(optional_f64(net, file, "rope.scaling.yarn_ext_factor", &r->ext_factor, err));
    QN_TRY(optional_f64(net, file, "rope.scaling.yarn_attn_factor", &r->attn_factor, err));
    QN_TRY(optional_f64(net, file, "rope.scaling.yarn_beta_fast", &r->beta_fast, err));
    return optional_f64(net, file, "rope.scaling.yarn_beta_slow", &r->beta_slow, err);
}

static bool is(qn_str a, const char *b)
{
    return a.len == strlen(b) && !memcmp(a.ptr, b, a.len);
}

static qn_status read_scaling(const qn_net *net, qn_rope *r, const qn_file *file, qn_err *err)
{
    const char *arch = net->arch->name;
    qn_str type = QN_LIT("none");
    double factor = 1;
    r->n_ctx_orig = net->n_ctx_train;
    r->beta_fast = 32;
    r->beta_slow = 1;
    const qn_status s = qn_key_str(file, "%s.rope.scaling.type", arch, &type, err);
    if (s != QN_OK && s != QN_ERR_NOT_FOUND) return s;
    QN_TRY(optional_f64(net, file, "rope.scaling.factor", &factor, err));
    if (s == QN_ERR_NOT_FOUND) QN_TRY(optional_f64(net, file, "rope.scale_linear", &factor, err));
    if (s == QN_ERR_NOT_FOUND && factor != 1) type = QN_LIT("linear");
    if (factor == 0) factor = 1;
    if (!(factor > 0)) return qn_fail(err, QN_ERR_FORMAT, "%s.rope.scaling.factor is %g; it must be above 0", arch, factor);
    QN_TRY(qn_net_read_i32(net, file, "rope.scaling.original_context_length", 1, INT32_MAX, &r->n_ctx_orig, err));
    if (is(type, "yarn")) return read_yarn(net, r, file, factor, err);
    if (is(type, "linear")) r->freq_scale = 1 / factor;
    else if (is(type, "longrope")) return optional_f64(net, file, "rope.scaling.attn_factor", &r->attn_factor, err);
    else if (!is(type, "none") && type.len)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "%s.rope.scaling.type is \"%.*s\"; quern knows none, linear, yarn and longrope", arch, QN_STR_ARG(type));
    return QN_OK;
}

qn_status qn_net_read_rope(qn_net *net, const qn_file *file, qn_err *err)
{
    const char *arch = net->arch->name;
    qn_rope *r = &net->rope[0];
    *r = (qn_rope){ .neox = net->features & QN_F_ROPE_NEOX, .base = 10000, .freq_scale = 1, .n_rot = net->head_dim };
    if (net->head_dim) QN_TRY(qn_net_read_i32(net, file, "rope.dimension_count", 0, net->head_dim, &r->n_rot, err));
    if (r->n_rot % 2) return qn_fail(err, QN_ERR_FORMAT, "%s.rope.dimension_count is %d; it must be even", arch, r->n_rot);
    QN_TRY(optional_f64(net, file, "rope.freq_base", &r->base, err));
    if (!(r->base > 0)) return qn_fail(err, QN_ERR_FORMAT, "%s.rope.freq_base is %g; it must be above 0", arch, r->base);
    net->n_ropes = 1;
    if (net->features & QN_F_NO_ROPE) {
        r->n_rot = 0;
        for (int32_t i = 0; i < net->n_layer; i++) net->layer[i].i_rope = -1;
    }
    return read_scaling(net, r, file, err);
}

qn_status qn_net_read_sections(qn_net *net, const qn_file *file, qn_err *err)
{
    const qn_status s = qn_net_read_i32s(net, file, "rope.dimension_sections", 0, QN_MAX_HEAD_DIM, net->rope[0].sections, 4, err);
    return s == QN_ERR_NOT_FOUND ? QN_OK : s;
}
