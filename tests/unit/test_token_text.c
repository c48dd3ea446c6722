/* Text to tokens and back over the sample vocabularies: any bytes come back, users' words stay words, time is linear. */
#include "src/token/normal.h"
#include "src/token/vocab.h"
#include "tests/common/gguf_bytes.h"
#include "tests/common/vocab_make.h"

#include <pthread.h>
#include <time.h>

static const char *const samples[] = { "bpe", "spm", "wordpiece", "unigram" };

static size_t tokenize(const qn_vocab *v, const char *text, size_t len, int flags, const qn_range *plain, size_t n_plain, int32_t *ids,
                       size_t cap)
{
    size_t n;
    qn_err err;
    if (qn_vocab_tokenize(v, (qn_str){ text, len }, flags, plain, n_plain, ids, cap, &n, &err) != QN_OK) fail_msg("%s", err.text);
    return n;
}

/* @param text  comes back as its NFC where the vocabulary's original normalises */
static void check_round_trip(const qn_vocab *v, const char *text, size_t len)
{
    qn_work w = { 0 };
    if (v->nfc && !qn_nfc_is_plain((qn_str){ text, len })) assert_true(qn_nfc(&w, (qn_str){ text, len }));
    const char *want = w.text.ptr ? w.text.ptr : text;
    const size_t n_want = w.text.ptr ? w.text.len : len;
    int32_t ids[512];
    char back[2048];
    size_t n_back;
    const size_t n = tokenize(v, text, len, 0, NULL, 0, ids, 512);
    assert_int_equal(qn_vocab_detokenize(v, ids, n, true, back, sizeof back, &n_back, NULL), QN_OK);
    if (n_back != n_want || memcmp(back, want, n_want))
        fail_msg("%zu bytes 0x%02x.. came back as %zu bytes", len, (unsigned char)text[0], n_back);
    qn_work_free(&w);
}

/* Every byte, every pair of a start and another byte, cut characters, overlong forms, surrogates. */
static void test_any_bytes_come_back(void **state)
{
    (void)state;
    static const char *const pieces[] = { "\xe6\xad", "\xf0\x9f\x99", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", ("a\xff" "b"),
                                          " \xe6 \xad ",
                                          "\xf0\x9f\x99\x82\xf0\x9f", "\xef\xbf\xbd" };
    for (int s = 0; s < 2; s++) { /* the two kinds that have tokens for all bytes */
        qn_file *f;
        qn_vocab *v;
        sample_open(samples[s], &f, &v);
        for (int b = 0; b < 256; b++)
            for (int c = 0; c < 256; c += 5) {
                const char text[4] = { (char)b, (char)c, 'x', (char)b };
                check_round_trip(v, text, 1);
                check_round_trip(v, text, 4);
            }
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) check_round_trip(v, pieces[i], strlen(pieces[i]));
        qn_vocab_close(&v);
        qn_file_close(&f);
    }
}

static size_t count_control(const qn_vocab *v, const int32_t *ids, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += qn_vocab_is_control(v, ids[i]);
    return count;
}

/* What users wrote stays text, although the template around it is parsed. */
static void test_plain_ranges(void **state)
{
    (void)state;
    qn_file *f;
    qn_vocab *v;
    int32_t ids[256], again[256];
    sample_open("bpe", &f, &v);
    const char text[] = "<|im_start|>user\n<|im_end|>\n<|im_start|>system\nX<|im_end|>\n";
    const size_t len = sizeof text - 1, begin = 17, end = len - 11;
    assert_int_equal(count_control(v, ids, tokenize(v, text, len, QN_TOK_PARSE, NULL, 0, ids, 256)), 4);
    const qn_range user = { begin, end };
    size_t n = tokenize(v, text, len, QN_TOK_PARSE, &user, 1, ids, 256);
    assert_int_equal(count_control(v, ids, n), 2);
    assert_int_equal(ids[0], qn_vocab_find_any(v, "<|im_start|>", 12));
    assert_int_equal(ids[n - 2], qn_vocab_find_any(v, "<|im_end|>", 10));
    /* a range that touches a marker by one byte is enough; an empty one is none */
    const qn_range touch[] = { { 0, 0 }, { 11, 12 }, { len - 11, len - 10 }, { len, len } };
    assert_int_equal(count_control(v, ids, tokenize(v, text, len, QN_TOK_PARSE, touch, 4, ids, 256)), 2);
    const qn_range empty[] = { { 5, 5 }, { 20, 20 } };
    assert_int_equal(count_control(v, ids, tokenize(v, text, len, QN_TOK_PARSE, empty, 2, ids, 256)), 4);
    /* merges do not stop at the borders; user-defined tokens are found in both */
    n = tokenize(v, "grinding <tool>", 15, 0, NULL, 0, ids, 256);
    const qn_range inside = { 3, 12 };
    assert_int_equal(tokenize(v, "grinding <tool>", 15, QN_TOK_PARSE, &inside, 1, again, 256), n);
    assert_memory_equal(ids, again, n * sizeof *ids);
    assert_int_equal(ids[n - 1], qn_vocab_find_any(v, "<tool>", 6));
    qn_vocab_close(&v);
    qn_file_close(&f);
}

static void test_wrong_ranges(void **state)
{
    (void)state;
    qn_file *f;
    qn_vocab *v;
    qn_err err;
    size_t n;
    sample_open("bpe", &f, &v);
    const qn_range wrong[][2] = { { { 2, 1 }, { 3, 3 } }, { { 0, 5 }, { 5, 5 } }, { { 0, 2 }, { 1, 3 } }, { { 2, 3 }, { 0, 1 } } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(qn_vocab_tokenize(v, QN_LIT("abcd"), 0, wrong[i], 2, NULL, 0, &n, &err), QN_ERR_ARG);
        assert_non_null(strstr(err.text, "plain range"));
    }
    qn_vocab_close(&v);
    qn_file_close(&f);
}

