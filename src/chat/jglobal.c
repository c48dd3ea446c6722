/* The global functions of a chat template. */
#include "src/chat/jvm.h"

#include <string.h>

enum { RANGE_MAX = 100000 }; /* the sandbox's limit */

static bool new_range(qn_jvm *vm, qn_jrange r, qn_jval *out)
{
    const int64_t hi = r.step > 0 ? r.stop : r.start, lo = r.step > 0 ? r.start : r.stop;
    const uint64_t step = r.step > 0 ? (uint64_t)r.step : 0 - (uint64_t)r.step;
    const uint64_t n = hi > lo ? ((uint64_t)hi - (uint64_t)lo - 1) / step + 1 : 0;
    if (n > RANGE_MAX)
        return qn_jvm_fail(vm, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", (int)RANGE_MAX);
    qn_jrange *p = qn_jvm_new(vm, 1, sizeof *p);
    if (!p) return false;
    r.n = (int64_t)n;
    *p = r;
    *out = QN_JV(QN_J_RANGE, range, p);
    return true;
}

static bool global_range(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jrange r = { .step = 1 };
    if (!qn_jarg_int(vm, c->a[0], &r.stop)) return false;
    if (qn_jarg_given(c->a[1])) {
        r.start = r.stop;
        if (!qn_jarg_int(vm, c->a[1], &r.stop)) return false;
    }
    if (!qn_jarg_int_or(vm, c->a[2], 1, &r.step)) return false;
    if (r.step == 0) return qn_jvm_fail(vm, "range() arg 3 must not be zero");
    return new_range(vm, r, out);
}

/* A mapping or an iterable of pairs, then keywords. */
static bool fill_dict(qn_jvm *vm, const qn_jargs *args, qn_jdict *d)
{
    if (args->n_pos > 1) return qn_jvm_fail(vm, "dict expected at most 1 argument, got %zu", args->n_pos);
    if (args->n_pos && args->pos[0].type == QN_J_DICT) {
        const qn_jdict *from = args->pos[0].d;
        for (size_t i = 0; i < from->n; i++)
            if (!qn_jd_set(vm, d, from->key[i], from->val[i])) return false;
    } else if (args->n_pos) {
        qn_jlist *l, *pair;
        if (!qn_jv_list(vm, args->pos[0], &l)) return false;
        for (size_t i = 0; i < l->n; i++) {
            if (!qn_jv_list(vm, l->v[i], &pair)) return false;
            if (pair->n != 2) return qn_jvm_fail(vm, "dictionary update sequence element #%zu has length %zu; 2 is required", i, pair->n);
            if (!qn_jd_set(vm, d, pair->v[0], pair->v[1])) return false;
        }
    }
    for (size_t i = 0; i < args->n_kw; i++)
        if (!qn_jd_set(vm, d, qn_jv_str(args->name[i]), args->kw[i])) return false;
    return true;
}

static bool global_dict(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jdict *d = qn_jd_new(vm);
    if (!d || !fill_dict(vm, c->raw, d)) return false;
    *out = QN_JV(QN_J_DICT, d, d);
    return true;
}

static bool global_namespace(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jdict *d = qn_jd_new(vm);
    if (!d || !fill_dict(vm, c->raw, d)) return false;
    *out = QN_JV(QN_J_SPACE, d, d);
    return true;
}

static bool new_cycler(qn_jvm *vm, qn_jlist *l, int type, qn_jval *out)
{
    qn_jcycler *y = qn_jvm_new(vm, 1, sizeof *y);
    if (!y) return false;
    y->l = l;
    *out = QN_JV((uint8_t)type, cycler, y);
    return true;
}

static bool global_cycler(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    if (!c->raw->n_pos) return qn_jvm_fail(vm, "at least one item has to be provided");
    qn_jlist *l = qn_jl_new(vm, c->raw->n_pos);
    if (!l) return false;
    for (size_t i = 0; i < c->raw->n_pos; i++) l->v[l->n++] = c->raw->pos[i];
    return new_cycler(vm, l, QN_J_CYCLER, out);
}

static bool global_joiner(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jlist *l = qn_jl_new(vm, 1);
    const qn_jstr *comma = qn_js_lit(vm, ", ");
    if (!l || !comma || !qn_jl_add(vm, l, qn_jarg_given(c->a[0]) ? c->a[0] : qn_jv_str(comma))) return false;
    return new_cycler(vm, l, QN_J_JOINER, out);
}

/* The template's own words, nothing else. */
static bool global_raise_exception(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)out;
    const qn_jstr *s = qn_jv_to_str(vm, c->a[0]);
    return s && qn_jvm_stop(vm, QN_ERR_TEMPLATE, "%.*s", (int)(s->n < 480 ? s->n : 480), s->p);
}

static bool global_strftime_now(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    const qn_jstr *format = qn_jarg_str(vm, c->a[0]);
    qn_jbuf b = { .vm = vm };
    return format && qn_jbuf_strftime(&b, vm->now, format) && qn_jbuf_value(&b, false, out);
}

static bool global_lipsum(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    (void)c, (void)out;
    return qn_jvm_fail(vm, "lipsum is not supported: a prompt must not depend on chance");
}

static const qn_jfn globals[] = {
    { "range", ",?,?", global_range },
    { "dict", "*", global_dict },
    { "namespace", "*", global_namespace },
    { "cycler", "*", global_cycler },
    { "joiner", "sep?", global_joiner },
    { "raise_exception", "message", global_raise_exception },
    { "strftime_now", "format", global_strftime_now },
    { "lipsum", "*", global_lipsum },
    { NULL, NULL, NULL },
};

const qn_jfn *qn_jglobal_find(const qn_jstr *name)
{
    return qn_jfn_in(globals, name);
}
