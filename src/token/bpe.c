/* Byte-pair encoding: within each word of the pre-tokenizer, the pair of neighbours with the lowest rank merges first, the leftmost of
 * equals. A heap and a linked list make it O(n log n) in the length of a word. (Gage 1994; Sennrich et al. 2016; GPT-2's bytes.) */
#include "src/token/normal.h"
#include "src/token/vocab.h"

#include "src/format/keys.h"

#include <string.h>

static size_t pair_home(const qn_vocab *v, int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
    return (size_t)(h * 0xd6e8feb86659fd93u >> 20) & (v->n_pairs - 1);
}

static size_t pair_slot(const qn_vocab *v, int32_t left, int32_t right)
{
    size_t i = pair_home(v, left, right);
    while (v->pair[i].left1 && (v->pair[i].left1 != left + 1 || v->pair[i].right != right)) i = (i + 1) & (v->n_pairs - 1);
    return i;
}

static bool is_text_of(const qn_vocab *v, int32_t id, const qn_buf *s)
{
    return id < v->n && qn_type_is_text(v->type[id]) && v->text[id].len == s->len && memcmp(v->text[id].ptr, s->ptr, s->len) == 0;
}

/* A merge on its way into the table: "left right", cut at the first blank behind the first character. */
typedef struct merge_job {
    qn_str left, right;
    uint64_t left_hash, right_hash;
    int32_t left_id, right_id, id; /* id < 0: left out */
    uint32_t rank;
} merge_job;

/* Merges are worked on together in steps, each of which asks for the memory that the next one reads: one after another, 280,000 of them wait for
 * memory seven times each, a quarter of the time in which a 1B model loads. */
enum { N_JOBS = 32 };

/* @return false: no merge */
static bool job_open(const qn_vocab *v, qn_str m, uint32_t rank, merge_job *j)
{
    const char *blank = m.len > 1 ? memchr(m.ptr + 1, ' ', m.len - 1) : NULL;
    if (!blank) return false;
    const size_t n_left = (size_t)(blank - m.ptr);
    *j = (merge_job){ .left = { m.ptr, n_left }, .right = { blank + 1, m.len - n_left - 1 }, .id = -1, .rank = rank };
    j->left_hash = qn_vocab_hash(j->left.ptr, j->left.len);
    j->right_hash = qn_vocab_hash(j->right.ptr, j->right.len);
    __builtin_prefetch(&v->slot[j->left_hash & (v->n_slots - 1)]);
    __builtin_prefetch(&v->slot[j->right_hash & (v->n_slots - 1)]);
    return true;
}

static void ask_tokens(const qn_vocab *v, merge_job *j)
{
    j->left_id = qn_vocab_guess(v, j->left_hash);
    j->right_id = qn_vocab_guess(v, j->right_hash);
    if (j->left_id < 0 || j->right_id < 0) return;
    __builtin_prefetch(&v->text[j->left_id]);
    __builtin_prefetch(&v->text[j->right_id]);
    __builtin_prefetch(&v->type[j->left_id]);
    __builtin_prefetch(&v->type[j->right_id]);
}

static void ask_texts(const qn_vocab *v, const merge_job *j)
{
    if (j->left_id < 0 || j->right_id < 0) return;
    __builtin_prefetch(v->text[j->left_id].ptr);
    __builtin_prefetch(v->text[j->right_id].ptr);
}

/* A merge of or into something that is no token can never be part of a result, and is left out. @param near  the token made last: ids mostly follow
 * ranks, which saves a look-up */
static void look_up(const qn_vocab *v, merge_job *j, qn_buf *joined, int32_t *near)
{
    if (j->left_id < 0 || j->right_id < 0) return;
    joined->len = 0;
    qn_buf_add(joined, j->left.ptr, j->left.len);
    qn_buf_add(joined, j->right.ptr, j->right.len);
    if (joined->failed) return;
    j->left_id = qn_vocab_find_hashed(v, j->left.ptr, j->left.len, j->left_hash);
    j->right_id = qn_vocab_find_hashed(v, j->right.ptr, j->right.len, j->right_hash);
    if (j->left_id < 0 || j->right_id < 0) return;
    int32_t id = *near;
    if (v->twins || (!is_text_of(v, id, joined) && !is_text_of(v, ++id, joined))) id = qn_vocab_find(v, joined->ptr, joined->len);
    if (id < 0) return;
    *near = j->id = id;
    __builtin_prefetch(&v->pair[pair_home(v, j->left_id, j->right_id)]);
}

static void insert(qn_vocab *v, const merge_job *j)
{
    if (j->id < 0) return;
    qn_pair_slot *p = &v->pair[pair_slot(v, j->left_id, j->right_id)];
    if (!p->left1) *p = (qn_pair_slot){ j->left_id + 1, j->right_id, j->rank, j->id };
}

static void jobs_run(qn_vocab *v, merge_job *job, int32_t n, qn_buf *joined, int32_t *near)
{
    for (int32_t i = 0; i < n; i++) ask_tokens(v, &job[i]);
    for (int32_t i = 0; i < n; i++) ask_texts(v, &job[i]);
    for (int32_t i = 0; i < n; i++) look_up(v, &job[i], joined, near);
    for (int32_t i = 0; i < n; i++) insert(v, &job[i]);
}