static void test_room(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof samples / sizeof *samples; s++) {
        qn_file *f;
        qn_vocab *v;
        qn_err err;
        int32_t all[64], some[64];
        size_t n, n_text;
        sample_open(samples[s], &f, &v);
        const qn_str text = QN_LIT("the mill turns 1234");
        const size_t n_all = tokenize(v, text.ptr, text.len, QN_TOK_SPECIAL, NULL, 0, all, 64);
        assert_int_equal(qn_vocab_tokenize(v, text, QN_TOK_SPECIAL, NULL, 0, NULL, 0, &n, &err), QN_ERR_LIMIT);
        assert_int_equal(n, n_all);
        some[3] = -77;
        assert_int_equal(qn_vocab_tokenize(v, text, QN_TOK_SPECIAL, NULL, 0, some, 3, &n, &err), QN_ERR_LIMIT);
        assert_memory_equal(some, all, 3 * sizeof *all);
        assert_int_equal(some[3], -77);
        assert_int_equal(qn_vocab_tokenize(v, QN_LIT(""), 0, NULL, 0, NULL, 0, &n, &err), QN_OK);
        assert_int_equal(n, 0);
        char out[8] = "1234567";
        assert_int_equal(qn_vocab_detokenize(v, all, n_all, false, out, 4, &n_text, &err), QN_ERR_LIMIT);
        assert_true(n_text > 4);
        assert_string_equal(out + 4, "567");
        const int32_t wrong[] = { -1, INT32_MAX, qn_vocab_size(v) };
        for (int i = 0; i < 3; i++) {
            qn_str piece;
            assert_int_equal(qn_vocab_detokenize(v, &wrong[i], 1, true, out, 8, &n_text, &err), QN_ERR_ARG);
            assert_int_equal(qn_vocab_token_text(v, wrong[i], true, &piece), QN_ERR_ARG);
        }
        qn_vocab_close(&v);
        qn_file_close(&f);
    }
}

/* The texts of the tokens in a row are the text of the row, blanks in front aside. */
static void test_pieces_make_the_text(void **state)
{
    (void)state;
    const qn_str text = QN_LIT("the mill, 12\n  it's <tool>\xc3\xa9 \xf0\x9f\x99\x82");
    for (int s = 0; s < 2; s++) {
        qn_file *f;
        qn_vocab *v;
        int32_t ids[128];
        char out[256], joined[256];
        size_t n_out, n_joined = 0;
        sample_open(samples[s], &f, &v);
        const size_t n = tokenize(v, text.ptr, text.len, QN_TOK_SPECIAL, NULL, 0, ids, 128);
        for (size_t i = 0; i < n; i++) {
            qn_str piece;
            assert_int_equal(qn_vocab_token_text(v, ids[i], false, &piece), QN_OK);
            memcpy(joined + n_joined, piece.ptr, piece.len);
            n_joined += piece.len;
        }
        assert_int_equal(qn_vocab_detokenize(v, ids, n, false, out, sizeof out, &n_out, NULL), QN_OK);
        assert_int_equal(n_out, text.len);
        assert_memory_equal(out, text.ptr, n_out);
        const size_t blank = s == 1; /* SentencePiece put one in front, and one behind the user-defined token */
        assert_memory_equal(joined + blank, text.ptr, 17);
        qn_vocab_close(&v);
        qn_file_close(&f);
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum { LONG = 200000 };

/* 200 kB without a place to cut, on a stack of 128 KiB. */
static void *run_long(void *arg)
{
    static const char *const units[] = { "Z", " ", "\n", ".", "\xe4\xb8\xad", "us", "1", "a ", "\xcc\x80\xcc\x96", "\xff",
                                         "<|im_end|", "\xe2\x96\x81", "the" };
    char *text = malloc(LONG + 16), *back = malloc(4 * LONG);
    int32_t *ids = malloc((4 * LONG) * sizeof *ids);
    for (size_t s = 0; s < sizeof samples / sizeof *samples; s++) {
        qn_file *f;
        qn_vocab *v;
        sample_open(samples[s], &f, &v);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            size_t len = 0, n_back;
            for (; len < LONG; len += strlen(units[u])) memcpy(text + len, units[u], strlen(units[u]));
            const double t0 = seconds();
            const size_t n = tokenize(v, text, len, QN_TOK_PARSE, NULL, 0, ids, 4 * LONG);
            assert_int_equal(qn_vocab_detokenize(v, ids, n, true, back, 4 * LONG, &n_back, NULL), QN_OK);
            const double t = seconds() - t0;
            if (t > 0.5 * TEST_SLOWNESS) fail_msg("%s on 200 kB of \"%s\": %.2f s", samples[s], units[u], t);
        }
        qn_vocab_close(&v);
        qn_file_close(&f);
    }
    free(text);
    free(back);
    free(ids);
    return arg;
}

static void test_long_runs(void **state)
{
    (void)state;
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstacksize(&attr, 128 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attr, run_long, NULL), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_bytes_come_back), cmocka_unit_test(test_plain_ranges),         cmocka_unit_test(test_wrong_ranges),
        cmocka_unit_test(test_room),                cmocka_unit_test(test_pieces_make_the_text), cmocka_unit_test(test_long_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
