/* The filters of Jinja: their table, and those on sequences and single values. Text is in jfilter_text.c. */
#include "src/chat/jfilter.h"

#include <math.h>
#include <string.h>

/* ---- keys: attribute="a.0.b", ignoring case ---- */

/* Follow "a.0.b" or a number from item; missing steps become `otherwise` when that is given. */
static bool follow(qn_jvm *vm, qn_jval item, qn_jval path, qn_jval otherwise, qn_jval *out)
{
    *out = item;
    if (!qn_jarg_given(path) || path.type == QN_J_NONE) return true;
    const bool defaults = qn_jarg_given(otherwise) && otherwise.type != QN_J_NONE;
    if (path.type != QN_J_STR) {
        if (!qn_jattr_item(vm, *out, path, out)) return false;
        if (defaults && out->type == QN_J_UNDEF) *out = otherwise;
        return true;
    }
    for (size_t at = 0; at <= path.s->n;) {
        const char *dot = at < path.s->n ? memchr(path.s->p + at, '.', path.s->n - at) : NULL;
        const size_t end = dot ? (size_t)(dot - path.s->p) : path.s->n;
        const qn_jstr *part = qn_js_sub(vm, path.s, at, end);
        if (!part) return false;
        bool digits = part->n > 0;
        for (size_t i = 0; i < part->n; i++) digits = digits && part->p[i] >= '0' && part->p[i] <= '9';
        qn_jval key = qn_jv_str(part);
        if (digits && !qn_jnum_int(vm, part, 10, &key)) return false;
        if (!qn_jattr_item(vm, *out, key, out)) return false;
        if (defaults && out->type == QN_J_UNDEF) *out = otherwise;
        at = end + 1;
    }
    return true;
}

static bool fold(qn_jvm *vm, qn_jval *v, bool case_sensitive)
{
    if (case_sensitive || v->type != QN_J_STR) return true;
    qn_jbuf b = { .vm = vm };
    return qn_jbuf_case(&b, v->s, QN_JCASE_LOWER) && qn_jbuf_value(&b, false, v);
}

static bool flag(qn_jvm *vm, qn_jval v)
{
    return qn_jarg_given(v) && qn_jv_truth(vm, v);
}

/* ---- map, select, reject ---- */

static const qn_jval *named(const qn_jargs *args, const char *name)
{
    for (size_t i = 0; i < args->n_kw; i++)
        if (qn_js_is(args->name[i], name)) return &args->kw[i];
    return NULL;
}

static bool map_attribute(qn_jvm *vm, const qn_jargs *raw, const qn_jlist *from, qn_jlist *to)
{
    const qn_jval *path = named(raw, "attribute"), *otherwise = named(raw, "default"), none = { 0 };
    if (raw->n_kw != 1u + (otherwise != NULL)) return qn_jvm_fail(vm, "map: unexpected keyword argument");
    for (size_t i = 0; i < from->n; i++) {
        qn_jval v;
        if (!follow(vm, from->v[i], *path, otherwise ? *otherwise : none, &v) || !qn_jl_add(vm, to, v)) return false;
    }
    return true;
}

static bool map_filter(qn_jvm *vm, const qn_jargs *raw, const qn_jlist *from, qn_jlist *to)
{
    if (!raw->n_pos) return qn_jvm_fail(vm, "map requires a filter argument");
    const qn_jstr *name = qn_jarg_str(vm, raw->pos[0]);
    const qn_jfn *fn = name ? qn_jfilter_find(name) : NULL;
    if (!fn) return qn_jvm_fail(vm, "map: no such filter");
    qn_jargs rest = *raw;
    rest.pos++;
    rest.n_pos--;
    for (size_t i = 0; i < from->n; i++) {
        qn_jval v;
        if (!qn_jcall_native(vm, fn, from->v[i], &rest, &v) || !qn_jl_add(vm, to, v)) return false;
    }
    return true;
}

static bool filter_map(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *to = qn_jl_new(vm, 0), *from;
    if (!to) return false;
    if (qn_jv_truth(vm, c->a[0])) {
        if (!qn_jv_list(vm, c->a[0], &from)) return false;
        const bool attribute = !c->raw->n_pos && named(c->raw, "attribute");
        if (!(attribute ? map_attribute : map_filter)(vm, c->raw, from, to)) return false;
    }
    return qn_jv_gen(vm, to, "generator", out);
}