static qn_status bpe_open(qn_vocab *v, const qn_file *file, qn_err *err)
{
    qn_value merges;
    QN_TRY(qn_key_array(file, "tokenizer.ggml.merges", "", QN_V_STRING, &merges, err));
    if (merges.count > INT32_MAX)
        return qn_fail(err, QN_ERR_FORMAT, "tokenizer.ggml.merges has %llu merges", (unsigned long long)merges.count);
    v->n_pairs = 16;
    while (v->n_pairs < merges.count * 2) v->n_pairs *= 2;
    v->pair = qn_new(v->n_pairs, sizeof *v->pair);
    if (!v->pair) return qn_fail(err, QN_ERR_NOMEM, "no memory for %llu merges", (unsigned long long)merges.count);
    qn_buf joined = { 0 };
    qn_value_iter it = qn_value_iterate(&merges);
    qn_value m;
    merge_job job[N_JOBS];
    int32_t near = 0, n = 0;
    for (uint32_t rank = 0; qn_value_next(&it, &m); rank++) {
        qn_str s;
        if (qn_value_as_str(&m, &s) == QN_OK && job_open(v, s, rank, &job[n])) n++;
        if (n < N_JOBS) continue;
        jobs_run(v, job, n, &joined, &near);
        n = 0;
    }
    jobs_run(v, job, n, &joined, &near);
    const bool failed = joined.failed;
    qn_buf_free(&joined);
    return failed ? qn_fail(err, QN_ERR_NOMEM, "no memory for the merges") : QN_OK;
}

static const qn_pair_slot *find_pair(const qn_vocab *v, int32_t left, int32_t right)
{
    if (left < 0 || right < 0) return NULL;
    const qn_pair_slot *p = &v->pair[pair_slot(v, left, right)];
    return p->left1 ? p : NULL;
}

static void try_pair(const qn_vocab *v, qn_work *w, uint32_t left)
{
    if (left == QN_NONE || w->sym[left].next == QN_NONE) return;
    const int32_t a = w->sym[left].id, b = w->sym[w->sym[left].next].id;
    const qn_pair_slot *p = find_pair(v, a, b);
    if (p) qn_work_push(w, (qn_merge){ left, p->rank, a, b, p->id });
}

static void merge_long(const qn_vocab *v, qn_work *w)
{
    w->n_heap = 0;
    for (uint32_t i = 0; i + 1 < w->n_sym; i++) try_pair(v, w, i);
    qn_merge m;
    while (qn_work_pop(w, &m)) {
        qn_symbol *l = &w->sym[m.left];
        if (l->len == 0 || l->id != m.left_id || l->next == QN_NONE || w->sym[l->next].id != m.right_id) continue;
        qn_work_join(w, m.left);
        l->id = m.id;
        try_pair(v, w, l->prev);
        try_pair(v, w, m.left);
    }
}

/* Words of at most so many symbols (nearly all) merge in place: looking through a few ranks beats a heap. */
enum { SHORT_WORD = 24 };

/* @param id  [n] tokens of the symbols, all of them known; becomes those of the result. @return their number */
static size_t merge_short(const qn_vocab *v, int32_t *id, size_t n)
{
    const qn_pair_slot *pair[SHORT_WORD];
    for (size_t i = 0; i < n; i++) pair[i] = i + 1 < n ? find_pair(v, id[i], id[i + 1]) : NULL;
    for (;;) {
        size_t best = n;
        for (size_t i = 0; i + 1 < n; i++)
            if (pair[i] && (best == n || pair[i]->rank < pair[best]->rank)) best = i;
        if (best == n) return n;
        id[best] = pair[best]->id;
        n--;
        for (size_t i = best + 1; i < n; i++) {
            id[i] = id[i + 1];
            pair[i] = pair[i + 1];
        }
        if (best > 0) pair[best - 1] = find_pair(v, id[best - 1], id[best]);
        pair[best] = best + 1 < n ? find_pair(v, id[best], id[best + 1]) : NULL;
    }
}

/* The symbols of a word: its bytes, or its characters where the vocabulary has them. */
static void cut_word(const qn_vocab *v, qn_work *w, const char *text, size_t len)
{
    w->n_sym = 0;
    for (size_t i = 0; i < len && !w->failed;) {
        size_t n = 1;
        int32_t id = v->byte_id[(unsigned char)text[i]];
        if (v->raw) {
            uint32_t cp;
            n = qn_utf8_get(text + i, len - i, &cp);
            id = qn_vocab_find(v, text + i, n);
            if (id < 0) {
                n = 1;
                id = v->byte_id[(unsigned char)text[i]];
            }
        }
        qn_work_symbol(w, (uint32_t)i, (uint32_t)n, id, i == 0);
        i += n;
    }
}

