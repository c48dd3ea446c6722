/* The registry of formats. */
#include "quant/quant.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

static void test_unique(void **state)
{
    (void)state;
    for (int32_t i = 0; i < qn_fmt_count(); i++)
        for (int32_t j = 0; j < i; j++) {
            assert_int_not_equal(qn_fmt_at(i)->id, qn_fmt_at(j)->id);
            assert_int_not_equal(strcasecmp(qn_fmt_at(i)->name, qn_fmt_at(j)->name), 0);
        }
}

static void test_lookup(void **state)
{
    (void)state;
    for (int32_t i = 0; i < qn_fmt_count(); i++) {
        const qn_fmt *f = qn_fmt_at(i);
        char lower[32];
        assert_ptr_equal(qn_fmt_by_id(f->id), f);
        assert_ptr_equal(qn_fmt_by_name(f->name), f);
        assert_true(strlen(f->name) < sizeof lower);
        for (size_t k = 0; k <= strlen(f->name); k++) lower[k] = (char)tolower((unsigned char)f->name[k]);
        assert_ptr_equal(qn_fmt_by_name(lower), f);
        assert_non_null(f->decode);
    }
    assert_null(qn_fmt_by_id(-1));
    assert_null(qn_fmt_by_id(4)); /* Q4_2, given up long ago */
    assert_null(qn_fmt_by_id(INT32_MAX));
    assert_null(qn_fmt_by_name("Q4"));
    assert_null(qn_fmt_by_name(""));
}

/* Any bytes decode: nothing is read or written outside (sanitizers look), every weight is written, and the same twice. */
static void test_any_bytes(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int32_t i = 0; i < qn_fmt_count(); i++) {
        const qn_fmt *f = qn_fmt_at(i);
        const size_t n_in = (size_t)f->bytes, n_out = (size_t)f->block * sizeof(float);
        uint8_t *in = malloc(n_in);
        float *a = malloc(n_out), *b = malloc(n_out);
        assert_true(in && a && b);
        for (int round = 0; round < 2000; round++) {
            for (size_t k = 0; k < n_in; k++) {
                random = random * 1664525 + 1013904223;
                in[k] = round == 0 ? 0xff : (uint8_t)(random >> 24);
            }
            memset(a, 0x00, n_out);
            memset(b, 0xff, n_out);
            f->decode(in, 1, a);
            f->decode(in, 1, b);
            assert_memory_equal(a, b, n_out);
        }
        free(in);
        free(a);
        free(b);
    }
}

static void test_row_bytes(void **state)
{
    (void)state;
    const qn_fmt *f = qn_fmt_by_name("Q4_K");
    size_t n;
    assert_true(qn_fmt_row_bytes(f, 512, &n));
    assert_int_equal(n, 288);
    assert_false(qn_fmt_row_bytes(f, 576, &n));
    assert_false(qn_fmt_row_bytes(f, 0, &n));
    assert_false(qn_fmt_row_bytes(f, -256, &n));
    assert_false(qn_fmt_row_bytes(qn_fmt_by_name("F32"), INT64_MAX, &n));
    assert_false(qn_fmt_row_bytes(qn_fmt_by_name("F32"), INT64_MAX / 4, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unique),
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_row_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