/* select, reject: test(item); selectattr, rejectattr: test(item.path). */
static bool pick(qn_jvm *vm, qn_jcall *c, bool want, bool attr, qn_jval *out)
{
    qn_jlist *to = qn_jl_new(vm, 0), *from;
    const size_t off = attr;
    const qn_jval none = { 0 };
    const qn_jfn *test = NULL;
    qn_jargs rest = *c->raw;
    if (!to || !qn_jv_truth(vm, c->a[0])) return to && qn_jv_gen(vm, to, "generator", out);
    if (rest.n_pos < off) return qn_jvm_fail(vm, "Missing parameter for attribute name");
    if (rest.n_pos > off) {
        const qn_jstr *name = qn_jarg_str(vm, rest.pos[off]);
        if (!name || !(test = qn_jtest_find(name))) return qn_jvm_fail(vm, "%s: no such test", c->fn->name);
        rest.pos += off + 1;
        rest.n_pos -= off + 1;
    }
    if (!qn_jv_list(vm, c->a[0], &from)) return false;
    for (size_t i = 0; i < from->n; i++) {
        qn_jval v;
        if (!follow(vm, from->v[i], attr ? c->raw->pos[0] : none, none, &v)) return false;
        bool yes = qn_jv_truth(vm, v);
        if (test && !qn_jfn_is_test(vm, test, v, &rest, &yes)) return false;
        if (yes == want && !qn_jl_add(vm, to, from->v[i])) return false;
    }
    return qn_jv_gen(vm, to, "generator", out);
}

static bool filter_select(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return pick(vm, c, true, false, out);
}

static bool filter_reject(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return pick(vm, c, false, false, out);
}

static bool filter_selectattr(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return pick(vm, c, true, true, out);
}

static bool filter_rejectattr(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return pick(vm, c, false, true, out);
}

/* ---- order ---- */

/* Key of an item for sort: one value, or a list for "a,b". */
static bool sort_key(qn_jvm *vm, qn_jval item, qn_jval paths, bool case_sensitive, qn_jval *out)
{
    const qn_jval none = { 0 };
    qn_jlist *l = qn_jl_new(vm, 1);
    if (!l) return false;
    if (paths.type != QN_J_STR) {
        if (!follow(vm, item, paths, none, out) || !fold(vm, out, case_sensitive) || !qn_jl_add(vm, l, *out)) return false;
    } else {
        for (size_t at = 0; at <= paths.s->n;) {
            const char *comma = at < paths.s->n ? memchr(paths.s->p + at, ',', paths.s->n - at) : NULL;
            const size_t end = comma ? (size_t)(comma - paths.s->p) : paths.s->n;
            const qn_jstr *path = qn_js_sub(vm, paths.s, at, end);
            qn_jval v;
            if (!path || !follow(vm, item, qn_jv_str(path), none, &v) || !fold(vm, &v, case_sensitive) || !qn_jl_add(vm, l, v)) return false;
            at = end + 1;
        }
    }
    *out = QN_JV(QN_J_LIST, l, l);
    return true;
}

static bool filter_sort(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *l;
    if (!qn_jv_list(vm, c->a[0], &l)) return false;
    qn_jval *key = qn_jvm_new(vm, l->n, sizeof *key);
    if (!key) return false;
    for (size_t i = 0; i < l->n; i++)
        if (!sort_key(vm, l->v[i], c->a[3], flag(vm, c->a[2]), &key[i])) return false;
    if (!qn_jv_sort(vm, key, l->v, l->n, flag(vm, c->a[1]))) return false;
    *out = QN_JV(QN_J_LIST, l, l);
    return true;
}

