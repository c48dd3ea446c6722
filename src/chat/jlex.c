/* Tokens of Jinja, with trim_blocks and lstrip_blocks on: a newline after a block tag goes, and so do blanks before one on its line. */
#include "src/chat/jast.h"

#include <string.h>
#include <utf8proc.h>

typedef struct lexer {
    qn_jvm *vm;
    const char *p, *end, *at;
    int32_t line;
    bool line_starting;   /* the last piece ended in a newline                                     */
    qn_jtokens *out;
    char *closers;        /* brackets that are open                                              */
    size_t n_open, cap_open;
} lexer;

const char *qn_jtok_name(qn_jtok t)
{
    static const char *const names[] = {
        "end of template", "template data", "begin of statement block", "end of statement block", "begin of print statement",
        "end of print statement", "name", "string", "number", "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=",
        "=", "(", ")", "[", "]", "{", "}", ".", ":", "|", ",", ";",
    };
    return names[t];
}

static bool fail(lexer *x, const char *what)
{
    return qn_jcompile_fail(x->vm, x->line, "%s", what);
}

static bool push(lexer *x, qn_jtok type, qn_jval val)
{
    qn_jtokens *o = x->out;
    if (o->n == o->cap) {
        const size_t cap = o->cap ? o->cap * 2 : 64;
        qn_jtoken *t = qn_jarena_grow(x->vm->mem, o->t, o->cap * sizeof *t, cap * sizeof *t);
        if (!t) return qn_jvm_no_memory(x->vm);
        o->t = t;
        o->cap = cap;
    }
    o->t[o->n++] = (qn_jtoken){ type, x->line, val };
    return qn_jvm_charge(x->vm, 1);
}

static bool push_text(lexer *x, qn_jtok type, const char *p, size_t n)
{
    const qn_jstr *s = qn_js_over(x->vm, p, n, false);
    if (!s) return false;
    qn_js_chars(s); /* threads share a template: counted now */
    return push(x, type, qn_jv_str(s));
}

static void count_lines(lexer *x, const char *from, const char *to)
{
    while (from < to && (from = memchr(from, '\n', (size_t)(to - from)))) {
        x->line++;
        from++;
    }
}

static const char *skip_space(const char *p, const char *end)
{
    size_t n;
    while (p < end && qn_js_space(qn_js_decode(p, end, &n))) p += n;
    return p;
}

/* End of [p, end) without the blanks at its end. */
static const char *strip_right(const char *p, const char *end)
{
    while (end > p) {
        const char *c = end - 1;
        size_t n;
        while (c > p && ((unsigned char)*c & 0xc0) == 0x80) c--;
        if (!qn_js_space(qn_js_decode(c, end, &n)) || c + n != end) break;
        end = c;
    }
    return end;
}

/* Template data in front of a tag: '-' strips it, and a tag that is not a variable loses the blanks between it and its line's begin. */
static bool data(lexer *x, const char *from, const char *to, char sign, bool variable)
{
    const char *cut = to;
    if (sign == '-') {
        cut = strip_right(from, to);
    } else if (sign != '+' && !variable) {
        const char *line = to;
        while (line > from && line[-1] != '\n') line--;
        if ((line > from || x->line_starting) && line < to && skip_space(line, to) == to) cut = line;
    }
    if (cut > from && !push_text(x, QN_JT_DATA, from, (size_t)(cut - from))) return false;
    count_lines(x, from, to);
    return true;
}

static bool starts(const lexer *x, const char *p, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(x->end - p) >= n && !memcmp(p, text, n);
}

static char sign_at(const lexer *x, const char *p)
{
    return p < x->end && (*p == '-' || *p == '+') ? *p : 0;
}

/* "%}" with its modifiers: "-%}" takes the blanks behind it, "%}" one newline (when trim), "+%}" nothing. NULL: no end here. */
static const char *tag_end(const lexer *x, const char *p, const char *mark, bool plus, bool trim)
{
    if (p < x->end && *p == '-' && starts(x, p + 1, mark)) return skip_space(p + 1 + strlen(mark), x->end);
    if (plus && p < x->end && *p == '+' && starts(x, p + 1, mark)) return p + 1 + strlen(mark);
    if (!starts(x, p, mark)) return NULL;
    p += strlen(mark);
    return trim && p < x->end && *p == '\n' ? p + 1 : p;
}

