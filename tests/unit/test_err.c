/* Sentences: in full, safe for a terminal, valid UTF-8 wherever they are cut. */
#include "src/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void sentences(void **state)
{
    (void)state;
    qn_err e;
    assert_int_equal(qn_fail(&e, QN_ERR_FORMAT, "key '%.*s' is %d", QN_STR_ARG(QN_LIT("a.b")), 7), QN_ERR_FORMAT);
    assert_int_equal(e.status, QN_ERR_FORMAT);
    assert_string_equal(e.text, "key 'a.b' is 7");
    assert_int_equal(qn_fail_in(&e, QN_ERR_IO, "%s", "m.gguf"), QN_ERR_IO);
    assert_int_equal(e.status, QN_ERR_IO);
    assert_string_equal(e.text, "m.gguf: key 'a.b' is 7");
    assert_int_equal(qn_fail(NULL, QN_ERR_ARG, "nobody listens"), QN_ERR_ARG);
    assert_int_equal(qn_fail_in(NULL, QN_ERR_ARG, "nobody listens"), QN_ERR_ARG);
}

static void bytes_of_a_file(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "plain \xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80", "plain \xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80" },
        { "\x1b[31m\n\t\x7f", "?[31m???" },
        { "\xc2\x9b" "31m", "??31m" },             /* the escape sequence that begins with one C1 character */
        { "\x9b\xff\xc3", "???" },                /* not UTF-8 */
        { "\xed\xa0\x80\xc0\xaf", "?????" },      /* a surrogate, an overlong slash */
    };
    qn_err e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_fail(&e, QN_ERR_FORMAT, "%s", cases[i][0]);
        assert_string_equal(e.text, cases[i][1]);
    }
}

static void cut_sentences(void **state)
{
    (void)state;
    char text[600];
    qn_err e;
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 2 < sizeof text; i += 3) memcpy(text + i, "\xe6\x97\xa5", 3);
        text[sizeof text - 1 - (sizeof text - 1 - shift) % 3] = 0;
        qn_fail(&e, QN_ERR_FORMAT, "%s", text);
        assert_int_equal(strlen(e.text), sizeof e.text - 1);
        const size_t whole = shift + (sizeof e.text - 1 - shift) / 3 * 3; /* bytes of whole characters that fit */
        assert_memory_equal(e.text, text, whole);
        for (size_t i = whole; i + 1 < sizeof e.text; i++) assert_int_equal(e.text[i], '?');
        qn_fail_in(&e, QN_ERR_FORMAT, "%s", "prefix");
        assert_int_equal(strlen(e.text), sizeof e.text - 1);
    }
}

static void names_of_statuses(void **state)
{
    (void)state;
    assert_string_equal(qn_status_name(QN_OK), "ok");
    for (int s = QN_OK; s <= QN_ERR_NUMERIC; s++) assert_string_not_equal(qn_status_name((qn_status)s), "unknown status");
    assert_string_equal(qn_status_name((qn_status)9999), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences),
        cmocka_unit_test(bytes_of_a_file),
        cmocka_unit_test(cut_sentences),
        cmocka_unit_test(names_of_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