static bool filter_dictsort(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jval by = c->a[2];
    const bool by_value = qn_jarg_given(by) && by.type == QN_J_STR && qn_js_is(by.s, "value");
    if (qn_jarg_given(by) && !by_value && !(by.type == QN_J_STR && qn_js_is(by.s, "key")))
        return qn_jvm_fail(vm, "You can only sort by either \"key\" or \"value\"");
    if (c->a[0].type == QN_J_UNDEF) return qn_jv_undef_fail(vm, c->a[0]);
    if (c->a[0].type != QN_J_DICT) return qn_jvm_fail(vm, "'%s' object has no attribute 'items'", qn_jv_type_name(c->a[0]));
    qn_jview view = { c->a[0].d, 2 };
    qn_jlist *l;
    if (!qn_jv_list(vm, QN_JV(QN_J_VIEW, view, &view), &l)) return false;
    qn_jval *key = qn_jvm_new(vm, l->n, sizeof *key);
    if (!key) return false;
    for (size_t i = 0; i < l->n; i++) {
        key[i] = l->v[i].l->v[by_value];
        if (!fold(vm, &key[i], flag(vm, c->a[1]))) return false;
    }
    if (!qn_jv_sort(vm, key, l->v, l->n, flag(vm, c->a[3]))) return false;
    *out = QN_JV(QN_J_LIST, l, l);
    return true;
}

static bool filter_unique(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *from, *to = qn_jl_new(vm, 0);
    qn_jdict *seen = qn_jd_new(vm);
    const qn_jval none = { 0 };
    if (!to || !seen || !qn_jv_list(vm, c->a[0], &from)) return false;
    for (size_t i = 0; i < from->n; i++) {
        qn_jval key;
        const qn_jval *have;
        if (!follow(vm, from->v[i], c->a[2], none, &key) || !fold(vm, &key, flag(vm, c->a[1])) || !qn_jd_get(vm, seen, key, &have)) return false;
        if (have) continue;
        if (!qn_jd_set(vm, seen, key, none) || !qn_jl_add(vm, to, from->v[i])) return false;
    }
    return qn_jv_gen(vm, to, "generator", out);
}

static bool extreme(qn_jvm *vm, qn_jcall *c, bool max, qn_jval *out)
{
    qn_jseq q;
    qn_jval best = { 0 }, best_key = { 0 };
    const qn_jval none = { 0 };
    if (!qn_jv_seq(vm, c->a[0], &q)) return false;
    if (!q.n) return qn_jv_undef_hint(vm, "No aggregated item, sequence was empty.", out);
    for (size_t i = 0; i < q.n; i++) {
        qn_jval v, key;
        bool better = i == 0;
        if (!qn_jseq_at(vm, &q, i, &v) || !follow(vm, v, c->a[2], none, &key) || !fold(vm, &key, flag(vm, c->a[1]))) return false;
        if (i && !(max ? qn_jv_less(vm, best_key, key, ">", &better) : qn_jv_less(vm, key, best_key, "<", &better))) return false;
        if (better) best = v, best_key = key;
    }
    *out = best;
    return true;
}

static bool filter_min(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return extreme(vm, c, false, out);
}

static bool filter_max(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    return extreme(vm, c, true, out);
}

/* ---- groups ---- */

static bool add_group(qn_jvm *vm, qn_jlist *out, qn_jval key, qn_jlist *items)
{
    qn_jlist *pair = qn_jl_new(vm, 2);
    if (!pair || !qn_jl_add(vm, pair, key) || !qn_jl_add(vm, pair, QN_JV(QN_J_LIST, l, items))) return false;
    qn_jval v = QN_JV(QN_J_TUPLE, l, pair);
    v.group = true;
    return qn_jl_add(vm, out, v);
}

static bool filter_groupby(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *l, *groups = qn_jl_new(vm, 0), *group = NULL;
    if (!groups || !qn_jv_list(vm, c->a[0], &l)) return false;
    qn_jval *key = qn_jvm_new(vm, l->n, sizeof *key), *pair = qn_jvm_new(vm, l->n, sizeof *pair), group_key = { 0 };
    if (!key || !pair) return false;
    for (size_t i = 0; i < l->n; i++) { /* sorted together: (folded key, item) */
        qn_jlist *p = qn_jl_new(vm, 2);
        if (!p || !follow(vm, l->v[i], c->a[1], c->a[2], &key[i]) || !fold(vm, &key[i], flag(vm, c->a[3]))) return false;
        p->v[p->n++] = key[i];
        p->v[p->n++] = l->v[i];
        pair[i] = QN_JV(QN_J_TUPLE, l, p);
    }
    if (!qn_jv_sort(vm, key, pair, l->n, false)) return false;
    for (size_t i = 0; i < l->n; i++) {
        const qn_jval k = pair[i].l->v[0], item = pair[i].l->v[1];
        bool same = false;
        if (group && !qn_jv_eq(vm, group_key, k, &same)) return false;
        if (!same) {
            qn_jval shown; /* the first item's key as it is written */
            if (!(group = qn_jl_new(vm, 0)) || !follow(vm, item, c->a[1], c->a[2], &shown) || !add_group(vm, groups, shown, group)) return false;
            group_key = k;
        }
        if (!qn_jl_add(vm, group, item)) return false;
    }
    *out = QN_JV(QN_J_LIST, l, groups);
    return true;
}

