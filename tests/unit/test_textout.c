/* The hold-back buffer: whatever way the bytes are cut, the text, the stop string and the moment it is known are the same. */
#include "src/run/textout.h"
#include "tests/common/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct textout_case {
    const char *in;
    size_t n;            /* bytes of it */
    const char *stops[4];
    const char *out;
    int i_stop;
} textout_case;

#define IN(s) s, sizeof(s) - 1
#define BAD "\xef\xbf\xbd"
static const textout_case cases[] = {
    { IN(""), { 0 }, "", -1 },
    { IN("hello"), { 0 }, "hello", -1 },
    { IN("hello world"), { "o w" }, "hell", 0 },
    { IN("hello world"), { "xx", "o w" }, "hell", 1 },
    { IN("User: How"), { "User: " }, "", 0 },
    { IN("say User:How"), { "User: " }, "say User:How", -1 },
    { IN("abcX"), { "bc", "abcd" }, "a", 0 },        /* the earlier one does not come to its end */
    { IN("abcd"), { "bc", "abcd" }, "", 1 },         /* it does */
    { IN("abc"), { "bc", "abcd" }, "a", 0 },         /* it is cut off by the end */
    { IN("zabcabcabd!"), { "abcabd" }, "zabc", 0 },  /* a beginning inside a beginning */
    { IN("aaaaab"), { "aab" }, "aaa", 0 },
    { IN("aaaaa"), { "aab" }, "aaaaa", -1 },
    { IN("aXbYc"), { "Y", "X" }, "a", 1 },
    { IN("one\n\n\ntwo"), { "\n\n" }, "one", 0 },
    { IN("abcde"), { "cd", "bcde", "abcdX" }, "a", 1 },
    { IN("abcdX"), { "cd", "bcde", "abcdX" }, "", 2 },
    { IN("abcdY"), { "cd", "bcde", "abcdX" }, "ab", 0 },
    { IN("same"), { "am", "ame" }, "s", 0 },         /* equal starts: the one known first */
    { IN("gr\xc3\xbc\xc3\x9f \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80!"), { 0 },
      "gr\xc3\xbc\xc3\x9f \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80!", -1 },
    { IN("x\xf0\x9f\x98\x80y"), { "\xf0\x9f\x98\x80" }, "x", 0 },
    { IN("x\xf0\x9f\x98"), { "\xf0\x9f\x98\x80" }, "x" BAD, -1 },
    { IN("\xf0\x9f\x98"), { 0 }, BAD, -1 },
    { IN("a\xe6\xad"), { 0 }, "a" BAD, -1 },
    { IN("\x80\xbf"), { 0 }, BAD BAD, -1 },
    { IN("\xc0\xaf"), { 0 }, BAD BAD, -1 },          /* overlong */
    { IN("\xed\xa0\x80"), { 0 }, BAD BAD BAD, -1 },  /* surrogate */
    { IN("\xf4\x90\x80\x80"), { 0 }, BAD BAD BAD BAD, -1 },
    { IN("\xe0\x80z"), { 0 }, BAD BAD "z", -1 },
    { IN("\xf1\x80\x80z"), { 0 }, BAD "z", -1 },
    { IN("\xe2\x82X\xe2\x82\xac"), { 0 }, BAD "X\xe2\x82\xac", -1 },
    { IN("\xe2\x82STOP"), { "STOP" }, BAD, 0 },
    { IN("a\0b"), { 0 }, "a", -1 },                  /* a NUL is a character; compared below by length as well */
};

static int32_t count_stops(const textout_case *c)
{
    int32_t n = 0;
    while (n < 4 && c->stops[n]) n++;
    return n;
}

/* Feed in[0..n) cut as the bits of `cuts` say; returns how many bytes went in before it stopped. */
static size_t feed(const textout_case *c, const bool *cut_after, char *out, size_t *n_out, int *i_stop)
{
    qn_textout t;
    qn_str text;
    size_t used = c->n;
    *n_out = 0;
    assert_int_equal(qn_textout_open(&t, c->stops, count_stops(c), NULL), QN_OK);
    for (size_t at = 0; at < c->n;) {
        size_t len = 1;
        while (at + len < c->n && !cut_after[at + len - 1]) len++;
        assert_int_equal(qn_textout_put(&t, c->in + at, len, &text, NULL), QN_OK);
        memcpy(out + *n_out, text.ptr, text.len);
        *n_out += text.len;
        at += len;
        if (t.stopped) {
            used = at;
            break;
        }
    }
    assert_int_equal(qn_textout_end(&t, &text, NULL), QN_OK);
    memcpy(out + *n_out, text.ptr, text.len);
    *n_out += text.len;
    *i_stop = t.i_stop;
    qn_textout_close(&t);
    return used;
}

