/* Opening a vocabulary: the tokenizer.* keys of a file, checked, and the table from text to id. */
#include "src/token/vocab.h"

#include "src/format/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static qn_status none_open(qn_vocab *v, const qn_file *file, qn_err *err)
{
    (void)v;
    (void)file;
    (void)err;
    return QN_OK;
}

static qn_status none_encode(const qn_vocab *v, qn_work *w, qn_str text, bool first, qn_ids *out, qn_err *err)
{
    (void)v;
    (void)w;
    (void)text;
    (void)first;
    (void)out;
    return qn_fail(err, QN_ERR_UNSUPPORTED, "the file holds no tokenizer");
}

static const qn_tok_kind kind_none = {
    .model = "none", .role = { -1, -1, -1, -1, -1, -1, -1, -1, -1 }, .open = none_open, .encode = none_encode,
};

static const qn_tok_kind *const kinds[] = {
    &qn_kind_bpe, &qn_kind_bpe_raw, &qn_kind_whitespace, &qn_kind_spm, &qn_kind_wordpiece, &qn_kind_unigram, &kind_none,
};

static bool is_name(qn_str s, const char *name)
{
    return s.len == strlen(name) && memcmp(s.ptr, name, s.len) == 0;
}

/* A key that may be missing. */
#define TRY_OPTIONAL(call)                                                    \
    do {                                                                      \
        const qn_status st_ = (call);                                         \
        if (st_ != QN_OK && st_ != QN_ERR_NOT_FOUND) return st_;              \
    } while (0)

static qn_status read_kind(qn_vocab *v, const qn_file *file, qn_err *err)
{
    qn_str model = QN_LIT("none"), pre = QN_LIT("");
    TRY_OPTIONAL(qn_key_str(file, "tokenizer.ggml.model", "", &model, err));
    if (is_name(model, "no_vocab")) model = QN_LIT("none");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_name(model, kinds[i]->model)) v->kind = kinds[i];
    if (!v->kind)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "tokenizer.ggml.model is \"%.*s\", a kind of tokenizer that quern does not know",
                       QN_STR_ARG(model));
    v->pre = qn_pre_at(0);
    if (v->kind == &qn_kind_bpe_raw) pre = QN_LIT("gemma4");
    else if (v->kind == &qn_kind_whitespace) pre = QN_LIT("whitespace");
    else if (v->kind == &qn_kind_bpe) TRY_OPTIONAL(qn_key_str(file, "tokenizer.ggml.pre", "", &pre, err));
    v->pre = qn_pre_find_name(pre);
    if (!v->pre)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "tokenizer.ggml.pre is \"%.*s\", a pre-tokenizer that quern does not know",
                       QN_STR_ARG(pre));
    v->raw = (v->pre->flags & QN_PRE_RAW) != 0;
    if (v->raw && v->kind == &qn_kind_bpe) v->kind = is_name(pre, "whitespace") ? &qn_kind_whitespace : &qn_kind_bpe_raw;
    v->nfc = (v->pre->flags & QN_PRE_NFC) != 0;
    qn_str arch = QN_LIT("");
    TRY_OPTIONAL(qn_key_str(file, "general.architecture", "", &arch, err));
    if (v->pre == qn_pre_at(0) && v->kind == &qn_kind_bpe && is_name(arch, "gptneox")) v->nfc = true; /* see docs/tokenizers.md */
    return QN_OK;
}

static qn_status read_texts(qn_vocab *v, const qn_file *file, qn_err *err)
{
    qn_value tokens;
    if (v->kind == &kind_none && !qn_file_key(file, "tokenizer.ggml.tokens", &tokens)) return QN_OK;
    QN_TRY(qn_key_array(file, "tokenizer.ggml.tokens", "", QN_V_STRING, &tokens, err));
    if (tokens.count > INT32_MAX / 4)
        return qn_fail(err, QN_ERR_FORMAT, "tokenizer.ggml.tokens has %llu tokens", (unsigned long long)tokens.count);
    v->n = (int32_t)tokens.count;
    v->text = qn_new((size_t)v->n, sizeof *v->text);
    v->type = qn_new((size_t)v->n, sizeof *v->type);
    v->flags = qn_new((size_t)v->n, sizeof *v->flags);
    if (!v->text || !v->type || !v->flags) return qn_fail(err, QN_ERR_NOMEM, "no memory for a vocabulary of %d tokens", v->n);
    qn_value_iter it = qn_value_iterate(&tokens);
    qn_value s;
    for (int32_t i = 0; i < v->n && qn_value_next(&it, &s); i++) QN_TRY(qn_value_as_str(&s, &v->text[i]));
    return QN_OK;
}