static bool filter_batch(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *from, *to = qn_jl_new(vm, 0), *part = NULL;
    int64_t n;
    if (!to || !qn_jarg_int(vm, c->a[1], &n) || !qn_jv_list(vm, c->a[0], &from)) return false;
    for (size_t i = 0; i < from->n; i++) {
        if (!part || (int64_t)part->n == n) {
            if (!(part = qn_jl_new(vm, 0)) || !qn_jl_add(vm, to, QN_JV(QN_J_LIST, l, part))) return false;
        }
        if (!qn_jl_add(vm, part, from->v[i])) return false;
    }
    const bool fill = qn_jarg_given(c->a[2]) && c->a[2].type != QN_J_NONE;
    while (part && fill && (int64_t)part->n < n)
        if (!qn_jvm_charge(vm, 1) || !qn_jl_add(vm, part, c->a[2])) return false;
    return qn_jv_gen(vm, to, "generator", out);
}

static bool filter_slice(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *from, *to = qn_jl_new(vm, 0);
    int64_t n;
    if (!to || !qn_jarg_int(vm, c->a[1], &n) || !qn_jv_list(vm, c->a[0], &from)) return false;
    if (n == 0) return qn_jvm_fail(vm, "integer division or modulo by zero");
    const bool fill = qn_jarg_given(c->a[2]) && c->a[2].type != QN_J_NONE;
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const size_t each = from->n / (size_t)n, extra = from->n % (size_t)n, take = each + ((size_t)i < extra);
        qn_jlist *part = qn_jl_new(vm, take);
        if (!part || !qn_jvm_charge(vm, 1)) return false;
        for (size_t k = 0; k < take; k++) part->v[part->n++] = from->v[at++];
        if (fill && (size_t)i >= extra && !qn_jl_add(vm, part, c->a[2])) return false;
        if (!qn_jl_add(vm, to, QN_JV(QN_J_LIST, l, part))) return false;
    }
    return qn_jv_gen(vm, to, "generator", out);
}

/* ---- single items ---- */

static bool filter_first(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    if (c->a[0].type == QN_J_GEN) { /* takes one item and leaves the rest */
        qn_jgen *g = c->a[0].gen;
        if (g->at == g->l->n) return qn_jv_undef_hint(vm, "No first item, sequence was empty.", out);
        *out = g->l->v[g->at++];
        return true;
    }
    qn_jseq q;
    if (!qn_jv_seq(vm, c->a[0], &q)) return false;
    if (!q.n) return qn_jv_undef_hint(vm, "No first item, sequence was empty.", out);
    return qn_jseq_at(vm, &q, 0, out);
}

static bool reversible(qn_jval v)
{
    return v.type != QN_J_GEN && v.type != QN_J_LOOP && qn_jv_iterable(v);
}

static bool filter_last(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jseq q;
    if (!reversible(c->a[0])) return qn_jvm_fail(vm, "'%s' object is not reversible", qn_jv_type_name(c->a[0]));
    if (!qn_jv_seq(vm, c->a[0], &q)) return false;
    if (!q.n) return qn_jv_undef_hint(vm, "No last item, sequence was empty.", out);
    return qn_jseq_at(vm, &q, q.n - 1, out);
}

