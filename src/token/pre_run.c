/* Runs of a set of characters, with an optional space in front: LEAD?[SET]{1,max}. Most passes of composed pre-tokenizers are these. */
#include "src/token/pre.h"

static bool belongs(const qn_pre_rule *r, const qn_scan *t, size_t i)
{
    const bool in = (t->cls[i] & r->in) || (r->n_ranges && qn_cp_in(t->cp[i], r->ranges, (size_t)r->n_ranges));
    return in != r->invert;
}

bool qn_pre_run(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    (void)memo;
    for (size_t i = from; i < end; i++) {
        const bool lead = ((t->cls[i] & r->lead) || (r->lead_blank && t->cp[i] == ' ')) && i + 1 < end && belongs(r, t, i + 1);
        if (!lead && !belongs(r, t, i)) continue;
        size_t e = i + lead + 1;
        const size_t stop = r->max && end - e > (size_t)r->max - 1 ? e + (size_t)r->max - 1 : end;
        while (e < stop && belongs(r, t, e)) e++;
        *out = (qn_span){ i, e };
        return true;
    }
    return false;
}

/* \s+$ */
bool qn_pre_trailing_space(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    (void)r;
    (void)memo;
    size_t b = end;
    while (b > from && (t->cls[b - 1] & QN_C_SPACE)) b--;
    *out = (qn_span){ b, end };
    return b < end;
}

/* [\t\n]|    |  : one tab or newline, four blanks, two blanks. */
bool qn_pre_blanks(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    (void)r;
    (void)memo;
    for (size_t i = from; i < end; i++) {
        size_t n = 0;
        while (n < 4 && i + n < end && t->cp[i + n] == ' ') n++;
        const size_t len = t->cp[i] == '\t' || t->cp[i] == '\n' ? 1 : n == 4 ? 4 : n >= 2 ? 2 : 0;
        if (!len) continue;
        *out = (qn_span){ i, i + len };
        return true;
    }
    return false;
}
