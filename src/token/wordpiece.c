/* WordPiece as BERT has it: text is cleaned, cut into words at blanks and around punctuation and ideographs, and each word is taken
 * apart by the longest piece from the left; a word that cannot be is unknown as a whole. (Devlin et al. 2018; the order of the steps is
 * that of Hugging Face's BertNormalizer and BertPreTokenizer.) */
#include "src/token/normal.h"
#include "src/token/vocab.h"

#include "src/format/keys.h"

#include <utf8proc.h>

/* Longer words are unknown: max_input_chars_per_word of the originals. */
enum { WORD_MAX_CHARS = 100 };

/* What BERT calls Chinese characters. The fifth range begins at 2B920, as in the reference (2B820 was meant). */
static const qn_cp_range ideographs[] = {
    { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xf900, 0xfaff },   { 0x20000, 0x2a6df },
    { 0x2a700, 0x2b73f }, { 0x2b740, 0x2b81f }, { 0x2b920, 0x2ceaf }, { 0x2f800, 0x2fa1f },
};

static qn_status optional_bool(const qn_file *file, const char *key, bool *value, qn_err *err)
{
    const qn_status s = qn_key_bool(file, key, "", value, err);
    return s == QN_ERR_NOT_FOUND ? QN_OK : s;
}

static qn_status wordpiece_open(qn_vocab *v, const qn_file *file, qn_err *err)
{
    v->lowercase = true;
    QN_TRY(optional_bool(file, "tokenizer.ggml.normalizer.lowercase", &v->lowercase, err));
    v->strip_accents = v->lowercase;
    QN_TRY(optional_bool(file, "tokenizer.ggml.normalizer.strip_accents", &v->strip_accents, err));
    for (int32_t id = 0; id < v->n; id++) {
        if (!qn_type_is_text(v->type[id]) || v->text[id].len == 0 || v->text[id].len > QN_PIECE_MAX) continue;
        if (!qn_trie_add(&v->pieces, v->text[id], id)) return qn_fail(err, QN_ERR_NOMEM, "no memory for the pieces");
    }
    if (v->role[QN_ROLE_UNK] < 0) return qn_fail(err, QN_ERR_FORMAT, "a WordPiece vocabulary without an unknown token");
    return QN_OK;
}

/* Control, format and private characters, but not tab and newlines. */
static bool is_removed(uint32_t cp)
{
    if (cp == 0 || cp == 0xfffd || cp >= QN_CP_BYTE) return true;
    if (cp == '\t' || cp == '\n' || cp == '\r') return false;
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CS || c == UTF8PROC_CATEGORY_CO;
}

/* Cleaned and decomposed text in w->cp; blanks for all white space and around ideographs. */
static bool normalize(const qn_vocab *v, qn_work *w, qn_str text)
{
    w->n_cp = 0;
    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        i += qn_utf8_get(text.ptr + i, text.len - i, &cp);
        if (is_removed(cp)) continue;
        if (qn_uni_class(cp) & QN_C_SPACE) cp = ' ';
        const bool alone = cp >= 0x3400 && qn_cp_in(cp, ideographs, sizeof ideographs / sizeof *ideographs);
        if (alone && !qn_nfd_add(w, ' ')) return false;
        if (!(v->strip_accents ? qn_nfd_add(w, cp) : qn_work_cp(w, cp))) return false;
        if (alone && !qn_nfd_add(w, ' ')) return false;
    }
    return !v->strip_accents || qn_nfd_order(w, 0);
}

/* The piece that is the longest prefix of text, from a node of the trie. */
static int32_t longest(const qn_vocab *v, uint32_t node, const char *text, size_t len, size_t *n)
{
    int32_t best = -1;
    for (size_t i = 0; i < len; i++) {
        node = qn_trie_step(&v->pieces, node, (unsigned char)text[i]);
        if (!node) break;
        if (v->pieces.value[node] < 0) continue;
        best = v->pieces.value[node];
        *n = i + 1;
    }
    return best;
}

/* The word in w->text, of n_chars characters; then empties it. */
static void encode_word(const qn_vocab *v, qn_work *w, size_t *n_chars, qn_ids *out)
{
    const size_t n_before = out->n;
    uint32_t node = 0; /* the first piece begins with U+2581 */
    for (int i = 0; i < 3; i++) node = i && !node ? 0 : qn_trie_step(&v->pieces, node, (unsigned char)QN_BLANK[i]);
    bool known = *n_chars <= WORD_MAX_CHARS && node;
    for (size_t i = 0, n = 0; known && i < w->text.len; i += n, node = 0) {
        const int32_t id = longest(v, node, w->text.ptr + i, w->text.len - i, &n);
        known = id >= 0;
        if (known) qn_ids_add(out, id);
    }
    if (!known) {
        out->n = n_before;
        qn_ids_add(out, v->role[QN_ROLE_UNK]);
    }
    w->text.len = 0;
    *n_chars = 0;
}

static void add_char(qn_work *w, uint32_t cp, size_t *n_chars)
{
    char s[4];
    qn_buf_add(&w->text, s, qn_utf8_put(cp, s));
    (*n_chars)++;
}

static qn_status wordpiece_encode(const qn_vocab *v, qn_work *w, qn_str text, bool first, qn_ids *out, qn_err *err)
{
    (void)first;
    (void)err;
    if (!normalize(v, w, text)) return QN_ERR_NOMEM;
    size_t n_chars = 0;
    w->text.len = 0;
    for (size_t i = 0; i < w->n_cp; i++) {
        uint32_t cp = w->cp[i];
        if (v->strip_accents && utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_MN) continue;
        const bool dotted = v->lowercase && cp == 0x130; /* the one character whose small form is two: i and a dot above */
        if (v->lowercase) cp = dotted ? 'i' : (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
        const uint16_t c = qn_uni_class(cp);
        const bool alone = (c & QN_C_PUNCT) || (cp < 128 && (c & QN_C_SYMBOL));
        if (n_chars && (alone || cp == ' ')) encode_word(v, w, &n_chars, out);
        if (cp == ' ') continue;
        add_char(w, cp, &n_chars);
        if (dotted) add_char(w, 0x307, &n_chars);
        if (alone) encode_word(v, w, &n_chars, out);
        if (w->text.failed) w->failed = true;
        if (w->failed) return QN_ERR_NOMEM;
    }
    if (n_chars) encode_word(v, w, &n_chars, out);
    return QN_OK;
}

const qn_tok_kind qn_kind_wordpiece = {
    .model = "bert",
    .role = { [QN_ROLE_BOS] = 101, -1, -1, -1, [QN_ROLE_UNK] = 100, [QN_ROLE_SEP] = 102, [QN_ROLE_PAD] = 0, [QN_ROLE_CLS] = 101,
              [QN_ROLE_MASK] = 103 },
    .add_bos = true,
    .always_sep = true,
    .open = wordpiece_open,
    .encode = wordpiece_encode,
};
