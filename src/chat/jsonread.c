/* JSON to values. What stands under "messages", "tools" and "documents" is marked as the conversation's. */
#include "src/chat/jvm.h"

#include <math.h>
#include <string.h>

typedef struct reader {
    qn_jvm *vm;
    const char *begin, *at, *end;
    bool plain;
} reader;

static bool value(reader *r, qn_jval *out);

static bool fail(reader *r, const char *what)
{
    return qn_jvm_stop(r->vm, QN_ERR_FORMAT, "JSON, byte %zu: %s", (size_t)(r->at - r->begin), what);
}

static void space(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) r->at++;
}

static bool skip(reader *r, char c)
{
    space(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static bool hex4(reader *r, int32_t *out)
{
    *out = 0;
    if (r->end - r->at < 4) return fail(r, "an escape is cut off");
    for (int i = 0; i < 4; i++) {
        const char c = *r->at++, low = (char)(c | 32);
        const int d = c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
        if (d < 0) return fail(r, "\\u needs four hexadecimal digits");
        *out = *out * 16 + d;
    }
    return true;
}

/* \uXXXX, or two of them that make one character. Half a pair becomes U+FFFD when it is written. */
static bool unicode(reader *r, qn_jbuf *b)
{
    int32_t c, low;
    if (!hex4(r, &c)) return false;
    if (c >= 0xd800 && c < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u') {
        const char *before = r->at;
        r->at += 2;
        if (!hex4(r, &low)) return false;
        if (low >= 0xdc00 && low < 0xe000) c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        else r->at = before;
    }
    return qn_jbuf_char(b, c, r->plain);
}

static bool escape(reader *r, qn_jbuf *b)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end) return fail(r, "a string does not end");
    const char c = *r->at++, *hit = c ? strchr(from, c) : NULL;
    if (c == 'u') return unicode(r, b);
    return hit ? qn_jbuf_add(b, &to[hit - from], 1, r->plain) : fail(r, "an unknown escape");
}

/* Behind the opening quote. Without escapes the string shares the bytes of the text. */
static bool string(reader *r, qn_jval *out)
{
    qn_jbuf b = { .vm = r->vm };
    const char *from = r->at;
    bool escaped = false;
    for (;;) {
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= 0x20) r->at++;
        if (r->at == r->end) return fail(r, "a string does not end");
        if ((unsigned char)*r->at < 0x20) return fail(r, "a control character in a string");
        if (*r->at == '"') break;
        escaped = true;
        if (!qn_jbuf_add(&b, from, (size_t)(r->at++ - from), r->plain) || !escape(r, &b)) return false;
        from = r->at;
    }
    const size_t n = (size_t)(r->at++ - from);
    if (escaped) return qn_jbuf_add(&b, from, n, r->plain) && qn_jbuf_value(&b, false, out);
    const qn_jstr *s = qn_js_over(r->vm, from, n, r->plain);
    if (s) *out = qn_jv_str(s);
    return s;
}

static size_t digits(const char *p, const char *end)
{
    size_t n = 0;
    while (p + n < end && p[n] >= '0' && p[n] <= '9') n++;
    return n;
}

static bool number(reader *r, qn_jval *out)
{
    const char *from = r->at, *p = from + (*from == '-');
    size_t n = digits(p, r->end);
    bool whole = true;
    if (!n || (n > 1 && *p == '0')) return fail(r, "no JSON value");
    p += n;
    if (p < r->end && *p == '.') {
        whole = false;
        if (!(n = digits(p + 1, r->end))) return fail(r, "a number without digits behind its point");
        p += n + 1;
    }
    if (p < r->end && (*p | 32) == 'e') {
        whole = false;
        p++;
        if (p < r->end && (*p == '+' || *p == '-')) p++;
        if (!(n = digits(p, r->end))) return fail(r, "a number without digits in its exponent");
        p += n;
    }
    r->at = p;
    const qn_jstr *s = qn_js_over(r->vm, from, (size_t)(p - from), r->plain);
    if (!s) return false;
    if (whole) return qn_jnum_int(r->vm, s, 10, out) || r->vm->status != QN_OK ? r->vm->status == QN_OK : fail(r, "no number");
    *out = qn_jv_float(qn_jnum_parse(from, s->n));
    return true;
}

