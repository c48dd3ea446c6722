/* The split of o200k and its children (GPT-4o, Llama 4, Tekken, Kimi K2 ...), where a word is capitals, then small letters:
 *   A: [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 *   B: [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
 *   \p{N}{1,max} | ?[^\s\p{L}\p{N}]+TAIL | \s*[\r\n]+ | \s+(?!\S) | \s+
 * Letters without case, and marks, are in both sets: what an expression finds by stepping back is computed here.                   */
#include "src/token/pre.h"

static bool is_upper(const qn_pre_rule *r, uint16_t c) /* of the first set */
{
    return (c & (QN_C_LETTER | QN_C_MARK)) && !(c & QN_C_LOWER) && !(r->no_han && (c & QN_C_HAN));
}

static bool is_lower(const qn_pre_rule *r, uint16_t c) /* of the second set */
{
    return (c & (QN_C_LETTER | QN_C_MARK)) && !(c & QN_C_UPPER) && !(r->no_han && (c & QN_C_HAN));
}

static size_t lower_end(const qn_pre_rule *r, const qn_scan *t, size_t i, size_t end)
{
    while (i < end && is_lower(r, t->cls[i])) i++;
    return i;
}

/* A from i without its prefix; i when it does not match. */
static size_t small_word_end(const qn_pre_rule *r, const qn_scan *t, size_t i, size_t end)
{
    size_t u = i, both = i;
    for (; u < end && is_upper(r, t->cls[u]); u++)
        if (is_lower(r, t->cls[u])) both = u + 1;
    const size_t e = lower_end(r, t, u, end);
    return e > u ? e : both; /* no small letter behind the capitals: step back to the last that is of both sets */
}

/* The capitals of B, where A did not match. */
static size_t capitals_end(const qn_pre_rule *r, const qn_scan *t, size_t i, size_t end)
{
    while (i < end && is_upper(r, t->cls[i])) i++;
    return i;
}

/* A with and without its prefix, then B. */
static size_t cased_word_end(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end)
{
    const bool prefix = !(t->cls[from] & (QN_C_NEWLINE | QN_C_LETTER | QN_C_NUMBER));
    size_t e;
    if (prefix && (e = small_word_end(r, t, from + 1, end)) > from + 1) return e;
    if ((e = small_word_end(r, t, from, end)) > from) return e;
    e = capitals_end(r, t, from + prefix, end);
    return e > from + prefix ? e : from;
}

bool qn_pre_cased(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    (void)memo;
    if (from >= end) return false;
    const uint16_t c = t->cls[from], other = QN_C_SPACE | QN_C_LETTER | QN_C_NUMBER;
    out->begin = from;
    if (r->no_han && (c & QN_C_HAN)) {
        out->end = qn_scan_while(t, from, end, QN_C_HAN);
        return true;
    }
    out->end = cased_word_end(r, t, from, end);
    if (out->end > from) {
        if (r->contractions && out->end < end) out->end = qn_scan_contraction(t, out->end, end, true);
        return true;
    }
    if (c & QN_C_NUMBER) {
        out->end = qn_scan_while(t, from, r->max && end - from > (size_t)r->max ? from + (size_t)r->max : end, QN_C_NUMBER);
        return true;
    }
    const size_t i = from + (t->cp[from] == ' ' && from + 1 < end && !(t->cls[from + 1] & other));
    if (!(t->cls[i] & other)) out->end = qn_scan_tail(t, qn_scan_until(t, i, end, other), end, r->tail);
    else out->end = qn_scan_space(t, from, end, true);
    return true;
}
