/* Methods of lists, dicts, numbers and of Jinja's own objects. */
#include "src/chat/jmethod.h"

#include <math.h>
#include <string.h>

/* ---- list, tuple, range ---- */

static bool seq_count(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jseq q;
    int64_t n = 0;
    if (!qn_jv_seq(vm, c->a[0], &q)) return false;
    for (size_t i = 0; i < q.n; i++) {
        qn_jval v;
        bool eq;
        if (!qn_jseq_at(vm, &q, i, &v) || !qn_jv_eq(vm, v, c->a[1], &eq)) return false;
        n += eq;
    }
    *out = qn_jv_int(n);
    return true;
}

static bool seq_index(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jseq q;
    int64_t from, to;
    if (!qn_jv_seq(vm, c->a[0], &q)) return false;
    const int64_t n = (int64_t)q.n;
    if (!qn_jarg_int_or(vm, c->a[2], 0, &from) || !qn_jarg_int_or(vm, c->a[3], n, &to)) return false;
    if (from < 0) from = from < -n ? 0 : from + n;
    if (to < 0) to = to < -n ? 0 : to + n;
    for (int64_t i = from; i < to && i < n; i++) {
        qn_jval v;
        bool eq;
        if (!qn_jseq_at(vm, &q, (size_t)i, &v) || !qn_jv_eq(vm, v, c->a[1], &eq)) return false;
        if (eq) return *out = qn_jv_int(i), true;
    }
    return qn_jvm_fail(vm, "the value is not in the %s", qn_jv_type_name(c->a[0]));
}

static bool self_copy(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    *out = c->a[0];
    if (c->a[0].type != QN_J_LIST) return true; /* nothing changes a dict or list, so the copy may be the same one; a list is cheap */
    qn_jlist *l;
    if (!qn_jv_list(vm, c->a[0], &l)) return false;
    out->l = l;
    return true;
}

/* ---- dict ---- */

static bool dict_view(qn_jvm *vm, const qn_jcall *c, int what, qn_jval *out)
{
    qn_jview *v = qn_jvm_new(vm, 1, sizeof *v);
    if (!v) return false;
    *v = (qn_jview){ c->a[0].d, (uint8_t)what };
    *out = QN_JV(QN_J_VIEW, view, v);
    return true;
}

static bool dict_keys(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return dict_view(vm, c, 0, out);
}

static bool dict_values(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return dict_view(vm, c, 1, out);
}

static bool dict_items(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return dict_view(vm, c, 2, out);
}

static bool dict_get(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jval *have;
    if (!qn_jd_get(vm, c->a[0].d, c->a[1], &have)) return false;
    *out = have ? *have : qn_jarg_given(c->a[2]) ? c->a[2] : qn_jv_none();
    return true;
}

static bool dict_fromkeys(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jseq q;
    qn_jdict *d = qn_jd_new(vm);
    if (!d || !qn_jv_seq(vm, c->a[1], &q)) return false;
    for (size_t i = 0; i < q.n; i++) {
        qn_jval key;
        if (!qn_jseq_at(vm, &q, i, &key) || !qn_jd_set(vm, d, key, qn_jarg_given(c->a[2]) ? c->a[2] : qn_jv_none())) return false;
    }
    *out = QN_JV(QN_J_DICT, d, d);
    return true;
}

/* ---- numbers ---- */

static bool int_bit_length(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const int64_t i = qn_jv_as_int(c->a[0]);
    uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    int64_t n = 0;
    (void)vm;
    for (; u; u >>= 1) n++;
    *out = qn_jv_int(n);
    return true;
}

static bool int_bit_count(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const int64_t i = qn_jv_as_int(c->a[0]);
    uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    int64_t n = 0;
    (void)vm;
    for (; u; u &= u - 1) n++;
    *out = qn_jv_int(n);
    return true;
}

static bool number_conjugate(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)vm;
    *out = c->a[0].type == QN_J_BOOL ? qn_jv_int(c->a[0].b) : c->a[0];
    return true;
}

