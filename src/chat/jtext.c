/* Operations on text that filters and methods share: strip, split, replace, lines, padding, word wrap. */
#include "src/chat/jfilter.h"

#include <string.h>
#include <utf8proc.h>

/* ---- strip ---- */

static bool in_set(int32_t c, const qn_jstr *chars)
{
    if (!chars) return qn_js_space(c);
    for (size_t at = 0, n; at < chars->n; at += n)
        if (qn_js_decode(chars->p + at, chars->p + chars->n, &n) == c) return true;
    return false;
}

/* Where the character before byte `at` begins. */
static size_t before(const qn_jstr *s, size_t at, size_t from)
{
    size_t n;
    for (size_t back = 1; back <= 4 && back <= at - from; back++) {
        qn_js_decode(s->p + at - back, s->p + at, &n);
        if (n == back && (back > 1 || (unsigned char)s->p[at - 1] < 0x80)) return at - back;
    }
    return at - 1;
}

void qn_js_strip(const qn_jstr *s, const qn_jstr *chars, bool left, bool right, size_t *from, size_t *to)
{
    size_t n;
    *from = 0;
    *to = s->n;
    while (left && *from < *to && in_set(qn_js_decode(s->p + *from, s->p + *to, &n), chars)) *from += n;
    while (right && *to > *from) {
        const size_t at = before(s, *to, *from);
        if (!in_set(qn_js_decode(s->p + at, s->p + *to, &n), chars)) break;
        *to = at;
    }
}

/* ---- replace ---- */

bool qn_js_replace(qn_jvm *vm, const qn_jstr *s, const qn_jstr *old, const qn_jstr *fresh, int64_t count, qn_jbuf *b)
{
    size_t at = 0;
    if (!qn_jvm_charge(vm, s->n / 64)) return false;
    if (!old->n) { /* between all characters */
        for (; count != 0 && at <= s->n; count -= count > 0) {
            size_t n = 0;
            if (at < s->n) qn_js_decode(s->p + at, s->p + s->n, &n);
            if (!qn_jbuf_str(b, fresh) || !qn_jbuf_sub(b, s, at, at + n) || !qn_jvm_charge(vm, 1)) return false;
            at += n;
            if (!n) return true;
        }
        return qn_jbuf_sub(b, s, at, s->n);
    }
    for (; count != 0; count -= count > 0) {
        const size_t hit = qn_js_find(s, old, at, s->n);
        if (hit == SIZE_MAX) break;
        if (!qn_jbuf_sub(b, s, at, hit) || !qn_jbuf_str(b, fresh) || !qn_jvm_charge(vm, 1)) return false;
        at = hit + old->n;
    }
    return qn_jbuf_sub(b, s, at, s->n);
}

/* ---- split ---- */

static bool add_part(qn_jvm *vm, const qn_jstr *s, bool markup, size_t from, size_t to, qn_jlist *out)
{
    const qn_jstr *part = qn_js_sub(vm, s, from, to);
    return part && qn_jvm_charge(vm, 1) && qn_jl_add(vm, out, qn_jv_text(part, markup));
}

static void flip(qn_jlist *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        const qn_jval t = l->v[i];
        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = t;
    }
}

static bool split_words(qn_jvm *vm, const qn_jstr *s, bool markup, int64_t n_max, qn_jlist *out)
{
    size_t at = 0, n;
    for (;; n_max -= n_max > 0) {
        while (at < s->n && qn_js_space(qn_js_decode(s->p + at, s->p + s->n, &n))) at += n;
        if (at == s->n) return true;
        if (n_max == 0) return add_part(vm, s, markup, at, s->n, out);
        const size_t from = at;
        while (at < s->n && !qn_js_space(qn_js_decode(s->p + at, s->p + s->n, &n))) at += n;
        if (!add_part(vm, s, markup, from, at, out)) return false;
    }
}

static bool split_words_back(qn_jvm *vm, const qn_jstr *s, bool markup, int64_t n_max, qn_jlist *out)
{
    size_t at = s->n, n;
    for (;; n_max -= n_max > 0) {
        for (size_t c; at > 0 && (c = before(s, at, 0), qn_js_space(qn_js_decode(s->p + c, s->p + at, &n)));) at = c;
        if (at == 0) break;
        if (n_max == 0) {
            if (!add_part(vm, s, markup, 0, at, out)) return false;
            break;
        }
        const size_t to = at;
        for (size_t c; at > 0 && (c = before(s, at, 0), !qn_js_space(qn_js_decode(s->p + c, s->p + at, &n)));) at = c;
        if (!add_part(vm, s, markup, at, to, out)) return false;
    }
    flip(out);
    return true;
}

