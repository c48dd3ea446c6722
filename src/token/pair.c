/* Two texts as one, for a classifier that says how well they go together. */
#include "src/token/vocab.h"

#include <stdlib.h>
#include <string.h>

static qn_status add_text(const qn_vocab *v, qn_str text, qn_ids *out, qn_err *err)
{
    size_t n = 0;
    const size_t room = out->n < out->cap ? out->cap - out->n : 0;
    const qn_status s = qn_vocab_tokenize(v, text, 0, NULL, 0, room ? out->ids + out->n : NULL, room, &n, err);
    out->n += n;
    return s == QN_ERR_LIMIT && n > room ? QN_OK : s; /* the caller is told by the sum */
}

static void add_role(const qn_vocab *v, qn_role role, bool wanted, qn_ids *out)
{
    if (wanted && v->role[role] >= 0) qn_ids_add(out, v->role[role]);
}

/* [CLS] query [SEP] document [SEP]; of others BOS query EOS SEP document EOS, of which they have what they put around a text. */
static qn_status join(const qn_vocab *v, qn_str query, qn_str document, qn_ids *out, size_t *n_first, qn_err *err)
{
    const bool is_bert = v->kind->always_sep;
    const qn_role end = is_bert || v->role[QN_ROLE_EOS] < 0 ? QN_ROLE_SEP : QN_ROLE_EOS;
    add_role(v, QN_ROLE_BOS, is_bert || v->add_bos, out);
    QN_TRY(add_text(v, query, out, err));
    add_role(v, end, is_bert || v->add_eos, out);
    if (is_bert) *n_first = out->n;
    add_role(v, QN_ROLE_SEP, !is_bert && v->add_sep, out);
    QN_TRY(add_text(v, document, out, err));
    add_role(v, end, is_bert || v->add_eos, out);
    return QN_OK;
}

typedef struct filled {
    qn_buf text;
    qn_range *plain;  /* [n_plain] what came from the two texts */
    size_t n_plain, cap;
    bool failed;
} filled;

static void fill_in(filled *f, qn_str text)
{
    f->failed |= !qn_grow((void **)&f->plain, &f->cap, f->n_plain + 1, sizeof *f->plain);
    if (f->failed) return;
    f->plain[f->n_plain++] = (qn_range){ f->text.len, f->text.len + text.len };
    qn_buf_add(&f->text, text.ptr, text.len);
}

static bool begins(qn_str s, size_t at, qn_str name)
{
    return s.len - at >= name.len && !memcmp(s.ptr + at, name.ptr, name.len);
}

static void fill_form(filled *f, qn_str form, qn_str query, qn_str document)
{
    const qn_str q = QN_LIT("{query}"), d = QN_LIT("{document}");
    for (size_t i = 0; i < form.len && !f->failed;) {
        const bool is_q = begins(form, i, q), is_d = begins(form, i, d);
        if (is_q || is_d) fill_in(f, is_q ? query : document);
        else qn_buf_add(&f->text, form.ptr + i, 1);
        i += is_q ? q.len : is_d ? d.len : 1;
    }
    f->failed |= f->text.failed;
}

qn_status qn_vocab_tokenize_pair(const qn_vocab *v, qn_str form, qn_str query, qn_str document, int32_t *ids, size_t cap, size_t *n, size_t *n_first,
                                 qn_err *err)
{
    filled f = { 0 };
    qn_ids out = { ids, cap, 0 };
    qn_status s;
    *n = *n_first = 0;
    if (form.len) {
        fill_form(&f, form, query, document);
        if (f.failed) s = qn_fail(err, QN_ERR_NOMEM, "no memory for a pair of texts");
        else s = qn_vocab_tokenize(v, (qn_str){ f.text.ptr, f.text.len }, QN_TOK_PARSE, f.plain, f.n_plain, ids, cap, &out.n, err);
    } else {
        s = join(v, query, document, &out, n_first, err);
    }
    qn_buf_free(&f.text);
    free(f.plain);
    *n = out.n;
    if (s == QN_OK && out.n > cap) s = qn_fail(err, QN_ERR_LIMIT, "%zu tokens, room for %zu", out.n, cap);
    return s;
}
