/* Opening a vocabulary and tokenizing with every allocation failing in turn: QN_ERR_NOMEM, nothing leaks, nothing half-built stays. */
#include "src/token/vocab.h"
#include "tests/common/fault.h"
#include "tests/common/vocab_make.h"

static void open_faults(const qn_file *f, const char *name)
{
    for (long n = 1;; n++) {
        qn_vocab *v;
        qn_err err;
        test_fail_alloc_at(n);
        const qn_status s = qn_vocab_open(&v, f, &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (!failed) {
            assert_int_equal(s, QN_OK);
            qn_vocab_close(&v);
            return;
        }
        if (s != QN_ERR_NOMEM || v) fail_msg("%s: allocation %ld failed, the status is %d", name, n, s);
    }
}

static void text_faults(const qn_vocab *v, const char *name)
{
    /* normal forms, special tokens, words long and short */
    char text[600];
    snprintf(text, sizeof text, "the mill a\xcc\x81\xcc\xa3 turns<tool> 12345 %0300d \xef\xac\x81 <|im_end|> ab\xff", 7);
    for (long n = 1;; n++) {
        int32_t ids[700];
        size_t n_ids;
        qn_err err;
        test_fail_alloc_at(n);
        const qn_status s = qn_vocab_tokenize(v, (qn_str){ text, strlen(text) }, QN_TOK_SPECIAL | QN_TOK_PARSE, NULL, 0, ids, 700, &n_ids, &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (!failed) {
            assert_int_equal(s, QN_OK);
            return;
        }
        if (s != QN_ERR_NOMEM || n_ids) fail_msg("%s: allocation %ld failed, the status is %d", name, n, s);
    }
}

static void test_faults(void **state)
{
    (void)state;
    static const char *const samples[] = { "bpe", "spm", "wordpiece", "unigram" };
    for (size_t s = 0; s < sizeof samples / sizeof *samples; s++) {
        qn_file *f;
        qn_vocab *v;
        sample_open(samples[s], &f, &v);
        open_faults(f, samples[s]);
        text_faults(v, samples[s]);
        qn_vocab_close(&v);
        qn_file_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_faults) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
