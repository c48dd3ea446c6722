/* SentencePiece's Unigram (T5, XLM-RoBERTa and its kin): of all ways to write the text as pieces the one whose scores add up to most,
 * by Viterbi's algorithm. (Kudo 2018.) */
#include "src/token/charsmap.h"
#include "src/token/vocab.h"

#include "src/format/keys.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* A character that no piece covers costs this much more than the worst piece. */
static const float unknown_penalty = 10;

static qn_status read_charsmap(qn_vocab *v, const qn_file *file, qn_err *err)
{
    qn_value map;
    if (!qn_file_key(file, "tokenizer.ggml.precompiled_charsmap", &map)) return QN_OK;
    if (map.type != QN_V_ARRAY || (map.elem != QN_V_U8 && map.elem != QN_V_I8))
        return qn_fail(err, QN_ERR_TYPE, "tokenizer.ggml.precompiled_charsmap is not an array of bytes");
    if (map.count == 0) return QN_OK;
    v->charsmap = map.data;
    v->charsmap_bytes = (size_t)map.count;
    return qn_charsmap_check(v->charsmap, v->charsmap_bytes, err);
}

static qn_status unigram_open(qn_vocab *v, const qn_file *file, qn_err *err)
{
    QN_TRY(read_charsmap(v, file, err));
    const qn_status s = qn_key_bool(file, "tokenizer.ggml.remove_extra_whitespaces", "", &v->merge_spaces, err);
    if (s != QN_OK && s != QN_ERR_NOT_FOUND) return s;
    float worst = FLT_MAX;
    for (int32_t id = 0; id < v->n; id++) {
        const qn_str t = v->text[id];
        if (v->type[id] == QN_T_NORMAL && v->score[id] < worst) worst = v->score[id];
        if (!qn_type_is_text(v->type[id]) || t.len == 0 || t.len > QN_PIECE_MAX) continue;
        const bool ok = qn_trie_add(&v->pieces, t, id) && (v->type[id] != QN_T_USER || qn_trie_add(&v->user, t, id));
        if (!ok) return qn_fail(err, QN_ERR_NOMEM, "no memory for the pieces");
    }
    v->unk_score = worst - unknown_penalty;
    if (v->role[QN_ROLE_UNK] < 0) return qn_fail(err, QN_ERR_FORMAT, "a Unigram vocabulary without an unknown token");
    return QN_OK;
}

/* The longest user-defined token at the start of text, in bytes; 0: none. */
static size_t user_prefix(const qn_vocab *v, qn_str text)
{
    size_t n = 0;
    uint32_t node = 0;
    for (size_t i = 0; i < text.len; i++) {
        node = qn_trie_step(&v->user, node, (unsigned char)text.ptr[i]);
        if (!node) break;
        if (v->user.value[node] >= 0) n = i + 1;
    }
    return n;
}

/* What the next bytes of text are normalised to. @return how many they are */
static size_t next_part(const qn_vocab *v, qn_str text, qn_str *to)
{
    size_t n = user_prefix(v, text);
    if (n) {
        *to = (qn_str){ text.ptr, n };
        return n;
    }
    if (v->charsmap && (n = qn_charsmap_longest(v->charsmap, v->charsmap_bytes, text, to)) > 0) return n;
    uint32_t cp;
    n = qn_utf8_get(text.ptr, text.len, &cp);
    *to = cp >= QN_CP_BYTE ? QN_LIT("\xef\xbf\xbd") : (qn_str){ text.ptr, n };
    return n;
}

/* Normalised text with U+2581 for blanks, in w->text. */
static bool normalize(const qn_vocab *v, qn_work *w, qn_str text)
{
    bool blank = v->add_space, started = false; /* a blank is due before the next character */
    w->text.len = 0;
    for (size_t i = 0; i < text.len;) {
        qn_str to;
        i += next_part(v, (qn_str){ text.ptr + i, text.len - i }, &to);
        for (size_t k = 0; k < to.len; k++) {
            if (to.ptr[k] == ' ') {
                if (!v->merge_spaces) qn_buf_add(&w->text, QN_BLANK, 3);
                else if (started) blank = true;
                continue;
            }
            if (blank) qn_buf_add(&w->text, QN_BLANK, 3);
            blank = false;
            started = true;
            qn_buf_add(&w->text, to.ptr + k, 1);
        }
    }
    while (v->merge_spaces && w->text.len >= 3 && memcmp(w->text.ptr + w->text.len - 3, QN_BLANK, 3) == 0)
        w->text.len -= 3; /* U+2581 that the text itself ends in counts as a blank */
    if (w->text.failed) w->failed = true;
    return !w->failed;
}

/* The best way to get to a byte of the text. */
typedef struct qn_best {
    double score;
    uint32_t from;
    int32_t id;
} qn_best;

static void improve(qn_best *b, double score, size_t from, int32_t id)
{
    if (score > b->score) *b = (qn_best){ score, (uint32_t)from, id };
}

static void forward(const qn_vocab *v, const char *text, size_t len, qn_best *best)
{
    const int32_t unk = v->role[QN_ROLE_UNK];
    for (size_t i = 0; i <= len; i++) best[i] = (qn_best){ i ? -DBL_MAX : 0, 0, unk };
    for (size_t i = 0, n_char; i < len; i += n_char) {
        uint32_t cp, node = 0;
        bool covered = false;
        n_char = qn_utf8_get(text + i, len - i, &cp);
        for (size_t k = i; k < len; k++) {
            node = qn_trie_step(&v->pieces, node, (unsigned char)text[k]);
            if (!node) break;
            const int32_t id = v->pieces.value[node];
            if (id < 0) continue;
            if (k + 1 - i == n_char) covered = true;
            improve(&best[k + 1], best[i].score + (v->type[id] == QN_T_USER ? 0.0 : (double)v->score[id]), i, id);
        }
        if (!covered) improve(&best[i + n_char], best[i].score + v->unk_score, i, unk);
    }
}

/* Walk back from the end, then turn the ids round; unknown tokens in a row are one. */
static bool backward(const qn_vocab *v, qn_work *w, const qn_best *best, size_t len, qn_ids *out)
{
    w->n_sym = 0;
    for (size_t i = len; i > 0; i = best[i].from)
        if (!qn_work_symbol(w, 0, 0, best[i].id, true)) return false;
    const int32_t unk = v->role[QN_ROLE_UNK];
    for (size_t k = w->n_sym; k > 0; k--)
        if (w->sym[k - 1].id != unk || k == w->n_sym || w->sym[k].id != unk) qn_ids_add(out, w->sym[k - 1].id);
    return true;
}

static qn_status unigram_encode(const qn_vocab *v, qn_work *w, qn_str text, bool first, qn_ids *out, qn_err *err)
{
    (void)first;
    (void)err;
    if (!normalize(v, w, text)) return QN_ERR_NOMEM;
    const size_t len = w->text.len;
    if (len == 0) return QN_OK;
    qn_best *best = qn_new(len + 1, sizeof *best);
    if (!best) w->failed = true;
    if (best) {
        forward(v, w->text.ptr, len, best);
        backward(v, w, best, len, out);
    }
    free(best);
    return w->failed ? QN_ERR_NOMEM : QN_OK;
}

const qn_tok_kind qn_kind_unigram = {
    .model = "t5",
    .role = { -1, [QN_ROLE_EOS] = 1, -1, -1, [QN_ROLE_UNK] = 2, -1, [QN_ROLE_PAD] = 0, -1, -1 },
    .add_eos = true,
    .add_space = true,
    .open = unigram_open,
    .encode = unigram_encode,
};
