/* Numbers as Python reads and prints them, whatever the locale of the host program. */
#include "src/chat/jvm.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The point of printf and strtod may be a comma, or several bytes: copy the digits and put '.' for whatever else is there. */
static size_t plain_point(const char *from, char *to)
{
    size_t n = 0;
    bool point = false;
    for (; *from; from++) {
        const bool known = (*from >= '0' && *from <= '9') || strchr("+-einfaENIFA", *from);
        if (known) to[n++] = *from;
        else if (!point) to[n++] = '.', point = true;
    }
    to[n] = 0;
    return n;
}

size_t qn_jnum_print(double f, char kind, int precision, bool alternate, char *out)
{
    static const char *const formats[2][6] = { { "%.*f", "%.*F", "%.*e", "%.*E", "%.*g", "%.*G" },
                                               { "%#.*f", "%#.*F", "%#.*e", "%#.*E", "%#.*g", "%#.*G" } };
    char text[QN_JNUM_MAX];
    const char *kinds = "fFeEgG";
    snprintf(text, sizeof text, formats[alternate][strchr(kinds, kind) - kinds], precision, f);
    return plain_point(text, out);
}

double qn_jnum_parse(const char *p, size_t n)
{
    char text[96], *copy = text, point[16];
    snprintf(point, sizeof point, "%.1f", 0.5); /* "0,5" in the host's locale */
    const size_t n_point = strlen(point) - 2, need = n + n_point + 1;
    if (need > sizeof text && !(copy = malloc(need))) return NAN;
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '.') {
            copy[to++] = p[i];
            continue;
        }
        memcpy(copy + to, point + 1, n_point);
        to += n_point;
    }
    copy[to] = 0;
    const double f = strtod(copy, NULL);
    if (copy != text) free(copy);
    return f;
}

/* The fewest digits that read back as f: "d.ddde-xx" with precision p. */
static size_t shortest(double f, char *text)
{
    int p = fabs(f) < 2.3e-308 ? 0 : 14; /* 15 digits hold every shorter normal number; subnormals have fewer */
    for (;; p++) {
        const size_t n = qn_jnum_print(f, 'e', p, false, text);
        if (p >= 16 || qn_jnum_parse(text, n) == f) return n;
    }
}

size_t qn_jnum_repr(double f, char *out)
{
    if (isnan(f)) return (size_t)snprintf(out, 32, "nan");
    if (isinf(f)) return (size_t)snprintf(out, 32, "%s", f < 0 ? "-inf" : "inf");
    char text[QN_JNUM_MAX], digit[24];
    shortest(f, text);
    const char *e = strchr(text, 'e');
    const int exp10 = (int)strtol(e + 1, NULL, 10);
    int n_digits = 0;
    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9') digit[n_digits++] = *p;
    while (n_digits > 1 && digit[n_digits - 1] == '0') n_digits--;
    size_t n = 0;
    if (text[0] == '-') out[n++] = '-';
    if (exp10 < -4 || exp10 >= 16) { /* 1.5e+300 */
        out[n++] = digit[0];
        if (n_digits > 1) out[n++] = '.';
        for (int i = 1; i < n_digits; i++) out[n++] = digit[i];
        return n + (size_t)snprintf(out + n, 8, "e%c%02d", exp10 < 0 ? '-' : '+', abs(exp10));
    }
    for (int i = exp10 < 0 ? exp10 : 0; i <= exp10 || i < n_digits; i++) {
        if (i < 0) {
            out[n++] = '0';
            if (i == exp10) out[n++] = '.';
            continue;
        }
        out[n++] = i < n_digits ? digit[i] : '0';
        if (i == exp10) out[n++] = '.';
    }
    if (out[n - 1] == '.') out[n++] = '0';
    out[n] = 0;
    return n;
}

/* ---- reading ---- */

static qn_str trimmed(const qn_jstr *s)
{
    size_t from = 0, to = s->n, n;
    while (from < to && qn_js_space(qn_js_decode(s->p + from, s->p + to, &n))) from += n;
    while (to > from) {
        size_t at = to - 1;
        while (at > from && ((unsigned char)s->p[at] & 0xc0) == 0x80) at--;
        if (!qn_js_space(qn_js_decode(s->p + at, s->p + to, &n))) break;
        to = at;
    }
    return (qn_str){ s->p + from, to - from };
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'z') return c - 'a' + 10;
    if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
    return 99;
}

/* "0x" in front, which sets base 0 and is allowed for its own base. */
static size_t base_prefix(const char *p, size_t n, int *base)
{
    if (n > 2 && p[0] == '0') {
        const char c = (char)(p[1] | 32);
        const int b = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        if (b && (*base == 0 || *base == b)) {
            *base = b;
            return p[2] == '_' ? 3 : 2;
        }
    }
    if (*base == 0) *base = 10;
    return 0;
}

/* The decimal digits of a number beyond 64 bits, without zeros in front. */
static bool big(qn_jvm *vm, const char *p, size_t n, bool minus, qn_jval *out)
{
    qn_jbuf b = { .vm = vm };
    if (minus && !qn_jbuf_lit(&b, "-")) return false;
    const size_t start = b.n;
    for (size_t i = 0; i < n; i++)
        if (p[i] != '_' && (b.n > start || p[i] != '0') && !qn_jbuf_add(&b, p + i, 1, false)) return false;
    const qn_jstr *s = qn_jbuf_done(&b);
    if (s) *out = QN_JV(QN_J_BIG, s, s);
    return s;
}