static void move_to(lexer *x, const char *p)
{
    count_lines(x, x->at, p);
    x->line_starting = p > x->at && p[-1] == '\n';
    x->at = p;
}

/* ---- inside tags ---- */

static bool word_char(int32_t c)
{
    if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (c & QN_J_BYTE) return false;
    const utf8proc_category_t k = utf8proc_category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NO);
}

static bool name(lexer *x)
{
    const char *p = x->at;
    size_t n;
    while (p < x->end && word_char(qn_js_decode(p, x->end, &n))) p += n;
    if (*x->at >= '0' && *x->at <= '9') return fail(x, "Invalid character in identifier");
    if (!push_text(x, QN_JT_NAME, x->at, (size_t)(p - x->at))) return false;
    move_to(x, p);
    return true;
}

static bool is_digit(char c, int base)
{
    const int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
    return d < base;
}

/* Digits with single underscores between them. */
static const char *digits(const lexer *x, const char *p, int base)
{
    const char *start = p;
    while (p < x->end && (is_digit(*p, base) || (*p == '_' && p > start && p[-1] != '_' && p + 1 < x->end && is_digit(p[1], base)))) p++;
    return p;
}

/* Behind the digits at p: ".5", "e9", ".5e-9"; p itself when there is no fraction or exponent. */
static const char *fraction(const lexer *x, const char *p)
{
    const char *q = p;
    if (q + 1 < x->end && *q == '.' && is_digit(q[1], 10)) q = p = digits(x, q + 1, 10);
    if (q < x->end && (*q | 32) == 'e') {
        q++;
        if (q < x->end && (*q == '+' || *q == '-')) q++;
        const char *e = digits(x, q, 10);
        if (e > q) return e;
    }
    return p;
}

static bool number(lexer *x)
{
    const char *p = digits(x, x->at, 10);
    const bool after_dot = x->at > x->p && x->at[-1] == '.';
    const char *f = after_dot ? p : fraction(x, p);
    qn_jval v;
    if (f > p) {
        const qn_jstr s = { .p = x->at, .n = (size_t)(f - x->at), .n_chars = (size_t)(f - x->at) };
        double d;
        if (!qn_jnum_float(&s, &d)) return fail(x, "malformed number");
        v = qn_jv_float(d);
        p = f;
    } else {
        const char c = x->at[0] == '0' && x->at + 1 < x->end ? (char)(x->at[1] | 32) : 0;
        const int base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
        if (base != 10) {
            const char *start = x->at + 2 + (x->at + 2 < x->end && x->at[2] == '_');
            const char *q = digits(x, start, base);
            if (q > start) p = q;
        } else if (x->at[0] == '0') { /* "00" is a number, "07" is two */
            for (p = x->at; p < x->end && (*p == '0' || (*p == '_' && p + 1 < x->end && p[1] == '0'));) p++;
        }
        const qn_jstr s = { .p = x->at, .n = (size_t)(p - x->at), .n_chars = (size_t)(p - x->at) };
        x->vm->line = x->line;
        if (!qn_jnum_int(x->vm, &s, 0, &v)) return fail(x, "malformed number");
    }
    if (!push(x, QN_JT_NUMBER, v)) return false;
    move_to(x, p);
    return true;
}

static bool hex_escape(lexer *x, qn_jbuf *b, const char **p, const char *end, int n)
{
    uint32_t c = 0;
    if (end - *p < n) return fail(x, "truncated escape in a string");
    for (int i = 0; i < n; i++) {
        const char d = (*p)[i];
        if (!is_digit(d, 16)) return fail(x, "truncated escape in a string");
        c = c << 4 | (uint32_t)(d <= '9' ? d - '0' : (d | 32) - 'a' + 10);
    }
    *p += n;
    if (c > 0x10ffff) return fail(x, "illegal Unicode character in a string");
    return qn_jbuf_char(b, (int32_t)c, false);
}

