/* Numbers in groups of three. */
#include "src/token/pre.h"

/* [0-9][0-9][0-9], from the left. */
bool qn_pre_triple(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    (void)r;
    (void)memo;
    size_t n = 0;
    for (size_t i = from; i < end; i++) {
        n = t->cp[i] >= '0' && t->cp[i] <= '9' ? n + 1 : 0;
        if (n < 3) continue;
        *out = (qn_span){ i - 2, i + 1 };
        return true;
    }
    return false;
}

/* From the right, as thousands are written: 1 234 567. The expressions are \d{1,3}(?=(?:\d{3})*\b) (to_boundary: nothing is cut where a
 * letter follows the digits) and (?=(\d{3})+(?!\d)). The memo is where the run of digits ends. */
bool qn_pre_thousands(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    const uint16_t word = QN_C_LETTER | QN_C_MARK | QN_C_NUMBER | QN_C_JOIN;
    for (size_t i = from; i < end;) {
        if (!(t->cls[i] & r->in)) {
            i++;
            continue;
        }
        const size_t e = *memo > i && *memo <= end ? *memo : qn_scan_while(t, i, end, r->in);
        *memo = e;
        if (r->to_boundary && e < end && (t->cls[e] & word)) {
            i = e;
            continue;
        }
        const size_t first = (e - i) % 3;
        *out = (qn_span){ i, i + (first ? first : 3) };
        return true;
    }
    return false;
}