/* An array of 4-byte elements of type a or b, with one for each token at least. */
static qn_status find_column(const qn_vocab *v, const qn_file *file, const char *key, qn_vtype a, qn_vtype b, qn_value *out,
                             qn_err *err)
{
    if (!qn_file_key(file, key, out)) return QN_ERR_NOT_FOUND;
    if (out->type != QN_V_ARRAY || (out->elem != a && out->elem != b))
        return qn_fail(err, QN_ERR_TYPE, "%s is not an array of %s", key, qn_vtype_name(a));
    if (out->count < (uint64_t)v->n)
        return qn_fail(err, QN_ERR_FORMAT, "%s has %llu elements for %d tokens", key, (unsigned long long)out->count, v->n);
    return QN_OK;
}

static qn_status read_types(qn_vocab *v, const qn_file *file, qn_err *err)
{
    qn_value column;
    for (int32_t i = 0; i < v->n; i++) v->type[i] = QN_T_NORMAL;
    const qn_status s = find_column(v, file, "tokenizer.ggml.token_type", QN_V_I32, QN_V_U32, &column, err);
    if (s == QN_ERR_NOT_FOUND) return QN_OK;
    QN_TRY(s);
    for (int32_t i = 0; i < v->n; i++) {
        int32_t t;
        memcpy(&t, column.data + 4 * (size_t)i, 4);
        v->type[i] = t >= QN_T_NORMAL && t <= QN_T_BYTE ? (uint8_t)t : QN_T_UNUSED;
    }
    return QN_OK;
}

static qn_status read_scores(qn_vocab *v, const qn_file *file, qn_err *err)
{
    qn_value column;
    v->score = qn_new((size_t)v->n, sizeof *v->score);
    if (!v->score) return qn_fail(err, QN_ERR_NOMEM, "no memory for the scores of %d tokens", v->n);
    const qn_status s = find_column(v, file, "tokenizer.ggml.scores", QN_V_F32, QN_V_I32, &column, err);
    if (s == QN_ERR_NOT_FOUND) return QN_OK;
    QN_TRY(s);
    for (int32_t i = 0; i < v->n; i++) {
        int32_t whole;
        memcpy(&whole, column.data + 4 * (size_t)i, 4);
        memcpy(&v->score[i], &whole, 4);
        if (column.elem == QN_V_I32) v->score[i] = (float)whole;
        if (isnan(v->score[i])) return qn_fail(err, QN_ERR_FORMAT, "tokenizer.ggml.scores has NaN for token %d", i);
    }
    return QN_OK;
}

uint64_t qn_vocab_hash(const char *s, size_t n)
{
    const uint64_t k = 0x9fb21c651e98df25u;
    uint64_t h = (n + 1) * k;
    for (; n >= 8; s += 8, n -= 8) {
        uint64_t x;
        memcpy(&x, s, 8);
        h = (h ^ x) * k;
        h ^= h >> 32;
    }
    uint64_t tail = 0;
    memcpy(&tail, s, n);
    h = (h ^ tail) * k;
    return h ^ h >> 29;
}

/* A text longer than every token is not even hashed: words may be as long as the input. */
static bool may_be(const qn_vocab *v, size_t n)
{
    return n > 0 && n <= v->max_len && v->n_slots > 0;
}

static int32_t find(const qn_vocab *v, const char *s, size_t n, uint64_t h, bool any)
{
    const uint32_t tag = (uint32_t)(h >> 32);
    for (size_t i = (size_t)h & (v->n_slots - 1); v->slot[i].id1; i = (i + 1) & (v->n_slots - 1)) {
        if (v->slot[i].tag != tag) continue;
        const int32_t id = v->slot[i].id1 - 1;
        if (v->text[id].len == n && memcmp(v->text[id].ptr, s, n) == 0 && (any || qn_type_is_text(v->type[id]))) return id;
    }
    return -1;
}