/* What stands behind a backslash, as Python's unicode_escape reads it. */
static bool escape(lexer *x, qn_jbuf *b, const char **p, const char *end)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    const char c = *(*p)++;
    const char *hit = memchr(from, c, sizeof from - 1);
    if (c == '\n') return true;
    if (hit) return qn_jbuf_add(b, &to[hit - from], 1, false);
    if (c == 'x') return hex_escape(x, b, p, end, 2);
    if (c == 'u') return hex_escape(x, b, p, end, 4);
    if (c == 'U') return hex_escape(x, b, p, end, 8);
    if (c == 'N') return fail(x, "character names in strings are not supported");
    if (is_digit(c, 8)) {
        int32_t v = c - '0';
        for (int i = 0; i < 2 && *p < end && is_digit(**p, 8); i++) v = v * 8 + (*(*p)++ - '0');
        return qn_jbuf_char(b, v, false);
    }
    return qn_jbuf_lit(b, "\\") && qn_jbuf_add(b, &c, 1, false);
}

static bool string(lexer *x)
{
    const char quote = *x->at, *p = x->at + 1;
    while (p < x->end && *p != quote) p += *p == '\\' && p + 1 < x->end ? 2 : 1;
    if (p >= x->end) return qn_jcompile_fail(x->vm, x->line, "unexpected char %c: the string does not end", quote);
    const char *end = p;
    p = x->at + 1;
    qn_jval v;
    if (!memchr(p, '\\', (size_t)(end - p))) {
        if (!push_text(x, QN_JT_STRING, p, (size_t)(end - p))) return false;
    } else {
        qn_jbuf b = { .vm = x->vm };
        while (p < end) {
            const char *stop = memchr(p, '\\', (size_t)(end - p));
            if (!stop) stop = end;
            if (!qn_jbuf_add(&b, p, (size_t)(stop - p), false)) return false;
            p = stop;
            if (p < end && (++p, !escape(x, &b, &p, end))) return false;
        }
        if (!qn_jbuf_value(&b, false, &v)) return false;
        qn_js_chars(v.s);
        if (!push(x, QN_JT_STRING, v)) return false;
    }
    move_to(x, end + 1);
    return true;
}

static bool bracket(lexer *x, char c)
{
    const char *pairs = "()[]{}", *hit = strchr(pairs, c);
    if (!hit) return true;
    if ((hit - pairs) % 2 == 0) {
        if (x->n_open == x->cap_open) {
            const size_t cap = x->cap_open ? x->cap_open * 2 : 64;
            char *p = qn_jarena_grow(x->vm->mem, x->closers, x->cap_open, cap);
            if (!p) return qn_jvm_no_memory(x->vm);
            x->closers = p;
            x->cap_open = cap;
        }
        x->closers[x->n_open++] = hit[1];
        return true;
    }
    if (!x->n_open) return qn_jcompile_fail(x->vm, x->line, "unexpected '%c'", c);
    if (x->closers[--x->n_open] != c) return qn_jcompile_fail(x->vm, x->line, "unexpected '%c', expected '%c'", c, x->closers[x->n_open]);
    return true;
}

static bool operator_(lexer *x)
{
    size_t best = 0;
    qn_jtok type = QN_JT_EOF;
    for (int t = QN_JT_ADD; t <= QN_JT_SEMICOLON; t++) {
        const char *text = qn_jtok_name((qn_jtok)t);
        if (strlen(text) > best && starts(x, x->at, text)) {
            best = strlen(text);
            type = (qn_jtok)t;
        }
    }
    if (!best) return qn_jcompile_fail(x->vm, x->line, "unexpected char '%c'", *x->at);
    if (!bracket(x, *x->at) || !push(x, type, qn_jv_none())) return false;
    move_to(x, x->at + best);
    return true;
}

