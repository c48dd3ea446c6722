#include "models/model.h"

/* Attention with grouped queries (Ainslie et al. 2023): q, k and v as three tensors or as the rows of one, norms of q and k of every kind. */

#define AT(field) offsetof(qn_layer, field)
static const qn_key_row keys[] = {
    { "attention.head_count", QN_KEY_LAYER, AT(n_head), true, 0, 1 << 16 },
    { "attention.head_count_kv", QN_KEY_LAYER, AT(n_head_kv), false, 0, 1 << 16 },
    { "attention.key_length", QN_KEY_LAYER, AT(head_dim), false, 0, QN_MAX_HEAD_DIM },
    { "attention.value_length", QN_KEY_LAYER, AT(head_dim_v), false, 0, QN_MAX_HEAD_DIM },
    { "attention.sliding_window", QN_KEY_LAYER, AT(window), false, 0, INT32_MAX },
};

static int64_t dim_gates(const qn_net *net, const qn_layer *l) { return l->features & QN_F_GATE_OF_HEAD ? l->n_head : qn_dim_o(net, l); }
static int64_t dim_heads(const qn_net *net, const qn_layer *l) { (void)net; return l->n_head; }

#define ANY_QK_NORM (QN_F_QK_NORM | QN_F_QK_NORM_HEADS | QN_F_QK_NORM_WIDE)
#define QKV_WEIGHTS .at = { AT(wq), AT(wk), AT(wv) }, .n_at = 3, .rows = { qn_dim_q, qn_dim_k, qn_dim_v }
#define QKV_BIASES .is_vector = true, .at = { AT(bq), AT(bk), AT(bv) }, .n_at = 3, .rows = { qn_dim_q, qn_dim_k, qn_dim_v }
static const qn_tensor_row tensors[] = {
    { "blk.%d.attn_qkv.weight", QKV_WEIGHTS, .cols = qn_dim_embd, .only = QN_F_QKV_FUSED, .required = QN_ALWAYS },
    { "blk.%d.attn_qkv.bias", QKV_BIASES, .only = QN_F_QKV_FUSED, .required = QN_F_QKV_BIAS },
    { "blk.%d.attn_q.weight", QN_LAYER_W(wq), .cols = qn_dim_embd, .rows = { qn_dim_q }, .unless = QN_F_QKV_FUSED, .required = QN_ALWAYS },
    { "blk.%d.attn_k.weight", QN_LAYER_W(wk), .cols = qn_dim_embd, .rows = { qn_dim_k }, .unless = QN_F_QKV_FUSED, .required = QN_ALWAYS,
      .unread = QN_F_KV_SHARED },
    { "blk.%d.attn_v.weight", QN_LAYER_W(wv), .cols = qn_dim_embd, .rows = { qn_dim_v }, .unless = QN_F_QKV_FUSED | QN_F_V_IS_K, .required = QN_ALWAYS,
      .unread = QN_F_KV_SHARED },
    { "blk.%d.attn_q.bias", QN_LAYER_V(bq), .rows = { qn_dim_q }, .unless = QN_F_QKV_FUSED, .required = QN_F_QKV_BIAS },
    { "blk.%d.attn_k.bias", QN_LAYER_V(bk), .rows = { qn_dim_k }, .unless = QN_F_QKV_FUSED, .required = QN_F_QKV_BIAS },
    { "blk.%d.attn_v.bias", QN_LAYER_V(bv), .rows = { qn_dim_v }, .unless = QN_F_QKV_FUSED, .required = QN_F_QKV_BIAS },
    { "blk.%d.attn_q_norm.weight", QN_LAYER_V(q_norm), .rows = { qn_dim_q_norm }, .only = ANY_QK_NORM, .required = QN_ALWAYS },
    { "blk.%d.attn_k_norm.weight", QN_LAYER_V(k_norm), .rows = { qn_dim_k_norm }, .only = ANY_QK_NORM, .required = QN_ALWAYS, .unread = QN_F_KV_SHARED },
    { "blk.%d.attn_q_norm.bias", QN_LAYER_V(q_norm_b), .rows = { qn_dim_q_norm }, .only = ANY_QK_NORM },
    { "blk.%d.attn_k_norm.bias", QN_LAYER_V(k_norm_b), .rows = { qn_dim_k_norm }, .only = ANY_QK_NORM, .unread = QN_F_KV_SHARED },
    { "blk.%d.attn_sinks.weight", QN_LAYER_V(sinks), .rows = { dim_heads }, .only = QN_F_SINKS, .required = QN_ALWAYS },
    { "blk.%d.attn_gate.weight", QN_LAYER_W(w_gate), .cols = qn_dim_embd, .rows = { dim_gates }, .only = QN_F_ATTN_GATE, .required = QN_ALWAYS },
    { "blk.%d.attn_sub_norm.weight", QN_LAYER_V(attn_sub_norm), .rows = { qn_dim_o }, .only = QN_F_SUB_NORM, .required = QN_ALWAYS },
    { "blk.%d.attn_output.weight", QN_LAYER_W(wo), .cols = qn_dim_o, .rows = { qn_dim_embd }, .required = QN_ALWAYS },
    { "blk.%d.attn_output.bias", QN_LAYER_V(bo), .rows = { qn_dim_embd }, .required = QN_F_OUT_BIAS },
};

