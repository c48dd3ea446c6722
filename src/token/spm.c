/* SentencePiece's BPE (Llama 1 and 2, Gemma, Mistral ...): the pair of neighbours whose joined piece has the best score merges first,
 * the leftmost of equals; characters that are no piece become byte tokens. */
#include "src/token/vocab.h"

#include <string.h>

/* Words begin with U+2581. Where no piece has one behind the last byte of the word before (in Gemma 3 one piece has, behind '>'), no merge
 * crosses the start of a word, and each word is done by itself: the heap stays small. */
static qn_status spm_open(qn_vocab *v, const qn_file *file, qn_err *err)
{
    (void)file;
    (void)err;
    for (int32_t id = 0; id < v->n; id++) {
        const qn_str t = v->text[id];
        if (!qn_type_is_text(v->type[id])) continue;
        for (size_t i = 1; i + 3 <= t.len; i++)
            if (memcmp(t.ptr + i, QN_BLANK, 3) == 0) v->joins_blank[(unsigned char)t.ptr[i - 1]] = true;
    }
    return QN_OK;
}

/* Floats in descending order as ascending integers: the heap compares one kind of number. */
static uint32_t order_of(float score)
{
    uint32_t u;
    if (score == 0) score = 0; /* -0 is 0 */
    memcpy(&u, &score, 4);
    return u & 0x80000000u ? u : ~u & 0x7fffffffu;
}

static void try_pair(const qn_vocab *v, qn_work *w, uint32_t left)
{
    if (left == QN_NONE || w->sym[left].next == QN_NONE) return;
    const qn_symbol *l = &w->sym[left];
    const uint32_t len = l->len + w->sym[l->next].len;
    const int32_t id = qn_vocab_find(v, w->text.ptr + l->begin, len);
    if (id >= 0) qn_work_push(w, (qn_merge){ left, order_of(v->score[id]), (int32_t)len, 0, id });
}

static void merge_all(const qn_vocab *v, qn_work *w)
{
    w->n_heap = 0;
    for (uint32_t i = 0; i + 1 < w->n_sym; i++) try_pair(v, w, i);
    qn_merge m;
    while (qn_work_pop(w, &m)) {
        qn_symbol *l = &w->sym[m.left];
        if (l->len == 0 || l->next == QN_NONE || l->len + w->sym[l->next].len != (uint32_t)m.left_id) continue;
        qn_work_join(w, m.left);
        try_pair(v, w, l->prev);
        try_pair(v, w, m.left);
    }
}

/* Symbols of w->text from `from` to the end of the word (or of several that merges may join). @return the end */
static size_t cut(const qn_vocab *v, qn_work *w, size_t from)
{
    bool in_word = false;
    size_t i = from;
    for (w->n_sym = 0; i < w->text.len && !w->failed;) {
        uint32_t cp;
        const size_t n = qn_utf8_get(w->text.ptr + i, w->text.len - i, &cp);
        if (cp == 0x2581 && in_word && !v->joins_blank[(unsigned char)w->text.ptr[i - 1]]) break;
        in_word = cp != 0x2581;
        qn_work_symbol(w, (uint32_t)i, (uint32_t)n, -1, i == from);
        i += n;
    }
    return i;
}

/* Runs of characters without bytes to fall back on are one unknown token, as in SentencePiece. */
static void emit(const qn_vocab *v, const qn_work *w, bool *unknown, qn_ids *out)
{
    for (uint32_t i = 0; i != QN_NONE; i = w->sym[i].next) {
        const qn_symbol *s = &w->sym[i];
        const char *text = w->text.ptr + s->begin;
        const int32_t id = qn_vocab_find(v, text, s->len);
        if (id >= 0) {
            qn_ids_add(out, id);
            *unknown = false;
            continue;
        }
        for (uint32_t k = 0; k < s->len; k++) {
            const bool known = v->byte_id[(unsigned char)text[k]] >= 0;
            if (known || !*unknown) qn_vocab_byte(v, (unsigned char)text[k], out);
            *unknown = !known;
        }
    }
}

static qn_status spm_encode(const qn_vocab *v, qn_work *w, qn_str text, bool first, qn_ids *out, qn_err *err)
{
    (void)err;
    w->text.len = 0;
    if (first && v->add_space) qn_buf_add(&w->text, QN_BLANK, 3);
    for (size_t i = 0, e; i < text.len; i = e) {
        const bool blank = text.ptr[i] == ' ';
        for (e = i + 1; !blank && e < text.len && text.ptr[e] != ' ';) e++;
        qn_buf_add(&w->text, blank ? QN_BLANK : text.ptr + i, blank ? 3 : e - i);
    }
    if (w->text.failed) w->failed = true;
    if (w->failed) return QN_ERR_NOMEM;
    bool unknown = false;
    for (size_t at = 0; at < w->text.len && !w->failed;) {
        at = cut(v, w, at);
        if (!w->failed) merge_all(v, w);
        if (!w->failed) emit(v, w, &unknown, out);
    }
    return w->failed ? QN_ERR_NOMEM : QN_OK;
}

const qn_tok_kind qn_kind_spm = {
    .model = "llama",
    .role = { [QN_ROLE_BOS] = 1, [QN_ROLE_EOS] = 2, -1, -1, [QN_ROLE_UNK] = 0, -1, -1, -1, -1 },
    .add_bos = true,
    .add_space = true,
    .open = spm_open,
    .encode = spm_encode,
};
