#include "src/chat/jvm.h"

#include "src/base/mem.h"

#include <string.h>
#include <utf8proc.h>

/* ---- characters ---- */

int32_t qn_js_decode(const char *p, const char *end, size_t *n)
{
    const unsigned char c = (unsigned char)*p;
    *n = 1;
    if (c < 0x80) return c;
    utf8proc_int32_t cp;
    const utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)p, end - p, &cp);
    if (len < 1) return c | QN_J_BYTE;
    *n = (size_t)len;
    return cp;
}

size_t qn_js_encode(int32_t c, char out[4])
{
    if (c & QN_J_BYTE) {
        out[0] = (char)(c & 0xff);
        return 1;
    }
    if (c >= 0xd800 && c <= 0xdfff) c = 0xfffd; /* half a surrogate pair has no UTF-8 */
    return (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)out);
}

bool qn_js_space(int32_t c)
{
    if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

/* Characters of n bytes: those that decode, and single bytes that do not. */
static size_t count_chars(const char *p, size_t n)
{
    const char *end = p + n;
    size_t n_chars = 0;
    while (p < end) {
        size_t len = 1;
        if ((unsigned char)*p >= 0x80) qn_js_decode(p, end, &len);
        p += len;
        n_chars++;
    }
    return n_chars;
}

/* ---- strings ---- */

qn_jstr *qn_js_over(qn_jvm *vm, const char *p, size_t n, bool plain)
{
    qn_jstr *s = qn_jvm_new(vm, 1, sizeof *s);
    if (!s) return NULL;
    s->p = p;
    s->n = n;
    s->n_chars = SIZE_MAX;
    s->mark = plain ? QN_J_PLAIN : QN_J_TEMPLATE;
    return s;
}

qn_jstr *qn_js_lit(qn_jvm *vm, const char *text)
{
    return qn_js_over(vm, text, strlen(text), false);
}

size_t qn_js_chars(const qn_jstr *s)
{
    /* A cache: strings of one render belong to one thread, those of a compiled template were counted while compiling. */
    if (s->n_chars == SIZE_MAX) ((qn_jstr *)(uintptr_t)s)->n_chars = count_chars(s->p, s->n);
    return s->n_chars;
}

bool qn_js_ascii(const qn_jstr *s)
{
    return qn_js_chars(s) == s->n;
}

size_t qn_js_offset(const qn_jstr *s, size_t i)
{
    if (qn_js_ascii(s)) return i;
    const char *p = s->p, *end = s->p + s->n;
    for (; i && p < end; i--) {
        size_t len;
        qn_js_decode(p, end, &len);
        p += len;
    }
    return (size_t)(p - s->p);
}

size_t qn_js_stretch(const qn_jstr *s, size_t at, bool *plain)
{
    if (s->mark != QN_J_MIXED) {
        *plain = s->mark == QN_J_PLAIN;
        return s->n;
    }
    size_t lo = 0, hi = s->n_run; /* first run that ends behind `at` */
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (s->run[mid].end <= at) lo = mid + 1;
        else hi = mid;
    }
    *plain = lo < s->n_run && s->run[lo].begin <= at;
    if (lo == s->n_run) return s->n;
    return *plain ? s->run[lo].end : s->run[lo].begin;
}

static bool cut_runs(qn_jvm *vm, qn_jstr *r, const qn_jstr *s, size_t from, size_t to)
{
    bool plain;
    const size_t end = qn_js_stretch(s, from, &plain);
    r->mark = plain ? QN_J_PLAIN : QN_J_TEMPLATE;
    if (end >= to) return true;
    r->mark = QN_J_MIXED;
    qn_range *run = qn_jvm_new(vm, s->n_run, sizeof *run);
    if (!run) return false;
    r->run = run;
    for (size_t i = 0; i < s->n_run; i++) {
        const size_t b = s->run[i].begin > from ? s->run[i].begin : from, e = s->run[i].end < to ? s->run[i].end : to;
        if (b < e) run[r->n_run++] = (qn_range){ b - from, e - from };
    }
    return qn_jvm_charge(vm, s->n_run / 8);
}

