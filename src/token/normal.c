#include "src/token/normal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static uint32_t combining_class(uint32_t cp)
{
    return cp < 0x300 || cp >= QN_CP_BYTE ? 0 : (uint32_t)utf8proc_get_property((utf8proc_int32_t)cp)->combining_class;
}

/* Sort one run of marks by class, stable. utf8proc sorts by neighbours, which takes a second on 10,000 marks of two classes in turn;
 * this counts (classes are below 256). `from` [n] is the run, `to` [n] the room for it. */
static void order_marks(const uint32_t *from, uint32_t *to, size_t n)
{
    size_t at[257] = { 0 };
    for (size_t i = 0; i < n; i++) at[combining_class(from[i]) + 1]++;
    for (size_t c = 1; c < 257; c++) at[c] += at[c - 1];
    for (size_t i = 0; i < n; i++) to[at[combining_class(from[i])]++] = from[i];
}

static bool needs_order(const uint32_t *cp, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (combining_class(cp[i]) < combining_class(cp[i - 1])) return true;
    return false;
}

static bool append(qn_work *w, uint32_t cp)
{
    if (!qn_grow((void **)&w->cp, &w->cp_cap, w->n_cp + 1, sizeof *w->cp)) {
        w->failed = true;
        return false;
    }
    w->cp[w->n_cp++] = cp;
    return true;
}

bool qn_nfd_order(qn_work *w, size_t from)
{
    for (size_t i = from, e; i < w->n_cp; i = e) {
        e = i + 1;
        if (!combining_class(w->cp[i])) continue;
        while (e < w->n_cp && combining_class(w->cp[e])) e++;
        if (!needs_order(w->cp + i, e - i)) continue;
        uint32_t *sorted = qn_new(e - i, sizeof *sorted);
        if (!sorted) {
            w->failed = true;
            return false;
        }
        order_marks(w->cp + i, sorted, e - i);
        memcpy(w->cp + i, sorted, (e - i) * sizeof *sorted);
        free(sorted);
    }
    return true;
}

bool qn_nfd_add(qn_work *w, uint32_t cp)
{
    if (cp < 0xc0 || cp >= QN_CP_BYTE) return append(w, cp);
    utf8proc_int32_t parts[32]; /* the longest canonical decomposition has 4 */
    int boundclass = 0;
    const utf8proc_ssize_t k = utf8proc_decompose_char((utf8proc_int32_t)cp, parts, 32, UTF8PROC_DECOMPOSE, &boundclass);
    if (k <= 0 || k > 32) return append(w, cp);
    for (utf8proc_ssize_t i = 0; i < k; i++)
        if (!append(w, (uint32_t)parts[i])) return false;
    return true;
}

bool qn_nfc_is_plain(qn_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] >= 0xcc) return false; /* the first byte of U+0300 */
    return true;
}

/* Compose w->cp[from, n_cp), which is decomposed and holds no byte code points. */
static void compose(qn_work *w, size_t from)
{
    const utf8proc_ssize_t n = utf8proc_normalize_utf32((utf8proc_int32_t *)w->cp + from, (utf8proc_ssize_t)(w->n_cp - from),
                                                        UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (n >= 0) w->n_cp = from + (size_t)n;
}

/* Order and compose what was appended since `from`. */
static bool finish_stretch(qn_work *w, size_t from)
{
    if (!qn_nfd_order(w, from)) return false;
    if (from < w->n_cp) compose(w, from);
    return true;
}

bool qn_nfc(qn_work *w, qn_str text)
{
    w->text.len = 0;
    w->n_cp = 0;
    size_t from = 0; /* start of the stretch that composes: bytes that are not UTF-8 divide */
    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        i += qn_utf8_get(text.ptr + i, text.len - i, &cp);
        if (cp >= QN_CP_BYTE) {
            if (!finish_stretch(w, from) || !append(w, cp)) return false;
            from = w->n_cp;
        } else if (!qn_nfd_add(w, cp)) return false;
    }
    if (!finish_stretch(w, from)) return false;
    for (size_t i = 0; i < w->n_cp; i++) {
        char out[4];
        qn_buf_add(&w->text, out, qn_utf8_put(w->cp[i], out));
    }
    w->n_cp = 0;
    if (w->text.failed) w->failed = true;
    return !w->failed;
}
