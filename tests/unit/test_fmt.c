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
        cmocka_unit_test(test_row_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