static bool word(reader *r, qn_jval *out)
{
    static const struct { const char *text; qn_jval v; } words[] = {
        { "null", { .type = QN_J_NONE } },
        { "true", { .type = QN_J_BOOL, .b = true } },
        { "false", { .type = QN_J_BOOL } },
        { "NaN", { .type = QN_J_FLOAT, .f = NAN } },
        { "Infinity", { .type = QN_J_FLOAT, .f = INFINITY } },
        { "-Infinity", { .type = QN_J_FLOAT, .f = -INFINITY } },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i].text);
        if ((size_t)(r->end - r->at) < n || memcmp(r->at, words[i].text, n) != 0) continue;
        r->at += n;
        *out = words[i].v;
        return true;
    }
    return false;
}

static bool array(reader *r, qn_jval *out)
{
    qn_jlist *l = qn_jl_new(r->vm, 4);
    if (!l) return false;
    *out = QN_JV(QN_J_LIST, l, l);
    if (skip(r, ']')) return true;
    for (;;) {
        qn_jval v;
        if (!value(r, &v) || !qn_jl_add(r->vm, l, v)) return false;
        if (skip(r, ']')) return true;
        if (!skip(r, ',')) return fail(r, "a comma or ']' is missing");
    }
}

static bool is_conversation(const qn_jstr *key)
{
    return qn_js_is(key, "messages") || qn_js_is(key, "tools") || qn_js_is(key, "documents");
}

/* A role is the caller's choice from a short list, and templates build control tokens from it ("<|" + role + "|>"): such a word counts as
 * the template's own. */
static bool is_known_role(const qn_jstr *s)
{
    static const char *const roles[] = { "system", "user", "assistant", "tool", "developer", "function", "ipython", "model" };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (qn_js_is(s, roles[i])) return true;
    return false;
}

static bool trust_role(reader *r, qn_jval key, qn_jval *v)
{
    if (!r->plain || v->type != QN_J_STR || !qn_js_is(key.s, "role") || !is_known_role(v->s)) return true;
    v->s = qn_js_over(r->vm, v->s->p, v->s->n, false);
    return v->s != NULL;
}

static bool object(reader *r, bool top, qn_jval *out)
{
    qn_jdict *d = qn_jd_new(r->vm);
    if (!d) return false;
    *out = QN_JV(QN_J_DICT, d, d);
    if (skip(r, '}')) return true;
    for (;;) {
        qn_jval key, v;
        if (!skip(r, '"')) return fail(r, "a key is missing");
        if (!string(r, &key)) return false;
        if (!skip(r, ':')) return fail(r, "a colon is missing");
        if (top) r->plain = is_conversation(key.s);
        if (!value(r, &v) || !trust_role(r, key, &v) || !qn_jd_set(r->vm, d, key, v)) return false;
        if (top) r->plain = false;
        if (skip(r, '}')) return true;
        if (!skip(r, ',')) return fail(r, "a comma or '}' is missing");
    }
}

static bool value_at(reader *r, bool top, qn_jval *out)
{
    space(r);
    if (!qn_jvm_charge(r->vm, 1)) return false;
    if (r->at == r->end) return fail(r, "a value is missing");
    if (*r->at == '"') return r->at++, string(r, out);
    if (*r->at != '[' && *r->at != '{') return word(r, out) || number(r, out);
    if (!qn_jvm_enter_data(r->vm)) return false;
    const bool is_array = *r->at++ == '[', done = is_array ? array(r, out) : object(r, top, out);
    qn_jvm_leave_data(r->vm);
    return done;
}

static bool value(reader *r, qn_jval *out)
{
    return value_at(r, false, out);
}

bool qn_json_read(qn_jvm *vm, qn_str text, qn_jval *out)
{
    reader r = { .vm = vm, .begin = text.ptr, .at = text.ptr, .end = text.ptr + text.len };
    if (!value_at(&r, true, out)) return false;
    space(&r);
    return r.at == r.end || fail(&r, "something follows the value");
}
