#include "src/chat/jvm.h"

#include <math.h>
#include <string.h>

/* ---- lists ---- */

qn_jlist *qn_jl_new(qn_jvm *vm, size_t cap)
{
    qn_jlist *l = qn_jvm_new(vm, 1, sizeof *l);
    if (!l) return NULL;
    l->cap = cap;
    if (cap && !(l->v = qn_jvm_new(vm, cap, sizeof *l->v))) return NULL;
    return l;
}

bool qn_jl_add(qn_jvm *vm, qn_jlist *l, qn_jval v)
{
    if (l->n == l->cap) {
        const size_t cap = l->cap ? l->cap * 2 : 4;
        qn_jval *p = qn_jarena_grow(vm->mem, l->v, l->cap * sizeof *p, cap * sizeof *p);
        if (!p) return qn_jvm_no_memory(vm);
        l->v = p;
        l->cap = cap;
    }
    l->v[l->n++] = v;
    return true;
}

/* ---- hashes: equal values have equal hashes, 1 == 1.0 == true included ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static uint64_t hash_bytes(uint64_t h, const char *p, size_t n)
{
    h = mix(h, n);
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t x;
        memcpy(&x, p, 8);
        h = mix(h, x);
    }
    uint64_t x = 0;
    memcpy(&x, p, n);
    return mix(h, x);
}

static uint64_t hash_float(uint64_t seed, double f)
{
    if (f == floor(f) && fabs(f) < 9e18) return mix(seed, (uint64_t)(int64_t)f);
    uint64_t x;
    memcpy(&x, &f, 8);
    return mix(seed, x);
}

bool qn_jv_hash(qn_jvm *vm, qn_jval v, uint64_t *out)
{
    uint64_t h = vm->seed;
    switch (v.type) {
    case QN_J_NONE:
    case QN_J_UNDEF: *out = mix(h, v.type); return true;
    case QN_J_BOOL:
    case QN_J_INT: *out = mix(h, (uint64_t)qn_jv_as_int(v)); return true;
    case QN_J_FLOAT: *out = hash_float(h, v.f); return true;
    case QN_J_BIG:
    case QN_J_STR: *out = hash_bytes(h, v.s->p, v.s->n); return qn_jvm_charge(vm, v.s->n / 64);
    case QN_J_LIST:
    case QN_J_DICT:
    case QN_J_SPACE: return qn_jvm_fail(vm, "unhashable type: '%s'", qn_jv_type_name(v));
    case QN_J_TUPLE: break;
    default: *out = mix(h, (uint64_t)(uintptr_t)v.l); return true;
    }
    if (!qn_jvm_enter_data(vm) || !qn_jvm_charge(vm, v.l->n)) return false;
    for (size_t i = 0; i < v.l->n; i++) {
        uint64_t x;
        if (!qn_jv_hash(vm, v.l->v[i], &x)) return false;
        h = mix(h, x);
    }
    qn_jvm_leave_data(vm);
    *out = h;
    return true;
}

/* ---- dicts ---- */

qn_jdict *qn_jd_new(qn_jvm *vm)
{
    return qn_jvm_new(vm, 1, sizeof(qn_jdict));
}

static bool same_key(qn_jvm *vm, const qn_jdict *d, size_t i, uint64_t hash, qn_jval key, bool *same)
{
    *same = false;
    if (d->hash[i] != hash) return true;
    return qn_jv_eq(vm, d->key[i], key, same);
}

/* Position of the key in *i, or d->n. */
static bool find(qn_jvm *vm, const qn_jdict *d, qn_jval key, uint64_t hash, size_t *i)
{
    bool same;
    if (!d->index) {
        for (*i = 0; *i < d->n; ++*i) {
            if (!same_key(vm, d, *i, hash, key, &same)) return false;
            if (same) return true;
        }
        return true;
    }
    for (size_t slot = hash & (d->n_index - 1); d->index[slot]; slot = (slot + 1) & (d->n_index - 1)) {
        *i = d->index[slot] - 1;
        if (!qn_jvm_charge(vm, 1) || !same_key(vm, d, *i, hash, key, &same)) return false;
        if (same) return true;
    }
    *i = d->n;
    return true;
}

static void enter(qn_jdict *d, size_t i)
{
    size_t slot = d->hash[i] & (d->n_index - 1);
    while (d->index[slot]) slot = (slot + 1) & (d->n_index - 1);
    d->index[slot] = (uint32_t)(i + 1);
}

static bool grow(qn_jvm *vm, qn_jdict *d)
{
    const size_t cap = d->cap ? d->cap * 2 : 4;
    if (cap > UINT32_MAX / 4) return qn_jvm_stop(vm, QN_ERR_LIMIT, "template line %d: makes a dict of too many pairs", (int)vm->line);
    qn_jval *key = qn_jarena_grow(vm->mem, d->key, d->cap * sizeof *key, cap * sizeof *key);
    if (!key) return qn_jvm_no_memory(vm);
    d->key = key;
    qn_jval *val = qn_jarena_grow(vm->mem, d->val, d->cap * sizeof *val, cap * sizeof *val);
    if (!val) return qn_jvm_no_memory(vm);
    d->val = val;
    uint64_t *hash = qn_jarena_grow(vm->mem, d->hash, d->cap * sizeof *hash, cap * sizeof *hash);
    if (!hash) return qn_jvm_no_memory(vm);
    d->hash = hash;
    d->cap = cap;
    if (cap <= 8) return true;
    d->index = qn_jvm_new(vm, cap * 2, sizeof *d->index);
    if (!d->index) return false;
    d->n_index = cap * 2;
    for (size_t i = 0; i < d->n; i++) enter(d, i);
    return true;
}

bool qn_jd_set(qn_jvm *vm, qn_jdict *d, qn_jval key, qn_jval val)
{
    uint64_t hash = 0;
    size_t i;
    if (!qn_jv_hash(vm, key, &hash) || !find(vm, d, key, hash, &i)) return false;
    if (i == d->n) {
        if (d->n == d->cap && !grow(vm, d)) return false;
        d->key[i] = key;
        d->hash[i] = hash;
        d->n++;
        if (d->index) enter(d, i);
    }
    d->val[i] = val;
    return true;
}

bool qn_jd_get(qn_jvm *vm, const qn_jdict *d, qn_jval key, const qn_jval **found)
{
    uint64_t hash = 0;
    size_t i;
    *found = NULL;
    if (!qn_jv_hash(vm, key, &hash) || !find(vm, d, key, hash, &i)) return false;
    if (i < d->n) *found = &d->val[i];
    return true;
}

const qn_jval *qn_jd_get_text(qn_jvm *vm, const qn_jdict *d, const char *key)
{
    const qn_jstr s = { .p = key, .n = strlen(key), .n_chars = SIZE_MAX };
    const qn_jval *found;
    return qn_jd_get(vm, d, qn_jv_str(&s), &found) ? found : NULL;
}
