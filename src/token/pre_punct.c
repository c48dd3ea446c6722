/* The main split of DeepSeek V3 and its kin, where punctuation sticks to what follows it:
 *   [!-/:-@\[-`{-~][A-Za-z]+ | [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ | ?[\p{P}\p{S}]+TAIL | \s*[\r\n]+ | \s+(?!\S) | \s+
 * Numbers and control characters match nothing by themselves.                                                                      */
#include "src/token/pre.h"

static bool is_ascii_letter(uint32_t cp)
{
    return (cp >= 'A' && cp <= 'Z') || (cp >= 'a' && cp <= 'z');
}

static size_t match_end(const qn_pre_rule *r, const qn_scan *t, size_t i, size_t end)
{
    const uint16_t c = t->cls[i], word = QN_C_LETTER | QN_C_MARK, mark = QN_C_PUNCT | QN_C_SYMBOL;
    if (t->cp[i] < 128 && (c & mark) && i + 1 < end && is_ascii_letter(t->cp[i + 1])) {
        for (i++; i < end && is_ascii_letter(t->cp[i]);) i++;
        return i;
    }
    const bool prefix = !(c & (QN_C_NEWLINE | QN_C_LETTER | mark)) && i + 1 < end && (t->cls[i + 1] & word);
    if (prefix || (c & word)) return qn_scan_while(t, i + prefix, end, word);
    const size_t m = i + (t->cp[i] == ' ' && i + 1 < end && (t->cls[i + 1] & mark));
    if (t->cls[m] & mark) return qn_scan_tail(t, qn_scan_while(t, m, end, mark), end, r->tail);
    if (!(c & QN_C_SPACE)) return i;
    if (r->lone_newlines && (c & QN_C_NEWLINE)) return i + 1;
    return qn_scan_space(t, i, end, !r->lone_newlines);
}

bool qn_pre_punct(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    (void)memo;
    for (size_t i = from; i < end; i++) {
        const size_t e = match_end(r, t, i, end);
        if (e == i) continue;
        *out = (qn_span){ i, e };
        return true;
    }
    return false;
}
