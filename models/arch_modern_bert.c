#include "models/model.h"

#include "src/format/keys.h"

#include <string.h>

enum { PERIOD = 3 };

static const qn_key_row keys[] = {
    { "attention.sliding_window_pattern", QN_KEY_HOOK, 0, false, 0, 0 },
    { "hidden_activation", QN_KEY_HOOK, 0, false, 0, 0 },
};

/* The norm behind the embedding is the first layer's. */
static qn_status layers(qn_net *net, const qn_file *file, qn_err *err)
{
    (void)err;
    if (!qn_net_has_tensor(file, "blk.%d.attn_norm.weight", 0)) net->layer[0].features |= QN_F_NO_MIXER_NORM;
    return QN_OK;
}

static qn_status read_act(qn_net *net, const qn_file *file, qn_err *err)
{
    qn_str name = QN_LIT("gelu");
    const qn_status s = qn_key_str(file, "%s.hidden_activation", net->arch->name, &name, err);
    if (s != QN_OK && s != QN_ERR_NOT_FOUND) return s;
    const bool is_silu = name.len == 4 && !memcmp(name.ptr, "silu", 4);
    if (!is_silu && (name.len < 4 || memcmp(name.ptr, "gelu", 4)))
        return qn_fail(err, QN_ERR_UNSUPPORTED, "%s.hidden_activation is \"%.*s\"; quern knows gelu and silu", net->arch->name, QN_STR_ARG(name));
    net->act = is_silu ? QN_UNARY_SILU : QN_UNARY_GELU;
    return QN_OK;
}

/* One layer of three sees everything, the first one to begin with; the others have a window and angles of another base. */
static qn_status adjust(qn_net *net, const qn_file *file, qn_err *err)
{
    QN_TRY(qn_net_read_windows(net, file, PERIOD, true, err));
    QN_TRY(qn_net_local_rope(net, file, 10000, err));
    if (net->classifier_pooling == QN_FILE_POOLING_NONE) net->classifier_pooling = QN_FILE_POOLING_MEAN;
    return read_act(net, file, err);
}

/* Warner et al. 2024. */
extern const qn_arch qn_arch_modern_bert;
const qn_arch qn_arch_modern_bert = {
    .name = "modern-bert",
    .covers = "ModernBERT, GTE ModernBERT, Granite Embedding R2, Ettin; their rerankers",
    .features = QN_F_QKV_FUSED | QN_F_GATE_UP_FUSED | QN_F_LAYER_NORM | QN_F_EMBED_NORM | QN_F_ROPE_NEOX | QN_F_TIED | QN_F_ENCODER |
                QN_F_WINDOW_AROUND,
    .mixer = &qn_mix_attention,
    .ff = &qn_ff_dense,
    .act = QN_UNARY_GELU,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .cls_gelu = true,
    .layers = layers,
    .adjust = adjust,
};