static qn_status check(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    if (l->n_head < 1) return qn_fail(err, QN_ERR_FORMAT, "layer %d has %d heads; it must be at least 1", i, l->n_head);
    if (l->n_head_kv == 0) l->n_head_kv = l->n_head;
    if (l->n_head % l->n_head_kv) return qn_fail(err, QN_ERR_FORMAT, "layer %d: %d heads do not divide into %d KV heads", i, l->n_head, l->n_head_kv);
    if (l->head_dim == 0) l->head_dim = net->n_embd / l->n_head;
    if (l->head_dim_v == 0) l->head_dim_v = l->head_dim;
    if (l->head_dim < 8 || l->head_dim % 8 || l->head_dim > QN_MAX_HEAD_DIM || l->head_dim_v % 8 || l->head_dim_v > QN_MAX_HEAD_DIM)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "layer %d: heads of %d and %d dimensions; quern has multiples of 8 up to %d", i, l->head_dim,
                       l->head_dim_v, QN_MAX_HEAD_DIM);
    if (l->q_gated && l->head_dim != l->head_dim_v)
        return qn_fail(err, QN_ERR_FORMAT, "layer %d: a gate of %d dimensions for a head of %d", i, l->head_dim, l->head_dim_v);
    if (l->features & QN_F_V_IS_K && l->head_dim != l->head_dim_v)
        return qn_fail(err, QN_ERR_FORMAT, "layer %d: keys of %d dimensions cannot be values of %d", i, l->head_dim, l->head_dim_v);
    if ((int64_t)l->n_head * l->head_dim > 1 << 24 || (int64_t)l->n_head * l->head_dim_v > 1 << 24)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "layer %d: %d heads of %d dimensions are too many", i, l->n_head, l->head_dim);
    return QN_OK;
}

/* The norm of each head; one over all heads together is a stage of its own. */
static qn_norm head_norm(const qn_net *net, const qn_layer *l, const qn_vector *w, const qn_vector *b)
{
    if (l->features & QN_F_QK_NORM_PLAIN) return (qn_norm){ .kind = QN_NORM_RMS, .eps = net->norm_eps };
    return l->features & QN_F_QK_NORM_WIDE || !w->n ? (qn_norm){ 0 } : qn_net_norm(net, w, b);
}

