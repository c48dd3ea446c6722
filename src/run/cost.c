#include "src/base/mem.h"
#include "src/run/engine.h"

#include <stdlib.h>

/* A batch of one timeline that asks every stage for its cost and runs none. */
static void add_costs(const qn_engine *e, const qn_batch *batch, qn_cost *c)
{
    qn_exec x = e->exec;
    x.batch = batch;
    for (size_t i = 0; i < e->plan.n_stages; i++)
        if (e->plan.stage[i].cost) e->plan.stage[i].cost(&x, &e->plan.stage[i], c);
}

qn_status qn_engine_cost(const qn_engine *e, int32_t position, int32_t n, int32_t n_outputs, double *bytes, double *mul_adds, qn_err *err)
{
    qn_cost c = { 0 };
    *bytes = *mul_adds = 0;
    if (n < 1 || n > e->n_chunk || n_outputs < 0 || n_outputs > n || position < 0 || position > e->n_ctx - n)
        return qn_fail(err, QN_ERR_ARG, "no step of %d tokens, %d outputs at position %d: a step has 1 to %d tokens in a context of %d", n,
                       n_outputs, position, e->n_chunk, e->n_ctx);
    int32_t *place = qn_new((size_t)n, 3 * sizeof *place);
    qn_kv **owner = qn_new((size_t)n, sizeof *owner); /* all the same one */
    if (place && owner) {
        int32_t *last = place + n, *output = last + n;
        for (int32_t i = 0; i < n; i++) {
            place[i] = position + i;
            last[i] = position + n - 1;
        }
        for (int32_t i = 0; i < n_outputs; i++) output[i] = n - n_outputs + i;
        add_costs(e, &(qn_batch){ .n = n, .position = place, .last = last, .kv = owner, .output = output, .n_outputs = n_outputs }, &c);
    }
    const bool known = place && owner;
    free(place);
    free(owner);
    if (!known) return qn_fail(err, QN_ERR_NOMEM, "no memory for the positions of a step");
    *bytes = c.bytes;
    *mul_adds = c.mul_adds;
    return QN_OK;
}