/* The token that is the word as a whole, or -1. */
static int32_t whole_word(const qn_vocab *v, const char *text, size_t len)
{
    if (v->raw) return qn_vocab_find(v, text, len);
    char alpha[512];
    size_t n = 0;
    if (len > sizeof alpha / 2) return -1;
    for (size_t i = 0; i < len; i++) n += qn_utf8_put(qn_byte_to_alpha((unsigned char)text[i]), alpha + n);
    const int32_t id = qn_vocab_find(v, alpha, n);
    return id >= 0 && v->type[id] == QN_T_NORMAL ? id : -1;
}

static bool encode_short(const qn_vocab *v, const char *text, size_t len, qn_ids *out)
{
    int32_t id[SHORT_WORD];
    if (v->raw || len > SHORT_WORD) return false;
    for (size_t i = 0; i < len; i++)
        if ((id[i] = v->byte_id[(unsigned char)text[i]]) < 0) return false;
    const size_t n = merge_short(v, id, len);
    for (size_t i = 0; i < n; i++) qn_ids_add(out, id[i]);
    return true;
}

static qn_status encode_word(const qn_vocab *v, qn_work *w, const char *text, size_t len, qn_ids *out)
{
    const bool whole = (v->pre->flags & QN_PRE_WHOLE) || (v->raw && *text == '\n');
    const int32_t id = whole ? whole_word(v, text, len) : -1;
    if (id >= 0) {
        qn_ids_add(out, id);
        return QN_OK;
    }
    if (encode_short(v, text, len, out)) return QN_OK;
    cut_word(v, w, text, len);
    if (!w->failed) merge_long(v, w);
    if (w->failed) return QN_ERR_NOMEM;
    for (uint32_t i = 0; i != QN_NONE; i = w->sym[i].next) {
        const qn_symbol *s = &w->sym[i];
        if (s->id >= 0) qn_ids_add(out, s->id);
        else qn_vocab_byte(v, (unsigned char)text[s->begin], out);
    }
    return QN_OK;
}

/* Blanks to U+2581. */
static bool escape(qn_work *w, qn_str text)
{
    w->text.len = 0;
    for (size_t i = 0, e; i < text.len; i = e) {
        const bool blank = text.ptr[i] == ' ';
        for (e = i + 1; !blank && e < text.len && text.ptr[e] != ' ';) e++;
        qn_buf_add(&w->text, blank ? QN_BLANK : text.ptr + i, blank ? 3 : e - i);
    }
    if (w->text.failed) w->failed = true;
    return !w->failed;
}

static qn_status bpe_encode(const qn_vocab *v, qn_work *w, qn_str text, bool first, qn_ids *out, qn_err *err)
{
    (void)first;
    (void)err;
    if (v->nfc && !qn_nfc_is_plain(text)) {
        if (!qn_nfc(w, text)) return QN_ERR_NOMEM;
        text = (qn_str){ w->text.ptr, w->text.len };
    } else if (v->raw) {
        if (!escape(w, text)) return QN_ERR_NOMEM;
        text = (qn_str){ w->text.ptr, w->text.len };
    }
    w->n_cp = 0;
    if (!qn_work_decode(w, text)) return QN_ERR_NOMEM;
    const qn_scan scan = { w->cp, w->cls, w->n_cp };
    qn_pre_walk walk;
    qn_span word;
    const char *at = text.ptr;
    for (qn_pre_begin(&walk, v->pre, &scan); qn_pre_next(&walk, &word);) {
        size_t len = 0;
        for (size_t i = word.begin; i < word.end; i++) len += qn_utf8_len(w->cp[i]);
        QN_TRY(encode_word(v, w, at, len, out));
        at += len;
    }
    return QN_OK;
}

/* The whitespace tokenizer: words between white space, which is dropped, and merges on characters. */
static qn_status whitespace_encode(const qn_vocab *v, qn_work *w, qn_str text, bool first, qn_ids *out, qn_err *err)
{
    (void)first;
    (void)err;
    w->n_cp = 0;
    if (!qn_work_decode(w, text)) return QN_ERR_NOMEM;
    const qn_scan scan = { w->cp, w->cls, w->n_cp };
    qn_pre_walk walk;
    qn_span word;
    const char *at = text.ptr;
    for (qn_pre_begin(&walk, v->pre, &scan); qn_pre_next(&walk, &word);) {
        size_t len = 0;
        for (size_t i = word.begin; i < word.end; i++) len += qn_utf8_len(w->cp[i]);
        if (!(w->cls[word.begin] & QN_C_SPACE)) QN_TRY(encode_word(v, w, at, len, out));
        at += len;
    }
    return QN_OK;
}

#define NO_ROLES { -1, -1, -1, -1, -1, -1, -1, -1, -1 }
const qn_tok_kind qn_kind_bpe = { .model = "gpt2", .role = NO_ROLES, .byte_level = true, .open = bpe_open, .encode = bpe_encode };
const qn_tok_kind qn_kind_bpe_raw = { .model = "gemma4", .role = NO_ROLES, .open = bpe_open, .encode = bpe_encode };
const qn_tok_kind qn_kind_whitespace = { .model = "whitespace", .role = NO_ROLES, .open = bpe_open, .encode = whitespace_encode };