const qn_jstr *qn_js_sub(qn_jvm *vm, const qn_jstr *s, size_t from, size_t to)
{
    if (from == 0 && to == s->n) return s;
    qn_jstr *r = qn_js_over(vm, s->p + from, to - from, s->mark == QN_J_PLAIN);
    if (!r) return NULL;
    if (s->n_chars == s->n) r->n_chars = r->n; /* all ASCII */
    if (s->mark == QN_J_MIXED && from < to && !cut_runs(vm, r, s, from, to)) return NULL;
    return r;
}

/* Append in place when nobody has built on the end of `a` yet: text that grows in a loop costs what is added, not what is there. */
static const char *joined_bytes(qn_jvm *vm, qn_jstr *r, const qn_jstr *a, const qn_jstr *b)
{
    qn_jtail *t = a->tail;
    if (t && a->p + a->n == t->end && (size_t)(t->limit - t->end) >= b->n) {
        memcpy(t->end, b->p, b->n);
        t->end += b->n;
        r->tail = t;
        return a->p;
    }
    const size_t n = a->n + b->n, cap = n >= 512 ? n * 2 : n;
    char *p = qn_jarena_raw(vm->mem, cap ? cap : 1);
    if (!p) {
        qn_jvm_no_memory(vm);
        return NULL;
    }
    memcpy(p, a->p, a->n);
    memcpy(p + a->n, b->p, b->n);
    if (cap > n) {
        r->tail = qn_jvm_new(vm, 1, sizeof *r->tail);
        if (!r->tail) return NULL;
        *r->tail = (qn_jtail){ p + n, p + cap };
    }
    return p;
}

static bool joined_runs(qn_jvm *vm, qn_jstr *r, const qn_jstr *a, const qn_jstr *b)
{
    if (a->mark == b->mark && a->mark != QN_J_MIXED) {
        r->mark = a->mark;
        return true;
    }
    const size_t cap = (a->mark == QN_J_MIXED ? a->n_run : 1) + (b->mark == QN_J_MIXED ? b->n_run : 1);
    qn_range *run = qn_jvm_new(vm, cap, sizeof *run);
    if (!run) return false;
    size_t n = 0;
    for (int half = 0; half < 2; half++) {
        const qn_jstr *s = half ? b : a;
        const size_t off = half ? a->n : 0;
        const qn_range all = { 0, s->n }, *src = s->mark == QN_J_PLAIN ? &all : s->run;
        const size_t n_src = s->mark == QN_J_PLAIN ? 1 : s->n_run;
        for (size_t i = 0; i < n_src; i++) {
            if (n && run[n - 1].end == src[i].begin + off) run[n - 1].end = src[i].end + off;
            else run[n++] = (qn_range){ src[i].begin + off, src[i].end + off };
        }
    }
    r->mark = QN_J_MIXED;
    r->run = run;
    r->n_run = n;
    return qn_jvm_charge(vm, n / 8);
}

const qn_jstr *qn_js_concat(qn_jvm *vm, const qn_jstr *a, const qn_jstr *b)
{
    if (!b->n) return a;
    if (!a->n) return b;
    if (b->n > vm->max_bytes - (a->n < vm->max_bytes ? a->n : vm->max_bytes)) {
        qn_jvm_stop(vm, QN_ERR_LIMIT, "template line %d: makes a string of more than %zu bytes", (int)vm->line, vm->max_bytes);
        return NULL;
    }
    qn_jstr *r = qn_js_over(vm, NULL, a->n + b->n, false);
    if (!r || !qn_jvm_charge(vm, b->n / 64)) return NULL;
    if (a->n_chars != SIZE_MAX && b->n_chars != SIZE_MAX && a->n_chars == a->n && b->n_chars == b->n) r->n_chars = r->n;
    r->p = joined_bytes(vm, r, a, b);
    return r->p && joined_runs(vm, r, a, b) ? r : NULL;
}

bool qn_js_eq(const qn_jstr *a, const qn_jstr *b)
{
    return a->n == b->n && (a->p == b->p || !memcmp(a->p, b->p, a->n));
}

bool qn_js_is(const qn_jstr *s, const char *text)
{
    const size_t n = strlen(text);
    return s->n == n && !memcmp(s->p, text, n);
}

