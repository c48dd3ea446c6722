#include "models/model.h"

#include <math.h>

/* Multi-head latent attention (DeepSeek-AI 2024, section 2.1). Of a token the cache keeps one latent, of which each head's keys and values are
 * linear maps, and a key that rotates, one for all heads. The map of the keys is multiplied into the queries, that of the values into the
 * result ("absorbed"), so that all heads attend to the latent itself. */

#define AT(field) offsetof(qn_layer, field)
static const qn_key_row keys[] = {
    { "attention.head_count", QN_KEY_LAYER, AT(n_head), true, 1, 1 << 16 },
    { "attention.key_length_mla", QN_KEY_LAYER, AT(latent.n_key), true, 1, 1 << 16 },
    { "attention.value_length_mla", QN_KEY_LAYER, AT(latent.n_value), true, 1, 1 << 16 },
    { "attention.kv_lora_rank", QN_KEY_LAYER, AT(head_dim_v), true, 8, QN_MAX_HEAD_DIM },
    { "attention.q_lora_rank", QN_KEY_LAYER, AT(latent.n_query), false, 0, 1 << 20 },
    { "attention.key_length", QN_KEY_LAYER, AT(head_dim), true, 8, QN_MAX_HEAD_DIM },
};

/* Files in which the maps to keys and to values lie in one matrix; the key's size there is a head's own. */
static const qn_key_row whole_keys[] = {
    { "attention.head_count", QN_KEY_LAYER, AT(n_head), true, 1, 1 << 16 },
    { "attention.key_length", QN_KEY_LAYER, AT(latent.n_key), true, 1, 1 << 16 },
    { "attention.value_length", QN_KEY_LAYER, AT(latent.n_value), true, 1, 1 << 16 },
    { "attention.kv_lora_rank", QN_KEY_LAYER, AT(head_dim_v), true, 8, QN_MAX_HEAD_DIM },
    { "attention.q_lora_rank", QN_KEY_LAYER, AT(latent.n_query), false, 0, 1 << 20 },
    { "rope.dimension_count", QN_KEY_LAYER, AT(head_dim), true, 2, QN_MAX_HEAD_DIM }, /* of the key in the cache: what is not latent */
};

static int64_t dim_query(const qn_net *net, const qn_layer *l) { (void)net; return l->latent.n_query; }
static int64_t dim_queries(const qn_net *net, const qn_layer *l) { (void)net; return (int64_t)l->n_head * l->latent.n_key; }
static int64_t dim_key_value(const qn_net *net, const qn_layer *l) { (void)net; return l->head_dim; }
static int64_t dim_latent(const qn_net *net, const qn_layer *l) { (void)net; return l->head_dim_v; }
static int64_t dim_plain(const qn_net *net, const qn_layer *l) { (void)net; return qn_latent_n_plain(l); }
static int64_t dim_value(const qn_net *net, const qn_layer *l) { (void)net; return l->latent.n_value; }
static int64_t dim_values(const qn_net *net, const qn_layer *l) { (void)net; return (int64_t)l->n_head * l->latent.n_value; }
static int64_t dim_heads(const qn_net *net, const qn_layer *l) { (void)net; return l->n_head; }

#define BEFORE_MAPS                                                                                                                                \
    { "blk.%d.attn_q.weight", QN_LAYER_W(wq), .cols = qn_dim_embd, .rows = { dim_queries }, .unless = QN_F_QUERY_LATENT, .required = QN_ALWAYS },  \
    { "blk.%d.attn_q_a.weight", QN_LAYER_W(latent.wq_a), .cols = qn_dim_embd, .rows = { dim_query }, .only = QN_F_QUERY_LATENT,                    \
      .required = QN_ALWAYS },                                                                                                                     \
    { "blk.%d.attn_q_a_norm.weight", QN_LAYER_V(q_norm), .rows = { dim_query }, .only = QN_F_QUERY_LATENT, .required = QN_ALWAYS },                \
    { "blk.%d.attn_q_b.weight", QN_LAYER_W(wq), .cols = dim_query, .rows = { dim_queries }, .only = QN_F_QUERY_LATENT, .required = QN_ALWAYS },    \
    { "blk.%d.attn_kv_a_mqa.weight", QN_LAYER_W(wk), .cols = qn_dim_embd, .rows = { dim_key_value }, .required = QN_ALWAYS },                      \
    { "blk.%d.attn_kv_a_norm.weight", QN_LAYER_V(k_norm), .rows = { dim_latent }, .required = QN_ALWAYS }
#define BEHIND_MAPS { "blk.%d.attn_output.weight", QN_LAYER_W(wo), .cols = dim_values, .rows = { qn_dim_embd }, .required = QN_ALWAYS }

static const qn_tensor_row tensors[] = {
    BEFORE_MAPS,
    { "blk.%d.attn_k_b.weight", QN_LAYER_W(latent.wk_b), .cols = dim_plain, .rows = { dim_latent }, .slices = dim_heads, .required = QN_ALWAYS },
    { "blk.%d.attn_v_b.weight", QN_LAYER_W(wv), .cols = dim_latent, .rows = { dim_value }, .slices = dim_heads, .required = QN_ALWAYS },
    BEHIND_MAPS,
};
static const qn_tensor_row whole_tensors[] = {
    BEFORE_MAPS,
    { "blk.%d.attn_kv_b.weight", .at = { AT(latent.wk_b), AT(wv) }, .n_at = 2, .cols = dim_latent, .rows = { dim_plain, dim_value }, .slices = dim_heads,
      .in_one = true, .turned = 1, .required = QN_ALWAYS },
    BEHIND_MAPS,
};