static void test_every_cut(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const textout_case *c = &cases[k];
        bool cut[64];
        const size_t want = strlen(c->out) + (k + 1 == sizeof cases / sizeof *cases ? 2 : 0);
        for (uint32_t bits = 0; bits < 1u << (c->n < 12 ? c->n : 12); bits++) { /* every way to cut; longer ones repeat the pattern */
            for (size_t i = 0; i < c->n; i++) cut[i] = bits >> i % 12 & 1;
            char out[256];
            size_t n;
            int i_stop;
            feed(c, cut, out, &n, &i_stop);
            out[n] = 0;
            if (n != want || memcmp(out, c->out, strlen(c->out)) || i_stop != c->i_stop)
                fail_msg("case %zu cut %x: '%s' stop %d", k, bits, out, i_stop);
        }
    }
}

/* What is let out at each byte is as much as can be: nothing that could not still be part of a stop string is held. */
static void test_holds_no_more_than_needed(void **state)
{
    (void)state;
    static const char *const stops[] = { "abab!" };
    static const char in[] = "xabababX";
    static const size_t want[] = { 1, 1, 1, 1, 1, 3, 3, 8 };
    qn_textout t;
    qn_str text;
    size_t n = 0;
    assert_int_equal(qn_textout_open(&t, stops, 1, NULL), QN_OK);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(qn_textout_put(&t, in + i, 1, &text, NULL), QN_OK);
        n += text.len;
        assert_int_equal(n, want[i]);
    }
    qn_textout_close(&t);
}

static void test_stops_at_once(void **state)
{
    (void)state;
    static const textout_case c = { IN("ab STOP and more"), { "STOP" }, "ab ", 0 };
    bool cut[64];
    memset(cut, 1, sizeof cut);
    char out[64];
    size_t n;
    int i_stop;
    assert_int_equal(feed(&c, cut, out, &n, &i_stop), 7);
}

/* Random text over two letters against a search of the whole: the earliest start, and of equal starts the one that ends first. */
static void test_against_search(void **state)
{
    (void)state;
    uint32_t seed = 12345;
#define RND(k) ((seed = seed * 1664525u + 1013904223u) >> 16) % (k)
    for (int round = 0; round < 20000; round++) {
        char in[33], stop[3][8];
        const size_t n = 1 + RND(32);
        for (size_t i = 0; i < n; i++) in[i] = (char)('a' + RND(2));
        in[n] = 0;
        textout_case c = { in, n, { stop[0], stop[1], stop[2] }, "", -1 };
        for (int s = 0; s < 3; s++) {
            const size_t len = 1 + RND(6);
            for (size_t i = 0; i < len; i++) stop[s][i] = (char)('a' + RND(2));
            stop[s][len] = 0;
        }
        size_t start = SIZE_MAX, end = SIZE_MAX;
        int want = -1;
        for (int s = 0; s < 3; s++) {
            const char *hit = strstr(in, stop[s]);
            const size_t at = hit ? (size_t)(hit - in) : SIZE_MAX, stop_end = at + strlen(stop[s]);
            if (hit && (at < start || (at == start && stop_end < end))) {
                start = at;
                end = stop_end;
                want = s;
            }
        }
        bool cut[64];
        for (size_t i = 0; i < 64; i++) cut[i] = RND(2);
        char out[64];
        size_t n_out;
        int i_stop;
        feed(&c, cut, out, &n_out, &i_stop);
        assert_int_equal(n_out, want < 0 ? n : start);
        assert_memory_equal(out, in, n_out);
        if (want < 0) assert_int_equal(i_stop, -1);
        else assert_string_equal(stop[i_stop], stop[want]);
    }
}

static void test_refuses_empty_stop(void **state)
{
    (void)state;
    static const char *const stops[] = { "x", "" };
    qn_textout t;
    qn_err err = { 0 };
    assert_int_equal(qn_textout_open(&t, stops, 2, &err), QN_ERR_ARG);
    assert_non_null(strstr(err.text, "stop"));
    qn_textout_close(&t);
}

static void test_allocation_faults(void **state)
{
    (void)state;
    static const char *const stops[] = { "stop", "halt" };
    long n = 1;
    for (bool failed = true; failed; n++) {
        qn_textout t;
        qn_str text;
        test_fail_alloc_at(n);
        qn_status status = qn_textout_open(&t, stops, 2, NULL);
        if (status == QN_OK) {
            for (int i = 0; status == QN_OK && i < 100; i++) status = qn_textout_put(&t, "some words sto", 14, &text, NULL);
            if (status == QN_OK) status = qn_textout_end(&t, &text, NULL);
            qn_textout_close(&t);
        }
        failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        assert_int_equal(status, failed ? QN_ERR_NOMEM : QN_OK);
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_holds_no_more_than_needed),
        cmocka_unit_test(test_stops_at_once),
        cmocka_unit_test(test_against_search),
        cmocka_unit_test(test_refuses_empty_stop),
        cmocka_unit_test(test_allocation_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