static bool split_at(qn_jvm *vm, const qn_jstr *s, bool markup, const qn_jstr *sep, int64_t n_max, bool back, qn_jlist *out)
{
    size_t from = 0, to = s->n;
    for (; n_max != 0; n_max -= n_max > 0) {
        const size_t hit = back ? qn_js_rfind(s, sep, from, to) : qn_js_find(s, sep, from, to);
        if (hit == SIZE_MAX) break;
        if (!(back ? add_part(vm, s, markup, hit + sep->n, to, out) : add_part(vm, s, markup, from, hit, out))) return false;
        if (back) to = hit;
        else from = hit + sep->n;
    }
    if (!add_part(vm, s, markup, from, to, out)) return false;
    if (back) flip(out);
    return true;
}

bool qn_js_split(qn_jvm *vm, const qn_jstr *s, bool markup, const qn_jstr *sep, int64_t n_max, bool back, qn_jlist *out)
{
    if (!qn_jvm_charge(vm, s->n / 64)) return false;
    if (sep) return sep->n ? split_at(vm, s, markup, sep, n_max, back, out) : qn_jvm_fail(vm, "empty separator");
    return back ? split_words_back(vm, s, markup, n_max, out) : split_words(vm, s, markup, n_max, out);
}

/* ---- lines ---- */

static bool line_break(int32_t c)
{
    return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool qn_js_lines(qn_jvm *vm, const qn_jstr *s, bool markup, bool keep_ends, qn_jlist *out)
{
    for (size_t at = 0, n; at < s->n;) {
        const size_t from = at;
        int32_t c = 0;
        while (at < s->n && !line_break(c = qn_js_decode(s->p + at, s->p + s->n, &n))) at += n;
        const size_t end = at;
        if (at < s->n) at += n + (c == '\r' && at + 1 < s->n && s->p[at + 1] == '\n');
        if (!add_part(vm, s, markup, from, keep_ends ? at : end, out)) return false;
    }
    return true;
}

/* ---- padding ---- */

bool qn_js_pad(qn_jvm *vm, qn_jval s, int64_t left, int64_t right, const qn_jstr *fill, qn_jval *out)
{
    const qn_jstr space = { .p = " ", .n = 1, .n_chars = 1 };
    qn_jbuf b = { .vm = vm };
    if (!fill) fill = &space;
    if (qn_js_chars(fill) != 1) return qn_jvm_fail(vm, "The fill character must be exactly one character long");
    if (left <= 0 && right <= 0) return *out = s, true;
    return qn_jbuf_fill(&b, fill, left > 0 ? (size_t)left : 0) && qn_jbuf_str(&b, s.s) && qn_jbuf_fill(&b, fill, right > 0 ? (size_t)right : 0) &&
           qn_jbuf_value(&b, s.markup, out);
}

bool qn_js_center(qn_jvm *vm, qn_jval s, int64_t width, const qn_jstr *fill, qn_jval *out)
{
    const int64_t len = (int64_t)qn_js_chars(s.s), pad = width > len ? width - len : 0, left = pad / 2 + (pad & width & 1);
    return qn_js_pad(vm, s, left, pad - left, fill, out);
}

/* ---- word wrap, as Python's textwrap with white space kept as it is ---- */

typedef struct chunk {
    size_t from, to, n_chars;
    bool space;
} chunk;

typedef struct wrapper {
    qn_jvm *vm;
    const qn_jstr *s;
    chunk *c;
    size_t n, cap;
    int64_t width;
    bool break_long, hyphens, started;
    const qn_jstr *newline;
    qn_jbuf *out;
} wrapper;

static bool add_chunk(wrapper *w, size_t from, size_t to, bool space)
{
    if (w->n == w->cap) {
        const size_t cap = w->cap ? w->cap * 2 : 64;
        chunk *c = qn_jarena_grow(w->vm->mem, w->c, w->cap * sizeof *c, cap * sizeof *c);
        if (!c) return qn_jvm_no_memory(w->vm);
        w->c = c;
        w->cap = cap;
    }
    const qn_jstr part = { .p = w->s->p + from, .n = to - from, .n_chars = SIZE_MAX };
    w->c[w->n++] = (chunk){ from, to, qn_js_chars(&part), space };
    return qn_jvm_charge(w->vm, 1);
}

static bool letter(const qn_jstr *s, size_t at, size_t *n)
{
    *n = 1;
    if (at >= s->n) return false;
    const int32_t c = qn_js_decode(s->p + at, s->p + s->n, n);
    if (c & QN_J_BYTE) return false;
    const utf8proc_category_t k = utf8proc_category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) || c == '_';
}

