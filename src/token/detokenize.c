/* From ids to text. */
#include "src/token/vocab.h"

#include <string.h>

/* GPT-2's alphabet to bytes; false where a character is not of it, as in added tokens. @param out [s.len] */
static bool from_alphabet(qn_str s, char *out, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < s.len;) {
        uint32_t cp;
        i += qn_utf8_get(s.ptr + i, s.len - i, &cp);
        const int32_t b = qn_alpha_to_byte(cp);
        if (b < 0) return false;
        out[(*n)++] = (char)(unsigned char)b;
    }
    return true;
}

/* U+2581 to blanks. @param out [s.len] */
static size_t unescape(qn_str s, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len;) {
        const bool blank = s.len - i >= 3 && memcmp(s.ptr + i, QN_BLANK, 3) == 0;
        out[n++] = blank ? ' ' : s.ptr[i];
        i += blank ? 3 : 1;
    }
    return n;
}

static bool is_ascii(qn_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] >= 0x80) return false;
    return true;
}

/* Only texts with bytes above ASCII can differ from what is shown: GPT-2's alphabet keeps printable ASCII, and U+2581 is not in it. */
qn_status qn_vocab_show(qn_vocab *v, qn_err *err)
{
    size_t n_bytes = 0;
    for (int32_t id = 0; id < v->n; id++) n_bytes += is_ascii(v->text[id]) ? 0 : v->text[id].len;
    v->shown = qn_new((size_t)v->n, sizeof *v->shown);
    v->shown_bytes = qn_new(n_bytes, 1);
    if (!v->shown || !v->shown_bytes) return qn_fail(err, QN_ERR_NOMEM, "no memory for the texts of %d tokens", v->n);
    char *at = v->shown_bytes;
    for (int32_t id = 0; id < v->n; id++) {
        const qn_str t = v->text[id];
        const int32_t byte = v->kind->byte_level ? -1 : qn_byte_token_value(t);
        size_t n = 0;
        v->shown[id] = t;
        if (byte >= 0 && (v->type[id] == QN_T_BYTE || v->byte_id[byte] == id)) {
            v->shown[id] = (qn_str){ &v->byte_text[byte], 1 };
        } else if ((v->type[id] == QN_T_NORMAL || v->type[id] == QN_T_UNUSED) && !is_ascii(t)) {
            if (!v->kind->byte_level) n = unescape(t, at);
            else if (!from_alphabet(t, at, &n)) continue;
            v->shown[id] = (qn_str){ at, n };
            at += n;
        }
    }
    return QN_OK;
}

qn_status qn_vocab_token_text(const qn_vocab *v, int32_t id, bool special, qn_str *out)
{
    *out = (qn_str){ "", 0 };
    if (id < 0 || id >= v->n) return QN_ERR_ARG;
    if (special || !qn_vocab_is_control(v, id)) *out = v->shown[id];
    return QN_OK;
}

qn_status qn_vocab_detokenize(const qn_vocab *v, const int32_t *ids, size_t n_ids, bool special, char *out, size_t cap, size_t *n,
                              qn_err *err)
{
    *n = 0;
    bool first = true; /* at the start, or behind a special token: the blank in front was put there */
    for (size_t i = 0; i < n_ids; i++) {
        qn_str s;
        if (qn_vocab_token_text(v, ids[i], special, &s) != QN_OK)
            return qn_fail(err, QN_ERR_ARG, "token %d is outside the vocabulary of %d", ids[i], v->n);
        const bool cut = qn_vocab_is_control(v, ids[i]) || v->type[ids[i]] == QN_T_USER;
        if (first && !cut && v->add_space && !v->kind->byte_level && s.len && s.ptr[0] == ' ') {
            s.ptr++;
            s.len--;
        }
        first = cut;
        const size_t room = *n < cap ? cap - *n : 0;
        if (s.len && room) memcpy(out + *n, s.ptr, s.len < room ? s.len : room);
        *n += s.len;
    }
    if (*n > cap) return qn_fail(err, QN_ERR_LIMIT, "%zu bytes of text, room for %zu", *n, cap);
    return QN_OK;
}
