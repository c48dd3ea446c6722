#include "models/model.h"

#include "src/format/keys.h"

#include <math.h>

enum { N_LAYER_27B = 62, DEFAULT_PATTERN = 6 };

/* Gemma Team 2025: five layers with a sliding window, then one that sees everything; the windowed ones have their own rope base and no
 * position scaling. The 27B model scales queries by its width per head instead of the head size. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    int64_t pattern = DEFAULT_PATTERN;
    const qn_status s = qn_key_i64(file, "%s.attention.sliding_window_pattern", net->arch->name, 1, QN_MAX_LAYERS, &pattern, err);
    if (s != QN_OK && s != QN_ERR_NOT_FOUND) return s;
    float base = 10000;
    const qn_status t = qn_key_f32(file, "%s.rope.freq_base_swa", net->arch->name, &base, err);
    if (t != QN_OK && t != QN_ERR_NOT_FOUND) return t;
    if (!(base > 0)) return qn_fail(err, QN_ERR_FORMAT, "%s.rope.freq_base_swa is %g; it must be above 0", net->arch->name, (double)base);
    net->rope[1] = net->rope[0];
    net->rope[1].base = base;
    net->rope[1].freq_scale = 1;
    net->rope[1].ext_factor = net->rope[1].attn_factor = 0;
    net->n_ropes = 2;
    for (int32_t i = 0; i < net->n_layer; i++) {
        qn_layer *l = &net->layer[i];
        const bool sees_all = i % pattern == pattern - 1;
        if (sees_all) l->window = 0;
        l->i_rope = sees_all ? 0 : 1;
    }
    if (net->n_layer == N_LAYER_27B) net->attn_scale = 1 / sqrtf((float)net->n_embd / (float)net->layer[0].n_head);
    return QN_OK;
}

extern const qn_arch qn_arch_gemma3;
const qn_arch qn_arch_gemma3 = {
    .name = "gemma3",
    .covers = "Gemma 3 (text)",
    .features = QN_F_QK_NORM | QN_F_POST_NORM | QN_F_ROPE_NEOX | QN_F_GELU | QN_F_EMBED_SQRT,
    .adjust = adjust,
};
