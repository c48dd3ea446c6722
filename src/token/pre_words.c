/* The split of cl100k and its many children (Llama 3, Qwen 2 and 3, GLM 4 ...). With M for \p{M} where marks belong to words:
 *   (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\r\n\p{L}\p{N}]?[\p{L}M]+ | \p{N}{1,max} | ?[^\s\p{L}M\p{N}]+TAIL | \s*[\r\n]+ | \s+(?!\S) | \s+
 * \s*[\r\n] instead of \s*[\r\n]+ takes the same text: both end behind the last newline of the run.                                */
#include "src/token/pre.h"

/* \p{L}\p{M}*(?: \p{L}\p{M}*)* again and again: letters with their marks, one blank between. */
static size_t phrase_end(const qn_scan *t, size_t i, size_t end)
{
    for (;;) {
        const size_t blank = i < end && t->cp[i] == ' ';
        if (i + blank >= end || !(t->cls[i + blank] & QN_C_LETTER)) return i;
        i = qn_scan_while(t, i + blank + 1, end, QN_C_MARK);
    }
}

/* White space in powers of two: \s*[\r\n]+|\s{512}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s. */
static size_t cascade_end(const qn_scan *t, size_t i, size_t end)
{
    size_t n = qn_scan_space(t, i, end, true);
    if (t->cls[n - 1] & QN_C_NEWLINE) return n;
    n = qn_scan_while(t, i, end, QN_C_SPACE) - i; /* \s{k}(?!\S) needs one more space behind it, or the end */
    const bool at_end = i + n == end;
    for (size_t k = 512; k >= 2; k /= 2)
        if (n > k || (n == k && at_end)) return i + k;
    return i + 1;
}

static size_t word_end(const qn_pre_rule *r, const qn_scan *t, size_t i, size_t end)
{
    return r->phrases ? phrase_end(t, i, end) : qn_scan_while(t, i, end, QN_C_LETTER | r->mark);
}

bool qn_pre_words(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    (void)memo;
    if (from >= end) return false;
    const uint16_t c = t->cls[from], word = QN_C_LETTER | r->mark;
    out->begin = from;
    if (r->contractions && (out->end = qn_scan_contraction(t, from, end, true)) > from) return true;
    if (c & word) {
        out->end = word_end(r, t, from, end);
        return true;
    }
    if (c & QN_C_NUMBER) {
        out->end = qn_scan_while(t, from, r->max && end - from > (size_t)r->max ? from + (size_t)r->max : end, QN_C_NUMBER);
        return true;
    }
    if (!(c & QN_C_NEWLINE) && from + 1 < end && (t->cls[from + 1] & (r->phrases ? QN_C_LETTER : word))) {
        out->end = word_end(r, t, from + 1, end);
        return true;
    }
    const uint16_t other = QN_C_SPACE | QN_C_NUMBER | word;
    const size_t i = from + (t->cp[from] == ' ' && from + 1 < end && !(t->cls[from + 1] & other));
    if (!(t->cls[i] & other)) out->end = qn_scan_tail(t, qn_scan_until(t, i, end, other), end, r->tail);
    else out->end = r->cascade ? cascade_end(t, from, end) : qn_scan_space(t, from, end, true);
    return true;
}