static bool filter_reverse(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *l;
    if (!qn_jv_iterable(c->a[0])) return qn_jvm_fail(vm, "argument must be iterable");
    if (c->a[0].type == QN_J_STR) return qn_jop_slice(vm, c->a[0], qn_jv_none(), qn_jv_none(), qn_jv_int(-1), out);
    if (!qn_jv_list(vm, c->a[0], &l)) return false;
    for (size_t i = 0; i < l->n / 2; i++) {
        const qn_jval t = l->v[i];
        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = t;
    }
    if (!reversible(c->a[0])) return *out = QN_JV(QN_J_LIST, l, l), true;
    return qn_jv_gen(vm, l, c->a[0].type == QN_J_LIST ? "list_reverseiterator" : "reversed", out);
}

static bool filter_list(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *l;
    if (!qn_jv_list(vm, c->a[0], &l)) return false;
    *out = QN_JV(QN_J_LIST, l, l);
    return true;
}

static bool filter_items(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *l = NULL;
    if (c->a[0].type == QN_J_UNDEF) {
        if (!(l = qn_jl_new(vm, 0))) return false;
    } else if (c->a[0].type == QN_J_DICT) {
        qn_jview view = { c->a[0].d, 2 };
        if (!qn_jv_list(vm, QN_JV(QN_J_VIEW, view, &view), &l)) return false;
    } else {
        return qn_jvm_fail(vm, "Can only get item pairs from a mapping.");
    }
    return qn_jv_gen(vm, l, "generator", out);
}

static bool filter_length(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    int64_t n;
    if (!qn_jv_len(vm, c->a[0], &n)) return false;
    *out = qn_jv_int(n);
    return true;
}

static bool filter_default(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const bool use = c->a[0].type == QN_J_UNDEF || (flag(vm, c->a[2]) && !qn_jv_truth(vm, c->a[0]));
    const qn_jstr *empty = qn_js_lit(vm, "");
    if (!empty) return false;
    *out = !use ? c->a[0] : qn_jarg_given(c->a[1]) ? c->a[1] : qn_jv_str(empty);
    return true;
}

static bool filter_attr(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *name = qn_jarg_str(vm, c->a[1]);
    bool found;
    if (!name) return false;
    if (c->a[0].type == QN_J_UNDEF) return qn_jv_undef_fail(vm, c->a[0]);
    if (!qn_jattr_find(vm, c->a[0], name, &found, out)) return false;
    return found || qn_jv_undef_attr(vm, QN_JU_ATTR, c->a[0], qn_jv_str(name), out);
}

/* ---- numbers ---- */

static bool filter_abs(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jval v = c->a[0];
    if (v.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, v);
    if (!qn_jv_numeric(v)) return qn_jvm_fail(vm, "bad operand type for abs(): '%s'", qn_jv_type_name(v));
    if (v.type == QN_J_FLOAT) return *out = qn_jv_float(fabs(v.f)), true;
    return qn_jop_unary(vm, qn_jv_as_int(v) < 0 ? '-' : '+', v, out);
}

/* int(v, base) when it can be had; *ok is false where Python raises TypeError or ValueError. */
static bool to_int(qn_jvm *vm, qn_jval v, int64_t base, bool *ok, qn_jval *out)
{
    *ok = true;
    if (v.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, v);
    if (v.type == QN_J_STR && base == 10 && qn_jnum_int(vm, v.s, 10, out)) return true;
    if (v.type == QN_J_STR && base != 10 && (base == 0 || (base >= 2 && base <= 36)) && qn_jnum_int(vm, v.s, (int)base, out)) return true;
    double f = NAN;
    if (v.type == QN_J_STR) {
        *ok = qn_jnum_float(v.s, &f) && isfinite(f);
        return vm->status == QN_OK && (!*ok || qn_jnum_trunc(vm, f, out));
    }
    if (v.type == QN_J_BIG) return *out = v, true;
    if (qn_jv_integral(v)) return *out = qn_jv_int(qn_jv_as_int(v)), true;
    *ok = v.type == QN_J_FLOAT && isfinite(v.f);
    if (v.type == QN_J_FLOAT && isinf(v.f)) return qn_jvm_fail(vm, "cannot convert float infinity to integer");
    return !*ok || qn_jnum_trunc(vm, v.f, out);
}

static bool filter_int(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    int64_t base;
    bool ok;
    if (!qn_jarg_int_or(vm, c->a[2], 10, &base) || !to_int(vm, c->a[0], base, &ok, out)) return false;
    if (!ok) *out = qn_jarg_given(c->a[1]) ? c->a[1] : qn_jv_int(0);
    return true;
}