qn_status qn_layers_latent(qn_net *net, const qn_file *file, qn_err *err)
{
    int32_t n_query = 0;
    QN_TRY(qn_net_read_i32(net, file, "attention.q_lora_rank", 0, 1 << 20, &n_query, err));
    for (int32_t i = 0; i < net->n_layer; i++) {
        if (n_query && !qn_net_has_tensor(file, "blk.%d.attn_q.weight", i)) net->layer[i].features |= QN_F_QUERY_LATENT;
        if (qn_net_has_tensor(file, "blk.%d.attn_kv_b.weight", i)) net->layer[i].mixer = &qn_mix_latent_whole;
    }
    return QN_OK;
}

qn_status qn_adjust_latent(qn_net *net, const qn_file *file, qn_err *err)
{
    const qn_layer *l = &net->layer[0];
    int32_t n_rot = l->head_dim - l->head_dim_v;
    QN_TRY(qn_net_read_i32(net, file, "rope.dimension_count", n_rot, n_rot, &n_rot, err));
    net->rope[0].n_rot = n_rot;
    net->attn_scale = 1 / sqrtf((float)l->latent.n_key);
    return QN_OK;
}

static qn_status check(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    (void)net;
    const int32_t n_rot = l->head_dim - l->head_dim_v;
    l->n_head_kv = 1;
    if (l->head_dim % 8 || l->head_dim_v % 8 || n_rot < 2 || n_rot % 2)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "layer %d: keys of %d dimensions with a latent of %d; quern has multiples of 8 up to %d, the key larger", i,
                       l->head_dim, l->head_dim_v, QN_MAX_HEAD_DIM);
    if (qn_latent_n_plain(l) < 1 || (int64_t)l->n_head * l->latent.n_key > 1 << 24 || (int64_t)l->n_head * l->latent.n_value > 1 << 24 ||
        (int64_t)l->n_head * l->head_dim > 1 << 24)
        return qn_fail(err, QN_ERR_FORMAT, "layer %d: %d heads with keys of %d, of which %d rotate, and values of %d do not go together", i, l->n_head,
                       l->latent.n_key, n_rot, l->latent.n_value);
    return QN_OK;
}

static qn_status whole_check(const qn_net *net, qn_layer *l, int32_t i, qn_err *err)
{
    l->head_dim += l->head_dim_v;
    return check(net, l, i, err);
}

static void plan_queries(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_input *in)
{
    const qn_mat direct[] = { { .w = &l->wq, .out = QN_REG_G }, { .w = &l->wk, .out = QN_REG_K } };
    const qn_mat latent[] = { { .w = &l->latent.wq_a, .out = QN_REG_T }, { .w = &l->wk, .out = QN_REG_K } };
    const qn_mat query = { .w = &l->wq, .out = QN_REG_G };
    if (!(l->features & QN_F_QUERY_LATENT)) {
        qn_plan_matmul(p, "query latent", in, direct, 2, QN_UNARY_NONE);
        return;
    }
    qn_plan_matmul(p, "latents", in, latent, 2, QN_UNARY_NONE);
    qn_input rows = qn_plan_rows(QN_REG_T, l->latent.n_query);
    rows.pre = qn_net_norm(net, &l->q_norm, NULL);
    qn_plan_matmul(p, "query", &rows, &query, 1, QN_UNARY_NONE);
}

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    const qn_latent_args latent = {
        .heads = {
            .n_head = l->n_head,
            .n_head_kv = 1,
            .head_dim = l->head_dim,
            .head_dim_v = l->head_dim_v,
            .sees_all = net->features & QN_F_ENCODER,
            .i_rope = l->i_rope,
            .i_kv = i_layer,
            .scale = net->attn_scale,
            .k_norm = qn_net_norm(net, &l->k_norm, NULL),
        },
        .q = QN_REG_G,
        .n_plain = qn_latent_n_plain(l),
    };
    const qn_by_head_args absorb = { .w = &l->latent.wk_b, .in = QN_REG_G, .out = QN_REG_Q, .in_stride = l->latent.n_key, .out_stride = l->head_dim,
                                     .scale = net->attn_scale };
    const qn_by_head_args values = { .w = &l->wv, .in = QN_REG_O, .out = QN_REG_V, .in_stride = l->head_dim_v, .out_stride = l->latent.n_value, .scale = 1 };
    plan_queries(net, l, p, in);
    qn_plan_temper(p, QN_REG_G, &net->temper, l->wq.n_rows);
    qn_plan_by_head(p, "absorb", &absorb);
    qn_plan_join(p);
    qn_plan_latent(p, &latent);
    if (i_layer == net->n_layer - 1) qn_plan_only_outputs(p, QN_REG_Q);
    qn_plan_attend(p, &latent.heads);
    qn_plan_by_head(p, "values", &values);
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    (void)net;
    const qn_input v = qn_plan_rows(QN_REG_V, l->wo.n_cols);
    qn_plan_close(p, "attn out", &v, &l->wo, NULL, to);
}

const qn_part qn_mix_latent = {
    .name = "latent attention",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .attends = true,
    .check = check,
    .plan = plan,
    .close = close,
};

const qn_part qn_mix_latent_whole = {
    .name = "latent attention, keys and values in one matrix",
    .keys = whole_keys,
    .n_keys = sizeof whole_keys / sizeof *whole_keys,
    .tensors = whole_tensors,
    .n_tensors = sizeof whole_tensors / sizeof *whole_tensors,
    .attends = true,
    .check = whole_check,
    .plan = plan,
    .close = close,
};