int32_t qn_vocab_guess(const qn_vocab *v, uint64_t hash)
{
    for (size_t i = (size_t)hash & (v->n_slots - 1); v->slot[i].id1; i = (i + 1) & (v->n_slots - 1))
        if (v->slot[i].tag == (uint32_t)(hash >> 32)) return v->slot[i].id1 - 1;
    return -1;
}

int32_t qn_vocab_find_hashed(const qn_vocab *v, const char *text, size_t len, uint64_t hash)
{
    return may_be(v, len) ? find(v, text, len, hash, false) : -1;
}

int32_t qn_vocab_find(const qn_vocab *v, const char *text, size_t len)
{
    return may_be(v, len) ? find(v, text, len, qn_vocab_hash(text, len), false) : -1;
}

int32_t qn_vocab_find_any(const qn_vocab *v, const char *text, size_t len)
{
    return may_be(v, len) ? find(v, text, len, qn_vocab_hash(text, len), true) : -1;
}

/* Ids go in from the lowest: of tokens with one text the lowest is found, the others only decode. */
qn_status qn_vocab_index(qn_vocab *v, qn_err *err)
{
    v->n_slots = 16;
    while (v->n_slots < (size_t)v->n * 2) v->n_slots *= 2;
    v->slot = qn_new(v->n_slots, sizeof *v->slot);
    if (!v->slot) return qn_fail(err, QN_ERR_NOMEM, "no memory for the index of %d tokens", v->n);
    for (int32_t id = 0; id < v->n; id++) {
        if (v->text[id].len > v->max_len) v->max_len = v->text[id].len;
        const uint64_t h = qn_vocab_hash(v->text[id].ptr, v->text[id].len);
        const uint32_t tag = (uint32_t)(h >> 32);
        size_t i = (size_t)h & (v->n_slots - 1);
        for (; v->slot[i].id1; i = (i + 1) & (v->n_slots - 1))
            if (v->slot[i].tag == tag) v->twins = true; /* or nearly: it only costs time */
        v->slot[i] = (qn_text_slot){ tag, id + 1 };
    }
    return QN_OK;
}

static void index_bytes(qn_vocab *v)
{
    for (int b = 0; b < 256; b++) {
        v->byte_id[b] = -1;
        v->byte_text[b] = (char)(unsigned char)b;
    }
    if (v->kind->byte_level) {
        for (int b = 0; b < 256; b++) {
            char s[4];
            const int32_t id = qn_vocab_find(v, s, qn_utf8_put(qn_byte_to_alpha((unsigned char)b), s));
            if (id >= 0 && v->type[id] == QN_T_NORMAL) v->byte_id[b] = id;
        }
        return;
    }
    for (int32_t id = v->n - 1; id >= 0; id--) {
        const int32_t b = qn_byte_token_value(v->text[id]);
        if (b >= 0 && (v->type[id] == QN_T_BYTE || (v->byte_id[b] < 0 && v->type[id] != QN_T_CONTROL))) v->byte_id[b] = id;
    }
}

static qn_status open_parts(qn_vocab *v, const qn_file *file, qn_err *err)
{
    QN_TRY(read_kind(v, file, err));
    QN_TRY(read_texts(v, file, err));
    QN_TRY(read_types(v, file, err));
    QN_TRY(read_scores(v, file, err));
    QN_TRY(qn_vocab_index(v, err));
    index_bytes(v);
    QN_TRY(qn_vocab_specials(v, file, err));
    QN_TRY(v->kind->open(v, file, err));
    return qn_vocab_show(v, err);
}

qn_status qn_vocab_open(qn_vocab **out, const qn_file *file, qn_err *err)
{
    *out = NULL;
    qn_vocab *v = qn_new(1, sizeof *v);
    if (!v) return qn_fail(err, QN_ERR_NOMEM, "no memory for a vocabulary");
    const qn_status s = open_parts(v, file, err);
    if (s != QN_OK) qn_vocab_close(&v);
    *out = v;
    return s;
}

void qn_vocab_close(qn_vocab **vocab)
{
    qn_vocab *v = *vocab;
    if (!v) return;
    free(v->text);
    free(v->shown);
    free(v->shown_bytes);
    free(v->score);
    free(v->type);
    free(v->flags);
    free(v->slot);
    free(v->pair);
    qn_trie_free(&v->special);
    qn_trie_free(&v->pieces);
    qn_trie_free(&v->user);
    free(v);
    *vocab = NULL;
}

int32_t qn_vocab_size(const qn_vocab *v)
{
    return v->n;
}