/* May a line break stand behind the hyphen at byte `at`? Two letters before it, and a letter, perhaps a hyphen, a letter behind it. */
static bool breaks_after(const qn_jstr *s, size_t at, size_t from)
{
    size_t n, m;
    if (s->p[at] != '-' || at - from < 2) return false;
    const size_t one = before(s, at, from);
    if (one == from || !letter(s, one, &n) || !letter(s, before(s, one, from), &n) || !letter(s, at + 1, &n)) return false;
    const size_t next = at + 1 + n, skip = next < s->n && s->p[next] == '-';
    return letter(s, next + skip, &m);
}

static bool chunks_of(wrapper *w, size_t from, size_t to)
{
    const qn_jstr *s = w->s;
    size_t n;
    w->n = 0;
    for (size_t at = from; at < to;) {
        const size_t start = at;
        const bool space = qn_js_space(qn_js_decode(s->p + at, s->p + to, &n));
        while (at < to && qn_js_space(qn_js_decode(s->p + at, s->p + to, &n)) == space) {
            const bool stop = !space && w->hyphens && breaks_after(s, at, start);
            at += n;
            if (stop) break;
        }
        if (!add_chunk(w, start, at, space)) return false;
    }
    return true;
}

/* Cut what fits into `room` characters off a chunk that is longer than a line. */
static void cut_chunk(const wrapper *w, chunk *c, size_t room, chunk *head)
{
    const qn_jstr part = { .p = w->s->p + c->from, .n = c->to - c->from, .n_chars = c->n_chars };
    const size_t bytes = qn_js_offset(&part, room);
    *head = (chunk){ c->from, c->from + bytes, room, c->space };
    c->from += bytes;
    c->n_chars -= room;
}

static bool put_line(wrapper *w, size_t from, size_t to)
{
    if (w->started && !qn_jbuf_str(w->out, w->newline)) return false;
    w->started = true;
    return qn_jbuf_sub(w->out, w->s, from, to);
}

static bool wrap_line(wrapper *w, size_t from, size_t to)
{
    if (!chunks_of(w, from, to)) return false;
    bool any = false;
    for (size_t i = 0; i < w->n;) {
        if (w->c[i].space && any && ++i == w->n) break;
        size_t len = 0, first = i;
        const size_t width = (size_t)w->width, start = w->c[i].from;
        size_t end = start;
        while (i < w->n && len + w->c[i].n_chars <= width) {
            len += w->c[i].n_chars;
            end = w->c[i++].to;
        }
        if (i < w->n && w->c[i].n_chars > width) { /* longer than a whole line */
            chunk head;
            if (w->break_long && len < width) {
                cut_chunk(w, &w->c[i], width - len, &head);
                end = head.to;
            } else if (!w->break_long && i == first) {
                end = w->c[i++].to;
            }
        }
        if (i > first && w->c[i - 1].space && end == w->c[i - 1].to) end = w->c[i - 1].from;
        if (end > start) {
            if (!put_line(w, start, end)) return false;
            any = true;
        }
        if (!qn_jvm_charge(w->vm, 1)) return false;
    }
    return any || put_line(w, from, from);
}

bool qn_jfilter_wordwrap(qn_jvm *vm, qn_jcall *c, qn_jval *out)
{
    qn_jbuf b = { .vm = vm };
    const qn_jstr *s = qn_jarg_str(vm, c->a[0]), *newline = qn_js_lit(vm, "\n");
    wrapper w = { .vm = vm, .s = s, .out = &b };
    if (!s || !newline || !qn_jarg_int_or(vm, c->a[1], 79, &w.width)) return false;
    if (qn_jarg_given(c->a[3]) && c->a[3].type != QN_J_NONE && !(newline = qn_jarg_str(vm, c->a[3]))) return false;
    if (w.width <= 0) return qn_jvm_fail(vm, "invalid width (must be > 0)");
    w.newline = newline;
    w.break_long = !qn_jarg_given(c->a[2]) || qn_jv_truth(vm, c->a[2]);
    w.hyphens = !qn_jarg_given(c->a[4]) || qn_jv_truth(vm, c->a[4]);
    qn_jlist lines = { 0 };
    if (!qn_js_lines(vm, s, false, false, &lines)) return false;
    for (size_t i = 0; i < lines.n; i++) {
        const size_t from = (size_t)(lines.v[i].s->p - s->p);
        if (!wrap_line(&w, from, from + lines.v[i].s->n)) return false;
    }
    return qn_jbuf_value(&b, false, out);
}