static bool filter_float(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jval v = c->a[0];
    double f;
    if (v.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, v);
    *out = qn_jarg_given(c->a[1]) ? c->a[1] : qn_jv_float(0);
    if (qn_jv_numeric(v)) *out = qn_jv_float(qn_jv_as_float(v));
    else if ((v.type == QN_J_STR || v.type == QN_J_BIG) && qn_jnum_float(v.s, &f)) *out = qn_jv_float(f);
    return true;
}

/* round() of an integer to tens, hundreds ...: half to even. */
static bool round_int(qn_jvm *vm, int64_t i, int64_t digits, qn_jval *out)
{
    *out = qn_jv_int(i);
    if (digits >= 0) return true;
    if (digits < -18) return *out = qn_jv_int(0), true;
    int64_t scale = 1;
    for (; digits < 0; digits++) scale *= 10;
    int64_t rest = i % scale, down = i - rest;
    if (rest < 0) {
        rest += scale;
        if (__builtin_sub_overflow(down, scale, &down)) return qn_jvm_stop(vm, QN_ERR_LIMIT, "an integer leaves the range of 64 bits");
    }
    const bool up = rest > scale / 2 || (rest == scale / 2 && (down / scale) % 2 != 0);
    if (up && __builtin_add_overflow(down, scale, &down)) return qn_jvm_stop(vm, QN_ERR_LIMIT, "an integer leaves the range of 64 bits");
    *out = qn_jv_int(down);
    return true;
}

static bool filter_round(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jval v = c->a[0], method = c->a[2];
    int64_t digits;
    if (!qn_jarg_int_or(vm, c->a[1], 0, &digits)) return false;
    const bool common = !qn_jarg_given(method) || (method.type == QN_J_STR && qn_js_is(method.s, "common"));
    const bool up = method.type == QN_J_STR && qn_js_is(method.s, "ceil"), down = method.type == QN_J_STR && qn_js_is(method.s, "floor");
    if (!common && !up && !down) return qn_jvm_fail(vm, "method must be common, ceil or floor");
    if (v.type == QN_J_UNDEF) return qn_jv_undef_fail(vm, v);
    if (!qn_jv_numeric(v)) return qn_jvm_fail(vm, "type %s doesn't define __round__ method", qn_jv_type_name(v));
    if (common && v.type != QN_J_FLOAT) return round_int(vm, qn_jv_as_int(v), digits, out);
    if (digits > 300 || digits < -300) digits = digits > 0 ? 300 : -300;
    if (common) return *out = qn_jv_float(qn_jnum_round(v.f, (int)digits)), true;
    const double scale = pow(10, (double)digits), scaled = qn_jv_as_float(v) * scale;
    if (!isfinite(scaled)) return qn_jvm_fail(vm, "cannot convert float infinity to integer");
    *out = qn_jv_float((up ? ceil(scaled) : floor(scaled)) / scale);
    return true;
}

static bool filter_sum(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jseq q;
    const qn_jval none = { 0 };
    *out = qn_jarg_given(c->a[2]) ? c->a[2] : qn_jv_int(0);
    if (out->type == QN_J_STR) return qn_jvm_fail(vm, "sum() can't sum strings [use ''.join(seq) instead]");
    if (!qn_jv_seq(vm, c->a[0], &q)) return false;
    for (size_t i = 0; i < q.n; i++) {
        qn_jval v;
        if (!qn_jseq_at(vm, &q, i, &v) || !follow(vm, v, c->a[1], none, &v) || !qn_jop_binary(vm, QN_JOP_ADD, *out, v, out)) return false;
    }
    return true;
}

static bool filter_refused(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)out;
    return qn_jvm_fail(vm, "the filter '%s' is not supported: a prompt must not depend on chance", c->fn->name);
}

/* ---- join ---- */

