#include "src/token/work.h"

#include <stdlib.h>

void qn_work_free(qn_work *w)
{
    free(w->cp);
    free(w->cls);
    free(w->sym);
    free(w->heap);
    qn_buf_free(&w->text);
    *w = (qn_work){ 0 };
}

static bool room(qn_work *w, void *items, size_t *cap, size_t n_want, size_t size)
{
    if (!qn_grow((void **)items, cap, n_want, size)) w->failed = true;
    return !w->failed;
}

bool qn_work_cp(qn_work *w, uint32_t cp)
{
    const size_t n = w->n_cp + 1;
    if (n > w->cp_cap && !room(w, &w->cp, &w->cp_cap, n, sizeof *w->cp)) return false;
    if (n > w->cls_cap && !room(w, &w->cls, &w->cls_cap, n, sizeof *w->cls)) return false;
    w->cp[w->n_cp] = cp;
    w->cls[w->n_cp++] = qn_uni_class(cp);
    return true;
}

bool qn_work_decode(qn_work *w, qn_str text)
{
    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        i += qn_utf8_get(text.ptr + i, text.len - i, &cp);
        if (!qn_work_cp(w, cp)) return false;
    }
    return true;
}

bool qn_work_symbol(qn_work *w, uint32_t begin, uint32_t len, int32_t id, bool first)
{
    if (w->n_sym + 1 > w->sym_cap && !room(w, &w->sym, &w->sym_cap, w->n_sym + 1, sizeof *w->sym)) return false;
    const uint32_t i = (uint32_t)w->n_sym++;
    w->sym[i] = (qn_symbol){ first ? QN_NONE : i - 1, QN_NONE, begin, len, id };
    if (!first) w->sym[i - 1].next = i;
    return true;
}

static bool before(const qn_merge *a, const qn_merge *b)
{
    return a->order != b->order ? a->order < b->order : a->left < b->left;
}

bool qn_work_push(qn_work *w, qn_merge m)
{
    if (w->n_heap + 1 > w->heap_cap && !room(w, &w->heap, &w->heap_cap, w->n_heap + 1, sizeof *w->heap)) return false;
    size_t i = w->n_heap++;
    for (; i > 0 && before(&m, &w->heap[(i - 1) / 2]); i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = m;
    return true;
}

bool qn_work_pop(qn_work *w, qn_merge *out)
{
    if (w->n_heap == 0) return false;
    *out = w->heap[0];
    const qn_merge last = w->heap[--w->n_heap];
    size_t i = 0;
    for (;;) {
        size_t kid = 2 * i + 1;
        if (kid >= w->n_heap) break;
        if (kid + 1 < w->n_heap && before(&w->heap[kid + 1], &w->heap[kid])) kid++;
        if (!before(&w->heap[kid], &last)) break;
        w->heap[i] = w->heap[kid];
        i = kid;
    }
    if (w->n_heap) w->heap[i] = last;
    return true;
}

void qn_work_join(qn_work *w, uint32_t left)
{
    qn_symbol *l = &w->sym[left], *r = &w->sym[l->next];
    l->len += r->len;
    l->next = r->next;
    r->len = 0;
    if (l->next != QN_NONE) w->sym[l->next].prev = left;
}
