/* A model in fewer bits than its file has. */
#include "src/convert/recipe.h"
#include "src/ops/weight_encode.h"
#include "src/run/open_model.h"

typedef struct choice {
    const qn_file *file;
    const qn_fmt *fmt;
} choice;

/* Small tables, what is in as few bits already, and what is packed from the file on use stay as they are. */
static qn_status choose(void *user, qn_weight *w)
{
    const choice *c = user;
    const qn_fmt *fmt = c->fmt;
    qn_tensor_info t;
    (void)qn_file_tensor_at(c->file, w->i_tensor, &t);
    while (fmt && w->n_cols % fmt->block) {
        const char *other = qn_recipe_fallback(fmt->name);
        fmt = other ? qn_fmt_by_name(other) : NULL;
    }
    if (!fmt || w->on_use || w->in_file || qn_role_of(t.name, t.n_dims) == QN_ROLE_KEPT) return QN_OK;
    qn_weight as = *w;
    if (qn_weight_describe_in(&as, fmt) && as.n_bytes < w->n_bytes) *w = as;
    return QN_OK;
}

static qn_status keep(void *user, qn_vector *v)
{
    (void)user;
    (void)v;
    return QN_OK;
}

qn_status qn_net_requantize(qn_net *net, const qn_file *file, const char *type, qn_err *err)
{
    const qn_recipe *r = qn_recipe_find(type);
    if (!r) return qn_fail(err, QN_ERR_ARG, "weights cannot be quantised to '%.40s': no such type", type);
    choice c = { file, qn_fmt_by_name(r->format) };
    if (!c.fmt || !c.fmt->encode) return qn_fail(err, QN_ERR_ARG, "weights cannot be quantised to %s", r->name);
    return qn_net_visit(net, &(qn_net_visitor){ choose, keep, &c });
}