static bool filter_join(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *l;
    qn_jbuf b = { .vm = vm };
    const qn_jval none = { 0 };
    if (!qn_jv_list(vm, c->a[0], &l)) return false;
    bool markup = vm->autoescape && c->a[1].markup;
    for (size_t i = 0; i < l->n; i++) {
        if (!follow(vm, l->v[i], c->a[2], none, &l->v[i])) return false;
        markup = markup || (vm->autoescape && l->v[i].markup);
    }
    const qn_jstr *sep = qn_js_lit(vm, "");
    if (qn_jarg_given(c->a[1])) sep = markup ? qn_jv_escape(vm, c->a[1]) : qn_jv_to_str(vm, c->a[1]);
    for (size_t i = 0; sep && i < l->n; i++) {
        const qn_jstr *s = markup ? qn_jv_escape(vm, l->v[i]) : qn_jv_to_str(vm, l->v[i]);
        if (!s || (i && !qn_jbuf_str(&b, sep)) || !qn_jbuf_str(&b, s)) return false;
    }
    return sep && qn_jbuf_value(&b, markup, out);
}

/* ---- the table ---- */

static const qn_jfn filters[] = {
    { "abs", "value", filter_abs },
    { "attr", "value,name", filter_attr },
    { "batch", "value,linecount,fill_with?", filter_batch },
    { "capitalize", "s", qn_jfilter_capitalize },
    { "center", "value,width?", qn_jfilter_center },
    { "count", "value", filter_length },
    { "d", "value,default_value?,boolean?", filter_default },
    { "default", "value,default_value?,boolean?", filter_default },
    { "dictsort", "value,case_sensitive?,by?,reverse?", filter_dictsort },
    { "e", "s", qn_jfilter_escape },
    { "escape", "s", qn_jfilter_escape },
    { "filesizeformat", "value,binary?", qn_jfilter_filesizeformat },
    { "first", "seq", filter_first },
    { "float", "value,default?", filter_float },
    { "forceescape", "value", qn_jfilter_forceescape },
    { "format", "value,*", qn_jfilter_format },
    { "groupby", "value,attribute,default?,case_sensitive?", filter_groupby },
    { "indent", "s,width?,first?,blank?", qn_jfilter_indent },
    { "int", "value,default?,base?", filter_int },
    { "items", "value", filter_items },
    { "join", "value,d?,attribute?", filter_join },
    { "last", "seq", filter_last },
    { "length", "value", filter_length },
    { "list", "value", filter_list },
    { "lower", "s", qn_jfilter_lower },
    { "map", "value,*", filter_map },
    { "max", "value,case_sensitive?,attribute?", filter_max },
    { "min", "value,case_sensitive?,attribute?", filter_min },
    { "pprint", "value", qn_jfilter_pprint },
    { "random", "seq", filter_refused },
    { "reject", "value,*", filter_reject },
    { "rejectattr", "value,*", filter_rejectattr },
    { "replace", "s,old,new,count?", qn_jfilter_replace },
    { "reverse", "value", filter_reverse },
    { "round", "value,precision?,method?", filter_round },
    { "safe", "value", qn_jfilter_safe },
    { "select", "value,*", filter_select },
    { "selectattr", "value,*", filter_selectattr },
    { "slice", "value,slices,fill_with?", filter_slice },
    { "sort", "value,reverse?,case_sensitive?,attribute?", filter_sort },
    { "string", "s", qn_jfilter_string },
    { "striptags", "value", qn_jfilter_striptags },
    { "sum", "iterable,attribute?,start?", filter_sum },
    { "title", "s", qn_jfilter_title },
    { "tojson", "value,ensure_ascii?,indent?,separators?,sort_keys?", qn_jfilter_tojson },
    { "trim", "value,chars?", qn_jfilter_trim },
    { "truncate", "s,length?,killwords?,end?,leeway?", qn_jfilter_truncate },
    { "unique", "value,case_sensitive?,attribute?", filter_unique },
    { "upper", "s", qn_jfilter_upper },
    { "urlencode", "value", qn_jfilter_urlencode },
    { "wordcount", "s", qn_jfilter_wordcount },
    { "wordwrap", "s,width?,break_long_words?,wrapstring?,break_on_hyphens?", qn_jfilter_wordwrap },
    { "xmlattr", "d,autospace?", qn_jfilter_xmlattr },
    { NULL, NULL, NULL },
};

const qn_jfn *qn_jfilter_find(const qn_jstr *name)
{
    return qn_jfn_in(filters, name);
}
