#include "src/run/textout.h"

#include <string.h>

qn_status qn_textout_open(qn_textout *t, const char *const *stops, int32_t n_stops, qn_err *err)
{
    *t = (qn_textout){ .stop_at = UINT64_MAX, .i_stop = -1 };
    return qn_matcher_open(&t->stops, stops, n_stops, "stop strings", err);
}

void qn_textout_close(qn_textout *t)
{
    qn_matcher_close(&t->stops);
    qn_buf_free(&t->held);
    qn_buf_free(&t->text);
}

/* Length of the character at p, of which n >= 1 bytes are there. Below zero: so many bytes are no character. Zero: it is not complete.
 * The bounds of the second byte keep out overlong forms, surrogates and what is above U+10FFFF (Unicode, table 3-7). */
static int char_at(const uint8_t *p, size_t n)
{
    const uint8_t b = p[0];
    if (b < 0x80) return 1;
    if (b < 0xc2 || b > 0xf4) return -1;
    const int len = b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
    uint8_t lo = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80, hi = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
    for (int i = 1; i < len; i++) {
        if ((size_t)i == n) return 0;
        if (p[i] < lo || p[i] > hi) return -i;
        lo = 0x80;
        hi = 0xbf;
    }
    return len;
}

/* Move the first n held bytes to the text; at the end an unfinished character moves as well. */
static qn_status let_out(qn_textout *t, size_t n, bool at_end, qn_str *text, qn_err *err)
{
    const uint8_t *p = (const uint8_t *)t->held.ptr;
    size_t i = 0;
    t->text.len = 0;
    while (i < n && !t->held.failed) { /* bytes that could not be held are not there */
        const int len = char_at(p + i, n - i);
        if (len == 0 && !at_end) break;
        if (len > 0) qn_buf_add(&t->text, p + i, (size_t)len);
        else qn_buf_add(&t->text, "\xef\xbf\xbd", 3);
        i += len > 0 ? (size_t)len : len < 0 ? (size_t)-len : n - i;
    }
    if (t->text.failed || t->held.failed) return qn_fail(err, QN_ERR_NOMEM, "no memory for the text of the answer");
    if (i) memmove(t->held.ptr, t->held.ptr + i, t->held.len - i);
    t->held.len -= i;
    *text = (qn_str){ t->text.ptr ? t->text.ptr : "", t->text.len };
    return QN_OK;
}

/* Look for stop strings in one more byte. */
static void look(qn_textout *t, uint8_t byte)
{
    const int32_t hit = qn_matcher_feed(&t->stops, byte);
    t->n_taken++;
    if (hit >= 0 && t->n_taken - t->stops.string[hit].len < t->stop_at) {
        t->stop_at = t->n_taken - t->stops.string[hit].len;
        t->i_stop = hit;
    }
    if (t->i_stop >= 0 && t->n_taken - qn_matcher_open_prefix(&t->stops) >= t->stop_at) t->stopped = true;
}

qn_status qn_textout_put(qn_textout *t, const char *bytes, size_t n, qn_str *text, qn_err *err)
{
    *text = (qn_str){ "", 0 };
    if (t->stopped) return QN_OK;
    const uint64_t begin = t->n_taken - t->held.len; /* of the held bytes */
    for (size_t i = 0; i < n && !t->stopped; i++) look(t, (uint8_t)bytes[i]);
    qn_buf_add(&t->held, bytes, n);
    if (t->stopped) return let_out(t, (size_t)(t->stop_at - begin), true, text, err);
    const uint64_t open = t->n_taken - qn_matcher_open_prefix(&t->stops);
    return let_out(t, (size_t)((open < t->stop_at ? open : t->stop_at) - begin), false, text, err);
}

qn_status qn_textout_end(qn_textout *t, qn_str *text, qn_err *err)
{
    *text = (qn_str){ "", 0 };
    if (t->stopped) return QN_OK;
    const uint64_t begin = t->n_taken - t->held.len;
    t->stopped = true;
    return let_out(t, t->i_stop >= 0 ? (size_t)(t->stop_at - begin) : t->held.len, true, text, err);
}
