/* Code points, classes, normal forms, GPT-2's alphabet of bytes. */
#include "src/token/normal.h"
#include "src/token/vocab.h"
#include "tests/common/gguf_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>

#include <cmocka.h>

static void test_ascii_classes(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp < 128; cp++) {
        const char *name = utf8proc_category_string((utf8proc_int32_t)cp);
        const uint16_t c = qn_uni_class(cp);
        assert_int_equal(!!(c & QN_C_LETTER), name[0] == 'L');
        assert_int_equal(!!(c & QN_C_NUMBER), name[0] == 'N');
        assert_int_equal(!!(c & QN_C_PUNCT), name[0] == 'P');
        assert_int_equal(!!(c & QN_C_SYMBOL), name[0] == 'S');
        assert_int_equal(!!(c & QN_C_UPPER), !strcmp(name, "Lu"));
        assert_int_equal(!!(c & QN_C_LOWER), !strcmp(name, "Ll"));
        assert_int_equal(!!(c & QN_C_DIGIT), !strcmp(name, "Nd"));
        assert_int_equal(!!(c & QN_C_JOIN), !strcmp(name, "Pc"));
        assert_int_equal(!!(c & QN_C_SPACE), cp == ' ' || (cp >= 9 && cp <= 13));
        assert_int_equal(!!(c & QN_C_NEWLINE), cp == '\n' || cp == '\r');
    }
}

static void test_classes(void **state)
{
    (void)state;
    static const struct {
        uint32_t cp;
        uint16_t cls;
    } cases[] = {
        { 0xe9, QN_C_LETTER | QN_C_LOWER },  { 0x1c5, QN_C_LETTER | QN_C_UPPER }, { 0x2b0, QN_C_LETTER },
        { 0x4e00, QN_C_LETTER | QN_C_HAN },  { 0x301, QN_C_MARK },                { 0x903, QN_C_MARK },
        { 0x663, QN_C_NUMBER | QN_C_DIGIT }, { 0xb2, QN_C_NUMBER },               { 0x3007, QN_C_NUMBER | QN_C_HAN },
        { 0x85, QN_C_SPACE },                { 0x3000, QN_C_SPACE },              { 0x200b, 0 },
        { 0x1f600, QN_C_SYMBOL },            { 0x2026, QN_C_PUNCT },              { 0xe000, 0 },
        { 0x378, 0 },                        { 0x10ffff, 0 },                     { QN_CP_BYTE + 0xff, QN_C_SYMBOL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (qn_uni_class(cases[i].cp) != cases[i].cls) fail_msg("U+%04X: %#x, not %#x", cases[i].cp, qn_uni_class(cases[i].cp), cases[i].cls);
}

/* Every code point goes there and back; every other byte stands for itself. */
static void test_utf8(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp < 0x110100; cp++) {
        if ((cp >= 0xd800 && cp < 0xe000) || (cp >= QN_CP_BYTE && cp < QN_CP_BYTE + 0x80)) continue;
        char s[4];
        uint32_t back;
        const size_t n = qn_utf8_put(cp, s);
        assert_int_equal(n, qn_utf8_len(cp));
        assert_int_equal(qn_utf8_get(s, n, &back), n);
        assert_int_equal(back, cp);
    }
    static const char *const wrong[] = { "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                                         "\xf5\x80\x80\x80", "\x80", "\xff", "\xe6\xad", "\xf0\x9f\x99", "\xc3" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uint32_t cp;
        assert_int_equal(qn_utf8_get(wrong[i], strlen(wrong[i]), &cp), 1);
        assert_int_equal(cp, QN_CP_BYTE + (unsigned char)wrong[i][0]);
    }
}

static void test_byte_alphabet(void **state)
{
    (void)state;
    for (int b = 0; b < 256; b++) assert_int_equal(qn_alpha_to_byte(qn_byte_to_alpha((unsigned char)b)), b);
    int n = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++) n += qn_alpha_to_byte(cp) >= 0;
    assert_int_equal(n, 256);
    assert_int_equal(qn_byte_to_alpha(' '), 0x120); /* the well-known dotted G */
    assert_int_equal(qn_byte_to_alpha('\n'), 0x10a);
    assert_int_equal(qn_byte_to_alpha(0xad), 0x143);
}

static void test_byte_names(void **state)
{
    (void)state;
    assert_int_equal(qn_byte_token_value(QN_LIT("<0x00>")), 0);
    assert_int_equal(qn_byte_token_value(QN_LIT("<0xFF>")), 255);
    assert_int_equal(qn_byte_token_value(QN_LIT("<0xa9>")), 0xa9);
    static const char *const wrong[] = { "<0x-1>", "<0xZZ>", "<0x1FF>", "<0x", "<0x1>", "", "<0X41>", "<0x41>x", "<0x 1>", "<0x+1>" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(qn_byte_token_value((qn_str){ wrong[i], strlen(wrong[i]) }), -1);
}

static void check_nfc(const char *text, size_t len, const char *want, size_t n_want)
{
    qn_work w = { 0 };
    assert_true(qn_nfc(&w, (qn_str){ text, len }));
    assert_int_equal(w.text.len, n_want);
    assert_memory_equal(w.text.ptr ? w.text.ptr : "", want, n_want);
    qn_work_free(&w);
}

static void test_nfc(void **state)
{
    (void)state;
#define NFC(a, b) check_nfc(a, sizeof(a) - 1, b, sizeof(b) - 1)
    NFC("", "");
    NFC("plain\0text", "plain\0text");
    NFC("e\xcc\x81", "\xc3\xa9");
    NFC("\xe2\x84\xab", "\xc3\x85");                         /* Angstrom sign */
    NFC("a\xcc\x81\xcc\xa3", "\xe1\xba\xa1\xcc\x81");        /* marks out of order: dot below first */
    NFC("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81"); /* Hangul */
    NFC("\xff\xcc\x81" "e\xcc\x81\xc3", "\xff\xcc\x81\xc3\xa9\xc3"); /* bytes that are not UTF-8 stay and divide */
    NFC("\xef\xac\x81", "\xef\xac\x81");                     /* a ligature is another character in NFKC alone */
#undef NFC
}

/* 100,000 marks of two classes in turn: sorting neighbours would take minutes. */
static void test_nfc_is_linear(void **state)
{
    (void)state;
    enum { N = 100000 };
    char *text = malloc(4 * N + 1), *at = text;
    *at++ = 'x';
    for (int i = 0; i < N; i++, at += 4) memcpy(at, "\xcc\x80\xcc\x96", 4);
    const clock_t t0 = clock();
    qn_work w = { 0 };
    assert_true(qn_nfc(&w, (qn_str){ text, 4 * N + 1 }));
    assert_int_equal(w.text.len, 4 * N + 1);
    assert_memory_equal(w.text.ptr, "x\xcc\x96\xcc\x96", 5);
    assert_true((double)(clock() - t0) / CLOCKS_PER_SEC < 1.0 * TEST_SLOWNESS);
    qn_work_free(&w);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ascii_classes), cmocka_unit_test(test_classes),    cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_byte_alphabet), cmocka_unit_test(test_byte_names), cmocka_unit_test(test_nfc),
        cmocka_unit_test(test_nfc_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
