#include "models/model.h"

/* A router that reads the residual stream before attention, so that its choice is known early (Song et al. 2025, SmallThinker). It stands beside
 * attention; what it says waits for the experts (models/ff_experts.c), whose matrix it is. */

static void plan(const qn_net *net, const qn_layer *l, int32_t i_layer, qn_plan *p, const qn_input *in)
{
    (void)i_layer;
    (void)in;
    const qn_input x = qn_plan_rows(p->x, net->n_embd);
    qn_plan_matmul(p, "router", &x, &(qn_mat){ .w = &l->x.router, .out = QN_REG_R }, 1, QN_UNARY_NONE);
    p->waiting = QN_REG_R;
}

static void close(const qn_net *net, const qn_layer *l, qn_plan *p, const qn_close_to *to)
{
    (void)net;
    (void)l;
    (void)p;
    (void)to;
}

const qn_part qn_mix_router = { .name = "router before attention", .plan = plan, .close = close };
