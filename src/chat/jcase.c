/* Python's str.upper and its kin. */
#include "src/chat/jvm.h"

#include <string.h>
#include <utf8proc.h>

/* What Unicode's SpecialCasing.txt maps to several characters, as far as chat meets it: sharp s, ligatures, letters with marks. */
typedef struct special {
    int32_t c;
    const char *upper, *title, *lower; /* NULL: as utf8proc has it */
} special;
static const special specials[] = {
    { 0xdf, "SS", "Ss", NULL },
    { 0x130, NULL, NULL, "i\xcc\x87" },
    { 0x149, "\xca\xbcN", "\xca\xbcN", NULL },
    { 0x1f0, "J\xcc\x8c", "J\xcc\x8c", NULL },
    { 0x587, "\xd4\xb5\xd5\x92", "\xd4\xb5\xd6\x82", NULL },
    { 0x1e96, "H\xcc\xb1", "H\xcc\xb1", NULL },
    { 0x1e97, "T\xcc\x88", "T\xcc\x88", NULL },
    { 0x1e98, "W\xcc\x8a", "W\xcc\x8a", NULL },
    { 0x1e99, "Y\xcc\x8a", "Y\xcc\x8a", NULL },
    { 0x1e9a, "A\xca\xbe", "A\xca\xbe", NULL },
    { 0xfb00, "FF", "Ff", NULL },
    { 0xfb01, "FI", "Fi", NULL },
    { 0xfb02, "FL", "Fl", NULL },
    { 0xfb03, "FFI", "Ffi", NULL },
    { 0xfb04, "FFL", "Ffl", NULL },
    { 0xfb05, "ST", "St", NULL },
    { 0xfb06, "ST", "St", NULL },
};

enum { TO_UPPER, TO_TITLE, TO_LOWER };

static const char *special_of(int32_t c, int to)
{
    if (c < 0xdf) return NULL;
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (specials[i].c == c) return to == TO_UPPER ? specials[i].upper : to == TO_TITLE ? specials[i].title : specials[i].lower;
    return NULL;
}

/* Has the character a case? (Python's _PyUnicode_IsCased: derived property Cased.) */
static bool cased(int32_t c)
{
    if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c & QN_J_BYTE) return false;
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT || c == 0xaa || c == 0xba ||
           (c >= 0x2160 && c <= 0x217f) || (c >= 0x24b6 && c <= 0x24e9); /* Roman and circled letters */
}

static bool ignored_by_sigma(int32_t c)
{
    if (c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' || c == 0xb7 || c == 0x2019) return true;
    if (c < 0x80 || c & QN_J_BYTE) return false;
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_LM ||
           k == UTF8PROC_CATEGORY_SK;
}

/* A capital sigma ends a word when a letter stands before it and none behind. */
static bool sigma_is_final(const qn_jstr *s, size_t at, size_t len)
{
    const char *end = s->p + s->n;
    bool before = false;
    for (size_t i = at, n; i > 0;) {
        size_t b = i - 1;
        while (b > 0 && ((unsigned char)s->p[b] & 0xc0) == 0x80) b--;
        const int32_t c = qn_js_decode(s->p + b, end, &n);
        i = b;
        if (ignored_by_sigma(c)) continue;
        before = cased(c);
        break;
    }
    for (size_t i = at + len, n; before && i < s->n; i += n) {
        const int32_t c = qn_js_decode(s->p + i, end, &n);
        if (!ignored_by_sigma(c)) return !cased(c);
    }
    return before;
}

static bool put(qn_jbuf *b, int32_t c, int to, bool plain)
{
    const char *text = special_of(c, to);
    if (text) return qn_jbuf_add(b, text, strlen(text), plain);
    if (!(c & QN_J_BYTE)) c = to == TO_UPPER ? utf8proc_toupper(c) : to == TO_TITLE ? utf8proc_totitle(c) : utf8proc_tolower(c);
    return qn_jbuf_char(b, c, plain);
}

static bool put_lower(qn_jbuf *b, const qn_jstr *s, size_t at, size_t len, int32_t c, bool plain)
{
    if (c == 0x3a3) return qn_jbuf_char(b, sigma_is_final(s, at, len) ? 0x3c2 : 0x3c3, plain);
    return put(b, c, TO_LOWER, plain);
}

static bool fold(qn_jbuf *b, int32_t c, bool plain)
{
    utf8proc_int32_t out[8];
    int last = 0;
    if (c & QN_J_BYTE) return qn_jbuf_char(b, c, plain);
    const utf8proc_ssize_t n = utf8proc_decompose_char(c, out, 8, UTF8PROC_CASEFOLD, &last);
    for (utf8proc_ssize_t i = 0; i < n && i < 8; i++)
        if (!qn_jbuf_char(b, out[i], plain)) return false;
    return true;
}

/* One character at byte `at`; *inside: a cased character came before it (title), or any did (capitalize). */
static bool convert(qn_jbuf *b, const qn_jstr *s, size_t at, size_t len, int32_t c, int how, bool plain, bool *inside)
{
    const bool was = *inside;
    switch (how) {
    case QN_JCASE_UPPER: return put(b, c, TO_UPPER, plain);
    case QN_JCASE_LOWER: return put_lower(b, s, at, len, c, plain);
    case QN_JCASE_FOLD: return fold(b, c, plain);
    case QN_JCASE_SWAP:
        if (!cased(c)) return qn_jbuf_char(b, c, plain);
        return utf8proc_tolower(c) != c ? put_lower(b, s, at, len, c, plain) : put(b, c, TO_UPPER, plain);
    default:
        *inside = how == QN_JCASE_TITLE ? cased(c) : true;
        return was ? put_lower(b, s, at, len, c, plain) : put(b, c, TO_TITLE, plain);
    }
}

bool qn_jbuf_case(qn_jbuf *b, const qn_jstr *s, int how)
{
    bool inside = false;
    for (size_t from = 0; from < s->n;) {
        bool plain;
        const size_t end = qn_js_stretch(s, from, &plain);
        for (size_t at = from, len; at < end; at += len) {
            const int32_t c = qn_js_decode(s->p + at, s->p + s->n, &len);
            if (!convert(b, s, at, len, c, how, plain, &inside)) return false;
        }
        from = end;
    }
    return qn_jvm_charge(b->vm, s->n / 16);
}