/* The order of UTF-8 bytes is the order of code points. */
int qn_js_cmp(const qn_jstr *a, const qn_jstr *b)
{
    const int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

size_t qn_js_find(const qn_jstr *s, const qn_jstr *sub, size_t from, size_t to)
{
    if (from > to || sub->n > to - from) return SIZE_MAX;
    if (!sub->n) return from;
    const char *hit = memmem(s->p + from, to - from, sub->p, sub->n);
    return hit ? (size_t)(hit - s->p) : SIZE_MAX;
}

size_t qn_js_rfind(const qn_jstr *s, const qn_jstr *sub, size_t from, size_t to)
{
    if (from > to || sub->n > to - from) return SIZE_MAX;
    for (size_t i = to - sub->n + 1; i-- > from;)
        if (!memcmp(s->p + i, sub->p, sub->n)) return i;
    return SIZE_MAX;
}

/* ---- builders ---- */

static bool reserve(qn_jbuf *b, size_t n)
{
    qn_jvm *vm = b->vm;
    if (n > vm->max_bytes || b->n > vm->max_bytes - n)
        return qn_jvm_stop(vm, QN_ERR_LIMIT, "template line %d: makes a string of more than %zu bytes", (int)vm->line, vm->max_bytes);
    if (b->n + n <= b->cap) return true;
    size_t cap = b->cap ? b->cap * 2 : 64;
    if (cap < b->n + n) cap = b->n + n;
    char *p = qn_jarena_grow(vm->mem, b->p, b->cap, cap);
    if (!p) return qn_jvm_no_memory(vm);
    b->p = p;
    b->cap = cap;
    return true;
}

static bool mark(qn_jbuf *b, size_t from, size_t to)
{
    if (from == to) return true;
    if (b->n_run && b->run[b->n_run - 1].end == from) {
        b->run[b->n_run - 1].end = to;
        return true;
    }
    if (b->n_run == b->cap_run) {
        const size_t cap = b->cap_run ? b->cap_run * 2 : 4;
        qn_range *run = qn_jarena_grow(b->vm->mem, b->run, b->cap_run * sizeof *run, cap * sizeof *run);
        if (!run) return qn_jvm_no_memory(b->vm);
        b->run = run;
        b->cap_run = cap;
    }
    b->run[b->n_run++] = (qn_range){ from, to };
    return true;
}

bool qn_jbuf_add(qn_jbuf *b, const char *p, size_t n, bool plain)
{
    if (!n) return true;
    if (!reserve(b, n) || !qn_jvm_charge(b->vm, n / 64)) return false;
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return !plain || mark(b, b->n - n, b->n);
}

bool qn_jbuf_sub(qn_jbuf *b, const qn_jstr *s, size_t from, size_t to)
{
    while (from < to) {
        bool plain;
        size_t end = qn_js_stretch(s, from, &plain);
        if (end > to) end = to;
        if (!qn_jbuf_add(b, s->p + from, end - from, plain)) return false;
        from = end;
    }
    return true;
}

bool qn_jbuf_str(qn_jbuf *b, const qn_jstr *s)
{
    return qn_jbuf_sub(b, s, 0, s->n);
}

bool qn_jbuf_lit(qn_jbuf *b, const char *text)
{
    return qn_jbuf_add(b, text, strlen(text), false);
}

bool qn_jbuf_char(qn_jbuf *b, int32_t c, bool plain)
{
    char bytes[4];
    return qn_jbuf_add(b, bytes, qn_js_encode(c, bytes), plain);
}

bool qn_jbuf_fill(qn_jbuf *b, const qn_jstr *s, size_t n_times)
{
    size_t n;
    if (!s->n) return true;
    if (!qn_size_mul(s->n, n_times, &n)) n = SIZE_MAX;
    if (!reserve(b, n) || !qn_jvm_charge(b->vm, n_times / 4)) return false;
    for (size_t i = 0; i < n_times; i++)
        if (!qn_jbuf_str(b, s)) return false;
    return true;
}

const qn_jstr *qn_jbuf_done(qn_jbuf *b)
{
    qn_jstr *s = qn_js_over(b->vm, b->n ? b->p : "", b->n, false);
    if (!s) return NULL;
    if (b->n_run == 1 && b->run[0].begin == 0 && b->run[0].end == b->n) {
        s->mark = QN_J_PLAIN;
    } else if (b->n_run) {
        s->mark = QN_J_MIXED;
        s->run = b->run;
        s->n_run = b->n_run;
    }
    return s;
}

bool qn_jbuf_value(qn_jbuf *b, bool markup, qn_jval *out)
{
    const qn_jstr *s = qn_jbuf_done(b);
    if (s) *out = qn_jv_text(s, markup);
    return s;
}