static qn_heads heads_of(const qn_net *net, const qn_layer *l, int32_t i_layer)
{
    return (qn_heads){
        .n_head = l->n_head,
        .n_head_kv = l->n_head_kv,
        .head_dim = l->head_dim,
        .head_dim_v = l->head_dim_v,
        .window = l->window,
        .chunked = l->is_chunked,
        .sees_all = net->features & QN_F_ENCODER,
        .around = net->features & QN_F_WINDOW_AROUND,
        .i_rope = l->i_rope >= 0 && net->rope[l->i_rope].n_rot ? l->i_rope : -1,
        .i_kv = l->i_kv,
        .v_is_k = l->features & QN_F_V_IS_K,
        .only_reads = l->i_kv != i_layer,
        .norm_v = l->features & QN_F_V_NORM,
        .scale = net->attn_scale,
        .temper = l->features & QN_F_NO_TEMP ? (qn_temper){ 0 } : net->temper,
        .softcap = net->attn_softcap,
        .max_bias = net->max_alibi_bias,
        .sinks = l->sinks.w,
        .q_norm = head_norm(net, l, &l->q_norm, &l->q_norm_b),
        .k_norm = head_norm(net, l, &l->k_norm, &l->k_norm_b),
        .norm_late = l->features & QN_F_QK_NORM_LATE,
        .q_gated = l->q_gated,
        .norm_stride = l->features & QN_F_QK_NORM_HEADS ? l->head_dim : 0,
    };
}

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    const qn_heads heads = heads_of(net, l, i_layer);
    const bool is_gated = qn_weight_present(&l->w_gate);
    const float clamp = net->kqv_clamp;
    qn_mat mats[QN_MAX_MATS] = { { .w = &l->wq, .bias = l->bq.w, .out = l->q_gated ? QN_REG_G : QN_REG_Q, .clamp = clamp } };
    int32_t n_mats = 1;
    if (is_gated) mats[n_mats++] = (qn_mat){ .w = &l->w_gate, .out = QN_REG_G };
    if (!heads.only_reads) {
        mats[n_mats++] = (qn_mat){ .w = &l->wk, .bias = l->bk.w, .out = QN_REG_K, .clamp = clamp };
        if (!heads.v_is_k) mats[n_mats++] = (qn_mat){ .w = &l->wv, .bias = l->bv.w, .out = QN_REG_V, .clamp = clamp };
    }
    qn_plan_matmul(p, "qkv", in, mats, n_mats, QN_UNARY_NONE);
    if (l->features & QN_F_QK_NORM_WIDE) {
        const qn_norm q = qn_net_norm(net, &l->q_norm, &l->q_norm_b), k = qn_net_norm(net, &l->k_norm, &l->k_norm_b);
        qn_plan_norm(p, "q norm", QN_REG_Q, &q, l->wq.n_rows);
        qn_plan_norm(p, "k norm", QN_REG_K, &k, l->wk.n_rows);
    }
    qn_plan_store(p, &heads);
    if (i_layer == net->n_layer - 1) qn_plan_only_outputs(p, QN_REG_Q);
    qn_plan_attend(p, &heads);
    const int32_t n = l->head_dim_v;
    qn_gate_stage_args gate = { .at = QN_REG_O, .gate = { QN_REG_G, 0 }, .gate_stride = n, .n_head = l->n_head, .head_dim = n };
    if (l->q_gated) {
        gate.gate.at = n;
        gate.gate_stride = 2 * n;
    }
    if (is_gated && l->features & QN_F_GATE_OF_HEAD) {
        gate.one_each = true;
        gate.gate_stride = 1;
    }
    gate.softplus = l->features & QN_F_GATE_SOFTPLUS;
    if (l->q_gated || is_gated) qn_plan_gate(p, &gate);
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    qn_input o = qn_plan_rows(QN_REG_O, l->wo.n_cols);
    if (l->features & QN_F_SUB_NORM) o.pre = qn_net_norm(net, &l->attn_sub_norm, NULL);
    qn_close_to scaled = *to;
    scaled.scale *= net->value_scale;
    qn_plan_close(p, "attn out", &o, &l->wo, l->bo.w, &scaled);
}

const qn_part qn_mix_attention = {
    .name = "attention",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .attends = true,
    .check = check,
    .plan = plan,
    .close = close,
};
