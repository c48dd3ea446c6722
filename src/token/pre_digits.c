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

/* Groups from the right, as thousands are written: 1 234 567. */

/* The first place at or after i where a group of three begins; end where there is none. The memo is where the run of digits ends. */
static size_t next_group(const qn_pre_rule *r, const qn_scan *t, size_t i, size_t end, size_t *memo)
{
    while (i < end) {
        if (!(t->cls[i] & r->in)) {
            i++;
            continue;
        }
        const size_t e = *memo > i && *memo <= end ? *memo : qn_scan_while(t, i, end, r->in);
        *memo = e;
        if (e - i >= 3) return i + (e - i) % 3;
        i = e;
    }
    return end;
}

/* (?=(\d{3})+(?!\d)): cuts where a group begins, and nowhere else. */
bool qn_pre_group_starts(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    out->begin = next_group(r, t, from, end, memo);
    if (out->begin == end) return false;
    out->end = next_group(r, t, out->begin + 1, end, memo);
    return true;
}

/* \d{1,3}(?=(?:\d{3})*\b): what is left over in front is a group too; with to_boundary nothing is cut where a
 * letter follows the digits. */
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
