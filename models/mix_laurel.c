#include "models/model.h"

#include <math.h>

/* A learned residual beside a mixer (LAuReL; Menghani et al. 2024): the normed input, and that through a matrix of low rank, normed again. Half of the
 * square of each of the two sums that meet goes on. */

static int64_t dim_rank(const qn_net *net, const qn_layer *l) { (void)net; return l->laurel.rank; }

static const qn_tensor_row tensors[] = {
    { "blk.%d.laurel_l.weight", QN_LAYER_W(laurel.left), .cols = qn_dim_embd, .rows = { dim_rank }, .required = QN_ALWAYS },
    { "blk.%d.laurel_r.weight", QN_LAYER_W(laurel.right), .cols = dim_rank, .rows = { qn_dim_embd }, .required = QN_ALWAYS },
    { "blk.%d.laurel_post_norm.weight", QN_LAYER_V(laurel.norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS },
};

/* G is free until the feed-forward, V once the mixer has stored the values. */
static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    (void)net, (void)i_layer;
    qn_plan_matmul(p, "laurel left", in, &(qn_mat){ .w = &l->laurel.left, .out = QN_REG_G }, 1, QN_UNARY_NONE);
    p->waiting = QN_REG_G;
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    (void)to;
    const qn_input g = qn_plan_rows(QN_REG_G, l->laurel.rank);
    const qn_norm own = qn_net_norm(net, &l->attn_norm, NULL), post = qn_net_norm(net, &l->laurel.norm, NULL);
    qn_plan_matmul(p, "laurel right", &g, &(qn_mat){ .w = &l->laurel.right, .out = QN_REG_V }, 1, QN_UNARY_NONE);
    qn_plan_augment(p, QN_REG_V, &own, &post, net->n_embd);
}

/* No key has the rank: it is what most layers have. */
qn_status qn_layers_laurel(qn_net *net, const qn_file *file, int32_t rank, qn_err *err)
{
    (void)err;
    int32_t lead = 0;
    for (int32_t i = 0; i < net->n_layer; i++) {
        const int64_t n = qn_net_tensor_rows(file, "blk.%d.laurel_l.weight", i);
        if (n < 1 || n > 1 << 20) continue;
        if (lead == 0) rank = (int32_t)n;
        lead += n == rank ? 1 : -1;
    }
    for (int32_t i = 0; i < net->n_layer; i++) {
        net->layer[i].beside = &qn_mix_laurel;
        net->layer[i].laurel.rank = rank;
        net->layer[i].mixed_scale = (float)sqrt(0.5);
    }
    return QN_OK;
}

const qn_part qn_mix_laurel = {
    .name = "learned residual",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .plan = plan,
    .close = close,
};
