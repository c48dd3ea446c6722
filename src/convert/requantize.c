/* A model in fewer bits than its file has. */
#include "src/convert/recipe.h"
#include "src/ops/weight_encode.h"
#include "src/run/open_model.h"

typedef struct choice {
    const qn_file *file;
    const qn_recipe *recipe;
    const qn_fmt *fmt;
    bool is_tied;
} choice;

/* Matrices get the recipe's main format, and the head its own: the last choice between tokens is where an error costs most. */
static const qn_fmt *format_for(const choice *c, qn_role role)
{
    const bool is_head = role == QN_ROLE_OUTPUT || (role == QN_ROLE_EMBEDDING && c->is_tied);
    if (!is_head) return c->fmt;
    const qn_recipe_tensor t = { .role = QN_ROLE_OUTPUT, .i_layer = -1 };
    return qn_fmt_by_name(qn_recipe_choose(c->recipe, &(qn_recipe_model){ 0 }, &t));
}

/* Small tables, what is in as few bits already, and what is packed from the file on use stay as they are. */
static qn_status choose(void *user, qn_weight *w)
{
    const choice *c = user;
    qn_tensor_info t;
    (void)qn_file_tensor_at(c->file, w->i_tensor, &t);
    const qn_role role = qn_role_of(t.name, t.n_dims);
    const qn_fmt *fmt = format_for(c, role);
    while (fmt && w->n_cols % fmt->block) {
        const char *other = qn_recipe_fallback(fmt->name);
        fmt = other ? qn_fmt_by_name(other) : NULL;
    }
    if (!fmt || w->on_use || w->in_file || w->turned || role == QN_ROLE_KEPT) return QN_OK;
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
    choice c = { file, r, qn_fmt_by_name(r->format), net->head.n_rows == 0 };
    if (!c.fmt || !c.fmt->encode) return qn_fail(err, QN_ERR_ARG, "weights cannot be quantised to %s", r->name);
    return qn_net_visit(net, &(qn_net_visitor){ choose, keep, &c });
}