bool qn_jnum_int(qn_jvm *vm, const qn_jstr *s, int base, qn_jval *out)
{
    qn_str t = trimmed(s);
    const bool ten = base == 10, minus = t.len && t.ptr[0] == '-';
    if (t.len && (t.ptr[0] == '-' || t.ptr[0] == '+')) t.ptr++, t.len--;
    const bool any = base == 0;
    const size_t skip = base_prefix(t.ptr, t.len, &base);
    t.ptr += skip;
    t.len -= skip;
    bool digit = false, over = false, zeros = true;
    uint64_t u = 0;
    for (size_t i = 0; i < t.len; i++) {
        if (t.ptr[i] == '_' && digit && i + 1 < t.len) {
            digit = false;
            continue;
        }
        const int d = digit_of(t.ptr[i]);
        if (d >= base) return false;
        if (any && !skip && zeros && i && d) return false; /* int("012", 0) */
        zeros = zeros && d == 0;
        digit = true;
        if (u > (UINT64_MAX - (uint64_t)d) / (uint64_t)base) over = true;
        else u = u * (uint64_t)base + (uint64_t)d;
    }
    if (!digit) return false;
    if (over || u > (uint64_t)INT64_MAX + minus) {
        if (ten || (any && base == 10)) return big(vm, t.ptr, t.len, minus, out);
        return qn_jvm_stop(vm, QN_ERR_LIMIT, "template line %d: the integer is beyond 64 bits", (int)vm->line);
    }
    *out = qn_jv_int(minus ? (int64_t)(0 - u) : (int64_t)u);
    return true;
}

static bool is_word(qn_str t, const char *word)
{
    const size_t n = strlen(word);
    if (t.len != n) return false;
    for (size_t i = 0; i < n; i++)
        if ((t.ptr[i] | 32) != word[i]) return false;
    return true;
}

/* digits with single '_' between them: how many bytes, at most n */
static size_t digits(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && ((p[i] >= '0' && p[i] <= '9') || (p[i] == '_' && i && p[i - 1] != '_' && i + 1 < n && p[i + 1] >= '0' && p[i + 1] <= '9')))
        i++;
    return i;
}

bool qn_jnum_float(const qn_jstr *s, double *out)
{
    qn_str t = trimmed(s);
    const bool minus = t.len && t.ptr[0] == '-';
    if (t.len && (t.ptr[0] == '-' || t.ptr[0] == '+')) t.ptr++, t.len--;
    if (is_word(t, "inf") || is_word(t, "infinity") || is_word(t, "nan")) {
        const double f = (t.ptr[0] | 32) == 'n' ? NAN : INFINITY;
        *out = minus ? -f : f;
        return true;
    }
    size_t i = digits(t.ptr, t.len), n_digits = i;
    if (i < t.len && t.ptr[i] == '.') {
        const size_t n = digits(t.ptr + i + 1, t.len - i - 1);
        n_digits += n;
        i += n + 1;
    }
    if (!n_digits) return false;
    if (i < t.len && (t.ptr[i] | 32) == 'e') {
        i++;
        if (i < t.len && (t.ptr[i] == '-' || t.ptr[i] == '+')) i++;
        const size_t n = digits(t.ptr + i, t.len - i);
        if (!n) return false;
        i += n;
    }
    if (i != t.len) return false;
    char text[64], *copy = t.len < sizeof text ? text : malloc(t.len + 1);
    if (!copy) return false;
    size_t n = 0;
    for (size_t k = 0; k < t.len; k++)
        if (t.ptr[k] != '_') copy[n++] = t.ptr[k];
    const double f = qn_jnum_parse(copy, n);
    if (copy != text) free(copy);
    *out = minus ? -f : f;
    return true;
}

/* ---- conversions ---- */

bool qn_jnum_trunc(qn_jvm *vm, double f, qn_jval *out)
{
    if (isnan(f)) return qn_jvm_fail(vm, "cannot convert float NaN to integer");
    if (isinf(f)) return qn_jvm_fail(vm, "cannot convert float infinity to integer");
    if (f >= 9223372036854775808.0 || f < -9223372036854775808.0) {
        char text[QN_JNUM_MAX]; /* a double this big is a whole number: all its digits */
        const size_t n = qn_jnum_print(f, 'f', 0, false, text);
        return big(vm, text + (f < 0), n - (f < 0), f < 0, out);
    }
    *out = qn_jv_int((int64_t)f);
    return true;
}

double qn_jnum_round(double f, int n)
{
    if (!isfinite(f) || n > 40) return f;
    if (n >= 0) {
        char text[QN_JNUM_MAX];
        const size_t len = qn_jnum_print(f, 'f', n, false, text);
        return qn_jnum_parse(text, len);
    }
    if (n < -308) return 0.0 * f;
    const double scale = pow(10, -n);
    return nearbyint(f / scale) * scale;
}