/* Tokens up to the end of the tag. */
static bool tag(lexer *x, bool variable)
{
    for (;;) {
        if (x->at >= x->end) return true; /* the parser says what is missing */
        if (!x->n_open) {
            const char *p = tag_end(x, x->at, variable ? "}}" : "%}", !variable, !variable);
            if (p) {
                if (!push(x, variable ? QN_JT_VAR_END : QN_JT_BLOCK_END, qn_jv_none())) return false;
                move_to(x, p);
                return true;
            }
        }
        const char *p = skip_space(x->at, x->end);
        size_t n;
        if (p > x->at) {
            move_to(x, p);
            continue;
        }
        const int32_t c = qn_js_decode(p, x->end, &n);
        bool ok;
        if (c >= '0' && c <= '9') ok = number(x);
        else if (word_char(c)) ok = name(x);
        else if (c == '\'' || c == '"') ok = string(x);
        else ok = operator_(x);
        if (!ok) return false;
    }
}

/* ---- between tags ---- */

/* "raw" or "endraw" and the tag's end, from behind "{%-". NULL: another tag. */
static const char *raw_tag(const lexer *x, const char *p, const char *word, bool is_end)
{
    p = skip_space(p, x->end);
    if (!starts(x, p, word)) return NULL;
    p = skip_space(p + strlen(word), x->end);
    return tag_end(x, p, "%}", is_end, is_end);
}

static bool raw(lexer *x)
{
    for (const char *p = x->at; p < x->end; p++) {
        if (!starts(x, p, "{%")) continue;
        const char sign = sign_at(x, p + 2);
        const char *end = raw_tag(x, p + 2 + (sign != 0), "endraw", true);
        if (!end) continue;
        if (!data(x, x->at, p, sign, false)) return false;
        x->at = p;
        move_to(x, end);
        return true;
    }
    return fail(x, "Missing end of raw directive");
}

static bool comment(lexer *x)
{
    for (const char *p = x->at; p < x->end; p++) {
        const char *end = tag_end(x, p, "#}", true, true);
        if (!end) continue;
        move_to(x, end);
        return true;
    }
    return fail(x, "Missing end of comment tag");
}

static const char *next_tag(const lexer *x)
{
    for (const char *p = x->at; p + 1 < x->end && (p = memchr(p, '{', (size_t)(x->end - p - 1))); p++)
        if (p[1] == '%' || p[1] == '{' || p[1] == '#') return p;
    return x->end;
}

static bool lex(lexer *x)
{
    while (x->at < x->end) {
        const char *p = next_tag(x);
        if (p == x->end) {
            if (!push_text(x, QN_JT_DATA, x->at, (size_t)(p - x->at))) return false;
            move_to(x, p);
            break;
        }
        const char sign = sign_at(x, p + 2), kind = p[1];
        const char *inner = p + 2 + (sign != 0), *body = kind == '%' ? raw_tag(x, inner, "raw", false) : NULL;
        if (!data(x, x->at, p, sign, kind == '{')) return false;
        x->at = p;
        move_to(x, body ? body : inner);
        bool ok;
        if (body) ok = raw(x);
        else if (kind == '#') ok = comment(x);
        else ok = push(x, kind == '{' ? QN_JT_VAR_BEGIN : QN_JT_BLOCK_BEGIN, qn_jv_none()) && tag(x, kind == '{');
        if (!ok) return false;
    }
    return push(x, QN_JT_EOF, qn_jv_none());
}

/* Every line end becomes LF, and one at the very end goes. */
static char *normalized(qn_jvm *vm, qn_str source, size_t *n)
{
    char *p = qn_jarena_raw(vm->mem, source.len + 1);
    *n = 0;
    if (!p) {
        qn_jvm_no_memory(vm);
        return NULL;
    }
    for (size_t i = 0; i < source.len; i++) {
        char c = source.ptr[i];
        if (c == '\r') {
            if (i + 1 < source.len && source.ptr[i + 1] == '\n') continue;
            c = '\n';
        }
        p[(*n)++] = c;
    }
    if (*n && p[*n - 1] == '\n') --*n;
    p[*n] = 0;
    return p;
}

bool qn_jlex(qn_jvm *vm, qn_str source, qn_jtokens *out)
{
    size_t n;
    const char *p = normalized(vm, source, &n);
    if (!p) return false;
    lexer x = { .vm = vm, .p = p, .at = p, .end = p + n, .line = 1, .line_starting = true, .out = out };
    return lex(&x);
}
