#include "models/model.h"

#include <math.h>

/* A feed-forward whose gates open on what the token's own row of this layer says (Gemma Team 2025, Gemma 3n): a table has a row for each token and
 * layer, and a projection of the embedding is added to it. */

static const qn_key_row keys[] = {
    { "embedding_length_per_layer_input", QN_KEY_NET, offsetof(qn_net, layer_rows.width), false, 1, 1 << 16 },
};

static int64_t dim_row(const qn_net *net, const qn_layer *l) { (void)l; return net->layer_rows.width; }

static const qn_tensor_row tensors[] = {
    { "blk.%d.inp_gate.weight", QN_LAYER_W(rows.gate), .cols = qn_dim_embd, .rows = { dim_row }, .required = QN_ALWAYS },
    { "blk.%d.proj.weight", QN_LAYER_W(rows.proj), .cols = dim_row, .rows = { qn_dim_embd }, .required = QN_ALWAYS },
    { "blk.%d.post_norm.weight", QN_LAYER_V(rows.norm), .rows = { qn_dim_embd }, .required = QN_ALWAYS },
};

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    qn_plan_matmul(p, "row gate", in, &(qn_mat){
        .w = &l->rows.gate, .out = QN_REG_G, .act = net->act, .multiplied = true, .by = { QN_REG_P, (int64_t)i_layer * net->layer_rows.width },
    }, 1, QN_UNARY_NONE);
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    const qn_input g = qn_plan_rows(QN_REG_G, net->layer_rows.width);
    qn_plan_close(p, "row proj", &g, &l->rows.proj, NULL, to);
}

void qn_layer_rows_open(const qn_net *net, qn_plan *p)
{
    const qn_input x = qn_plan_rows(p->x, net->n_embd);
    const int32_t width = net->layer_rows.width;
    qn_plan_matmul(p, "layer rows from x", &x, &(qn_mat){ .w = &net->layer_rows.proj, .out = QN_REG_P }, 1, QN_UNARY_NONE);
    qn_plan_layer_rows(p, &(qn_layer_rows_args){
        .table = &net->layer_rows.table, .n_layer = net->n_layer, .width = width, .norm = qn_net_norm(net, &net->layer_rows.norm, NULL),
        .projection_scale = 1 / sqrtf((float)net->n_embd), .table_scale = sqrtf((float)width), .scale = (float)sqrt(0.5),
    });
}

const qn_part qn_ff_layer_rows = {
    .name = "rows of layers",
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .plan = plan,
    .close = close,
};
