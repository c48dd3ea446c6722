/* The hold-back buffer: fed in pieces, it lets out what it lets out when fed at once, in whole characters. The input is two stop strings
 * (a length byte and as many bytes, each), a byte that says how to cut, and the text. */
#include "src/run/textout.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    const uint8_t *p;
    size_t n;
} input;

/* A stop string of at most 15 bytes without NUL. */
static void take_stop(input *in, char *out)
{
    size_t n = in->n ? in->p[0] % 16u : 0, k = 0;
    if (in->n) {
        in->p++;
        in->n--;
    }
    if (n > in->n) n = in->n;
    for (size_t i = 0; i < n; i++)
        if (in->p[i]) out[k++] = (char)in->p[i];
    out[k] = 0;
    in->p += n;
    in->n -= n;
}

static void check(bool good)
{
    if (!good) abort();
}

static bool is_utf8(const uint8_t *p, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        len = p[i] < 0x80 ? 1 : p[i] >= 0xf0 ? 4 : p[i] >= 0xe0 ? 3 : p[i] >= 0xc2 ? 2 : 0;
        if (!len || i + len > n) return false;
        for (size_t k = 1; k < len; k++)
            if ((p[i + k] & 0xc0) != 0x80) return false;
    }
    return true;
}

static int32_t feed(const input *in, const char *const *stops, int32_t n_stops, uint8_t cut, qn_buf *out)
{
    qn_textout t;
    qn_str text;
    check(qn_textout_open(&t, stops, n_stops, NULL) == QN_OK);
    for (size_t at = 0, n; at < in->n; at += n) {
        n = cut ? 1 + (at * cut >> 3) % 7 : in->n;
        if (n > in->n - at) n = in->n - at;
        check(qn_textout_put(&t, (const char *)in->p + at, n, &text, NULL) == QN_OK);
        check(is_utf8((const uint8_t *)text.ptr, text.len));
        qn_buf_add(out, text.ptr, text.len);
    }
    check(qn_textout_end(&t, &text, NULL) == QN_OK);
    check(is_utf8((const uint8_t *)text.ptr, text.len));
    qn_buf_add(out, text.ptr, text.len);
    const int32_t i_stop = t.i_stop;
    qn_textout_close(&t);
    return i_stop;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char stop[2][16];
    const char *stops[2];
    int32_t n_stops = 0;
    input in = { data, size };
    for (int i = 0; i < 2; i++) {
        take_stop(&in, stop[i]);
        if (*stop[i]) stops[n_stops++] = stop[i];
    }
    const uint8_t cut = in.n ? in.p[0] : 0;
    if (in.n) {
        in.p++;
        in.n--;
    }
    qn_buf whole = { 0 }, pieces = { 0 };
    const int32_t a = feed(&in, stops, n_stops, 0, &whole), b = feed(&in, stops, n_stops, cut | 1, &pieces);
    check(a == b && whole.len == pieces.len && (!whole.len || !memcmp(whole.ptr, pieces.ptr, whole.len)));
    qn_buf_free(&whole);
    qn_buf_free(&pieces);
    return 0;
}
