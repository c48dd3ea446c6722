/* The split of GPT-2:
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+                                                      */
#include "src/token/pre.h"

bool qn_pre_gpt2(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    (void)r;
    (void)memo;
    if (from >= end) return false;
    out->begin = from;
    out->end = qn_scan_contraction(t, from, end, false);
    if (out->end > from) return true;
    const size_t i = from + (t->cp[from] == ' ' && from + 1 < end && !(t->cls[from + 1] & QN_C_SPACE));
    const uint16_t c = t->cls[i];
    if (c & QN_C_SPACE) out->end = qn_scan_space(t, i, end, false);
    else if (c & QN_C_LETTER) out->end = qn_scan_while(t, i, end, QN_C_LETTER);
    else if (c & QN_C_NUMBER) out->end = qn_scan_while(t, i, end, QN_C_NUMBER);
    else out->end = qn_scan_until(t, i, end, QN_C_SPACE | QN_C_LETTER | QN_C_NUMBER);
    return true;
}
