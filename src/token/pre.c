#include "src/token/pre.h"

size_t qn_scan_contraction(const qn_scan *t, size_t i, size_t end, bool fold)
{
    if (end - i < 2 || t->cp[i] != '\'') return i;
    const uint32_t bit = fold ? 0x20 : 0, a = t->cp[i + 1] | (t->cp[i + 1] < 128 ? bit : 0);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return i + 2;
    if (end - i < 3) return i;
    const uint32_t b = t->cp[i + 2] | (t->cp[i + 2] < 128 ? bit : 0);
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? i + 3 : i;
}

size_t qn_scan_space(const qn_scan *t, size_t i, size_t end, bool newlines)
{
    size_t behind_newline = i, e = i;
    for (; e < end && (t->cls[e] & QN_C_SPACE); e++)
        if (t->cls[e] & QN_C_NEWLINE) behind_newline = e + 1;
    if (newlines && behind_newline > i) return behind_newline;
    return e < end && e - i > 1 ? e - 1 : e;
}

size_t qn_scan_tail(const qn_scan *t, size_t i, size_t end, qn_pre_tail tail)
{
    const bool slash = tail == QN_TAIL_NEWLINES_SLASH || tail == QN_TAIL_ONE;
    if (tail == QN_TAIL_NONE) return i;
    for (; i < end && ((t->cls[i] & QN_C_NEWLINE) || (slash && t->cp[i] == '/')); i++)
        if (tail == QN_TAIL_ONE) return i + 1;
    return i;
}

void qn_pre_begin(qn_pre_walk *w, const qn_pre *pre, const qn_scan *text)
{
    *w = (qn_pre_walk){ .pre = pre, .text = text };
    w->open[0] = (qn_span){ 0, text->n };
}

/* Level k cuts open[k]: the match that was found waits in match[k] while the gap before it goes down to the next level. */
bool qn_pre_next(qn_pre_walk *w, qn_span *word)
{
    for (;;) {
        const int32_t k = w->level;
        qn_span *open = &w->open[k];
        if (open->begin >= open->end) {
            if (k == 0) return false;
            w->level--;
            continue;
        }
        if (k == w->pre->n_rules) {
            *word = *open;
            open->begin = open->end;
            return true;
        }
        qn_span *m = &w->match[k], part = *m;
        if (m->end <= open->begin) { /* none waiting */
            const qn_pre_rule *r = &w->pre->rules[k];
            if (!r->find(r, w->text, open->begin, open->end, &w->memo[k], m)) *m = (qn_span){ open->end, open->end };
            part = m->begin > open->begin ? (qn_span){ open->begin, m->begin } : *m;
        }
        open->begin = part.end;
        w->open[k + 1] = part;
        w->level++;
    }
}