static bool float_is_integer(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)vm;
    *out = qn_jv_bool(isfinite(c->a[0].f) && c->a[0].f == floor(c->a[0].f));
    return true;
}

/* ---- loop, cycler ---- */

static bool loop_cycle(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    if (!c->raw->n_pos) return qn_jvm_fail(vm, "no items for cycling given");
    *out = c->raw->pos[(size_t)c->a[0].loop->index0 % c->raw->n_pos];
    return true;
}

static bool loop_changed(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jloop *l = c->a[0].loop;
    qn_jlist *now = qn_jl_new(vm, c->raw->n_pos);
    bool same = false;
    if (!now) return false;
    for (size_t i = 0; i < c->raw->n_pos; i++) now->v[now->n++] = c->raw->pos[i];
    const qn_jval v = QN_JV(QN_J_TUPLE, l, now);
    if (l->changed.type != QN_J_MISSING && !qn_jv_eq(vm, l->changed, v, &same)) return false;
    if (!same) l->changed = v;
    *out = qn_jv_bool(!same);
    return true;
}

static bool cycler_next(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jcycler *y = c->a[0].cycler;
    (void)vm;
    *out = y->l->v[y->at];
    y->at = (y->at + 1) % y->l->n;
    return true;
}

static bool cycler_reset(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)vm;
    c->a[0].cycler->at = 0;
    *out = qn_jv_none();
    return true;
}

/* ---- the tables ---- */

static const qn_jfn methods_list[] = {
    { "copy", "self", self_copy }, { "count", "self,", seq_count }, { "index", "self,,?,?", seq_index }, { NULL, NULL, NULL },
};
static const qn_jfn methods_tuple[] = { { "count", "self,", seq_count }, { "index", "self,,?,?", seq_index }, { NULL, NULL, NULL } };
static const qn_jfn methods_dict[] = {
    { "copy", "self", self_copy },   { "fromkeys", "self,,?", dict_fromkeys }, { "get", "self,,?", dict_get }, { "items", "self", dict_items },
    { "keys", "self", dict_keys },   { "values", "self", dict_values },        { NULL, NULL, NULL },
};
static const qn_jfn methods_int[] = {
    { "bit_count", "self", int_bit_count }, { "bit_length", "self", int_bit_length }, { "conjugate", "self", number_conjugate }, { NULL, NULL, NULL },
};
static const qn_jfn methods_float[] = { { "conjugate", "self", number_conjugate }, { "is_integer", "self", float_is_integer }, { NULL, NULL, NULL } };
static const qn_jfn methods_loop[] = { { "changed", "self,*", loop_changed }, { "cycle", "self,*", loop_cycle }, { NULL, NULL, NULL } };
static const qn_jfn methods_cycler[] = { { "next", "self", cycler_next }, { "reset", "self", cycler_reset }, { NULL, NULL, NULL } };

const qn_jfn *qn_jmethod_find(qn_jval self, const qn_jstr *name)
{
    static const qn_jfn *const tables[] = {
        [QN_J_BOOL] = methods_int,   [QN_J_INT] = methods_int,     [QN_J_FLOAT] = methods_float, [QN_J_STR] = qn_jmethods_str,
        [QN_J_LIST] = methods_list,  [QN_J_TUPLE] = methods_tuple, [QN_J_DICT] = methods_dict,   [QN_J_RANGE] = methods_tuple,
        [QN_J_LOOP] = methods_loop,  [QN_J_CYCLER] = methods_cycler, [QN_J_BLOCK] = NULL,
    };
    return tables[self.type] ? qn_jfn_in(tables[self.type], name) : NULL;
}

bool qn_jmethod_unsafe(qn_jval self, const qn_jstr *name)
{
    static const char *const list[] = { "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove", NULL };
    static const char *const dict[] = { "clear", "pop", "popitem", "setdefault", "update", NULL };
    const char *const *names = self.type == QN_J_LIST ? list : self.type == QN_J_DICT ? dict : NULL;
    for (; names && *names; names++)
        if (qn_js_is(name, *names)) return true;
    return false;
}
