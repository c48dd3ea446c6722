/* From text to ids: special tokens cut the text, the vocabulary's kind encodes what is between them. */
#include "src/token/vocab.h"

/* The special token that begins at `at`: the longest that may. Control tokens may with QN_TOK_PARSE, where they lie wholly outside
 * the plain ranges; user-defined ones always, but guarded ones only outside too.
 * @param plain  the first range that ends behind `at`, or NULL */
static int32_t special_at(const qn_vocab *v, qn_str text, size_t at, bool parse, const qn_range *plain, size_t *end)
{
    int32_t best = -1;
    uint32_t node = 0;
    for (size_t i = at; i < text.len; i++) {
        node = qn_trie_step(&v->special, node, (unsigned char)text.ptr[i]);
        if (!node) break;
        const int32_t id = v->special.value[node];
        if (id < 0) continue;
        const bool touches = plain && plain->begin < i + 1;
        if (v->type[id] == QN_T_USER ? touches && (v->flags[id] & QN_TOK_GUARD) : !parse || touches) continue;
        best = id;
        *end = i + 1;
    }
    return best;
}

/* The end of the white space that begins at `at`. */
static size_t behind_blanks(qn_str text, size_t at)
{
    uint32_t cp;
    while (at < text.len) {
        const size_t n = qn_utf8_get(text.ptr + at, text.len - at, &cp);
        if (!(qn_uni_class(cp) & QN_C_SPACE)) break;
        at += n;
    }
    return at;
}

/* The beginning, not before `from`, of the white space that ends at `at`. */
static size_t before_blanks(qn_str text, size_t from, size_t at)
{
    uint32_t cp;
    while (at > from) {
        size_t n = 1;
        while (n < 4 && n < at - from && ((unsigned char)text.ptr[at - n] & 0xc0) == 0x80) n++;
        if (qn_utf8_get(text.ptr + at - n, n, &cp) != n || !(qn_uni_class(cp) & QN_C_SPACE)) break;
        at -= n;
    }
    return at;
}

static qn_status check_ranges(qn_str text, const qn_range *plain, size_t n, qn_err *err)
{
    if (text.len >= INT32_MAX) return qn_fail(err, QN_ERR_LIMIT, "a text of %zu bytes; 2 GiB are the limit", text.len);
    for (size_t i = 0; i < n; i++)
        if (plain[i].begin > plain[i].end || plain[i].end > text.len || (i && plain[i].begin < plain[i - 1].end))
            return qn_fail(err, QN_ERR_ARG, "plain range %zu is [%zu, %zu): ranges ascend, do not overlap and end within the text", i,
                           plain[i].begin, plain[i].end);
    return QN_OK;
}

typedef struct qn_parts {
    const qn_vocab *v;
    qn_work *work;
    qn_str text;
    size_t from; /* of the text not yet encoded             */
    bool first;  /* at the start, or behind a special token */
    qn_ids *out;
} qn_parts;

static qn_status encode_until(qn_parts *p, size_t end, qn_err *err)
{
    if (end <= p->from) return QN_OK;
    const qn_str part = { p->text.ptr + p->from, end - p->from };
    QN_TRY(p->v->kind->encode(p->v, p->work, part, p->first, p->out, err));
    p->first = false;
    return QN_OK;
}

static qn_status encode_all(qn_parts *p, int flags, const qn_range *plain, size_t n_plain, qn_err *err)
{
    const qn_vocab *v = p->v;
    size_t i_plain = 0, end = 0;
    for (size_t at = 0; at < p->text.len;) {
        while (i_plain < n_plain && (plain[i_plain].end <= at || plain[i_plain].end == plain[i_plain].begin)) i_plain++;
        const int32_t id = special_at(v, p->text, at, flags & QN_TOK_PARSE, i_plain < n_plain ? &plain[i_plain] : NULL, &end);
        if (id < 0) {
            at++;
            continue;
        }
        QN_TRY(encode_until(p, v->flags[id] & QN_TOK_LSTRIP ? before_blanks(p->text, p->from, at) : at, err));
        qn_ids_add(p->out, id);
        p->from = at = v->flags[id] & QN_TOK_RSTRIP ? behind_blanks(p->text, end) : end;
        p->first = true;
    }
    return encode_until(p, p->text.len, err);
}

qn_status qn_vocab_tokenize(const qn_vocab *v, qn_str text, int flags, const qn_range *plain, size_t n_plain, int32_t *ids, size_t cap,
                            size_t *n, qn_err *err)
{
    *n = 0;
    QN_TRY(check_ranges(text, plain, n_plain, err));
    qn_work work = { 0 };
    qn_ids out = { ids, cap, 0 };
    qn_parts parts = { v, &work, text, 0, true, &out };
    const bool special = flags & QN_TOK_SPECIAL, sep = v->kind->always_sep;
    if (special && (v->add_bos || sep) && v->role[QN_ROLE_BOS] >= 0) qn_ids_add(&out, v->role[QN_ROLE_BOS]);
    qn_status s = encode_all(&parts, flags, plain, n_plain, err);
    if (special && v->add_eos && !sep && v->role[QN_ROLE_EOS] >= 0) qn_ids_add(&out, v->role[QN_ROLE_EOS]);
    if (special && sep && v->role[QN_ROLE_SEP] >= 0) qn_ids_add(&out, v->role[QN_ROLE_SEP]);
    if (work.failed) s = qn_fail(err, QN_ERR_NOMEM, "no memory to tokenize %zu bytes", text.len);
    qn_work_free(&work);
    QN_TRY(s);
    *n = out.n;
    if (out.n > cap) return qn_fail(err, QN_ERR_LIMIT, "%zu tokens, room for %zu", out.n, cap);
    return QN_OK;
}
