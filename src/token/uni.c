#include "src/token/uni.h"

#include <stdbool.h>
#include <utf8proc.h>

/* Classes of ASCII: most text is this, and the table lookup of utf8proc is slower. test_uni.c holds it against utf8proc. */
static const uint16_t ascii_class[128] = {
    0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x020, 0x060, 0x020, 0x020, 0x060, 0x000, 0x000,
    0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000, 0x000,
    0x020, 0x008, 0x008, 0x008, 0x010, 0x008, 0x008, 0x008, 0x008, 0x008, 0x008, 0x010, 0x008, 0x008, 0x008, 0x008,
    0x204, 0x204, 0x204, 0x204, 0x204, 0x204, 0x204, 0x204, 0x204, 0x204, 0x008, 0x008, 0x010, 0x010, 0x010, 0x008,
    0x008, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081,
    0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x081, 0x008, 0x008, 0x008, 0x010, 0x808,
    0x010, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101,
    0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x101, 0x008, 0x010, 0x008, 0x010, 0x000,
};

/* Script=Han of Unicode 15. */
static const qn_cp_range han[] = {
    { 0x2e80, 0x2e99 },   { 0x2e9b, 0x2ef3 },   { 0x2f00, 0x2fd5 },   { 0x3005, 0x3005 },   { 0x3007, 0x3007 },
    { 0x3021, 0x3029 },   { 0x3038, 0x303b },   { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xf900, 0xfa6d },
    { 0xfa70, 0xfad9 },   { 0x16fe2, 0x16fe3 }, { 0x16ff0, 0x16ff1 }, { 0x20000, 0x2a6df }, { 0x2a700, 0x2b739 },
    { 0x2b740, 0x2b81d }, { 0x2b820, 0x2cea1 }, { 0x2ceb0, 0x2ebe0 }, { 0x2f800, 0x2fa1d }, { 0x30000, 0x3134a },
    { 0x31350, 0x323af },
};

int qn_cp_in(uint32_t cp, const qn_cp_range *ranges, size_t n)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (cp > ranges[mid].last) lo = mid + 1;
        else hi = mid;
    }
    return lo < n && cp >= ranges[lo].first;
}

static bool is_space(uint32_t cp)
{
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 || cp == 0x202f ||
           cp == 0x205f || cp == 0x3000;
}

uint16_t qn_uni_class(uint32_t cp)
{
    if (cp < 128) return ascii_class[cp];
    if (cp >= QN_CP_BYTE) return QN_C_SYMBOL;
    static const uint16_t of_category[] = {
        [UTF8PROC_CATEGORY_LU] = QN_C_LETTER | QN_C_UPPER,
        [UTF8PROC_CATEGORY_LT] = QN_C_LETTER | QN_C_UPPER,
        [UTF8PROC_CATEGORY_LL] = QN_C_LETTER | QN_C_LOWER,
        [UTF8PROC_CATEGORY_LM] = QN_C_LETTER,
        [UTF8PROC_CATEGORY_LO] = QN_C_LETTER,
        [UTF8PROC_CATEGORY_MN] = QN_C_MARK,
        [UTF8PROC_CATEGORY_MC] = QN_C_MARK,
        [UTF8PROC_CATEGORY_ME] = QN_C_MARK,
        [UTF8PROC_CATEGORY_ND] = QN_C_NUMBER | QN_C_DIGIT,
        [UTF8PROC_CATEGORY_NL] = QN_C_NUMBER,
        [UTF8PROC_CATEGORY_NO] = QN_C_NUMBER,
        [UTF8PROC_CATEGORY_PC] = QN_C_PUNCT | QN_C_JOIN,
        [UTF8PROC_CATEGORY_PD] = QN_C_PUNCT,
        [UTF8PROC_CATEGORY_PS] = QN_C_PUNCT,
        [UTF8PROC_CATEGORY_PE] = QN_C_PUNCT,
        [UTF8PROC_CATEGORY_PI] = QN_C_PUNCT,
        [UTF8PROC_CATEGORY_PF] = QN_C_PUNCT,
        [UTF8PROC_CATEGORY_PO] = QN_C_PUNCT,
        [UTF8PROC_CATEGORY_SM] = QN_C_SYMBOL,
        [UTF8PROC_CATEGORY_SC] = QN_C_SYMBOL,
        [UTF8PROC_CATEGORY_SK] = QN_C_SYMBOL,
        [UTF8PROC_CATEGORY_SO] = QN_C_SYMBOL,
        [UTF8PROC_CATEGORY_CO] = 0, /* the last one: Cn, Z* and C* have no class of their own */
    };
    uint16_t c = of_category[utf8proc_category((utf8proc_int32_t)cp)];
    if (is_space(cp)) c |= QN_C_SPACE;
    if (cp >= 0x2e80 && qn_cp_in(cp, han, sizeof han / sizeof *han)) c |= QN_C_HAN;
    return c;
}

size_t qn_utf8_get(const char *text, size_t n, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)text;
    const uint32_t b = s[0];
    *cp = QN_CP_BYTE + b;
    if (b < 0x80) {
        *cp = b;
        return 1;
    }
    const size_t len = b < 0xc2 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf5 ? 4 : 0; /* C0, C1 are overlong; F5 and above too large */
    if (len == 0 || len > n) return 1;
    uint32_t v = b & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) return 1;
        v = v << 6 | (s[i] & 0x3f);
    }
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (v < least[len] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff)) return 1;
    *cp = v;
    return len;
}

size_t qn_utf8_put(uint32_t cp, char *out)
{
    const size_t len = qn_utf8_len(cp);
    if (len == 1) {
        out[0] = (char)(unsigned char)(cp >= QN_CP_BYTE ? cp - QN_CP_BYTE : cp);
        return 1;
    }
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(unsigned char)(0x80 | (cp & 0x3f));
        cp >>= 6;
    }
    static const unsigned char head[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    out[0] = (char)(unsigned char)(head[len] | cp);
    return len;
}
