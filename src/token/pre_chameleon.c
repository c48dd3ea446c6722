/* Two notations of Chameleon that its pre-tokenizer keeps whole. */
#include "src/token/pre.h"

static bool is_text(const qn_scan *t, size_t i, size_t end, const char *s, size_t n)
{
    if (end - i < n) return false;
    for (size_t k = 0; k < n; k++)
        if (t->cp[i + k] != (uint32_t)(unsigned char)s[k]) return false;
    return true;
}

/* <sentinel:[0-9]+> */
bool qn_pre_sentinel(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    (void)r;
    (void)memo;
    for (size_t i = from; i < end; i++) {
        if (!is_text(t, i, end, "<sentinel:", 10)) continue;
        size_t e = i + 10;
        while (e < end && t->cp[e] >= '0' && t->cp[e] <= '9') e++;
        if (e == i + 10 || e == end || t->cp[e] != '>') continue;
        *out = (qn_span){ i, e + 1 };
        return true;
    }
    return false;
}

/* IMGIMG[A-I]{1,4}Z */
bool qn_pre_image(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out)
{
    (void)r;
    (void)memo;
    for (size_t i = from; i < end; i++) {
        if (!is_text(t, i, end, "IMGIMG", 6)) continue;
        size_t e = i + 6;
        while (e < end && e < i + 10 && t->cp[e] >= 'A' && t->cp[e] <= 'I') e++;
        if (e == i + 6 || e == end || t->cp[e] != 'Z') continue;
        *out = (qn_span){ i, e + 1 };
        return true;
    }
    return false;
}
