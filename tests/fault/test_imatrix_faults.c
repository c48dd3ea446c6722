/* Importance data when memory runs short or the file is damaged: a status and a sentence, and nothing left behind. */
#include "src/base/map.h"
#include "src/convert/imatrix.h"
#include "tests/common/fault.h"
#include "tests/common/tiny_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char model_path[64], path[64];
static const char text[] = "the cat of the thin hat, the bat and the end";

static qn_status collect(qn_imatrix **m, qn_err *err)
{
    qn_model *model = NULL;
    const qn_imatrix_opts o = { .size = sizeof o, .n_ctx = 8, .n_threads = 2, .text_name = "t" };
    qn_status s = qn_model_open(&model, model_path, NULL, err);
    if (s == QN_OK) s = qn_imatrix_collect(m, model, (qn_str){ text, sizeof text - 1 }, &o, err);
    qn_model_close(&model);
    return s;
}

static qn_status all_of_it(qn_err *err)
{
    qn_imatrix *m = NULL, *again = NULL;
    qn_status s = collect(&m, err);
    if (s == QN_OK) s = qn_imatrix_save(m, path, err);
    if (s == QN_OK) s = qn_imatrix_load(&again, path, err);
    qn_imatrix_close(&m);
    qn_imatrix_close(&again);
    return s;
}

static void failing_allocations(void **state)
{
    (void)state;
    long n = 1;
    assert_true(tiny_model_write(model_path, "qwen3", 8, 1));
    for (;; n += 1 + n / 32) { /* every one at first, then most kinds of them: each round loads a model */
        qn_err err = { 0 };
        test_fail_alloc_at(n);
        const qn_status s = all_of_it(&err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (!failed && s != QN_OK) fail_msg("nothing failed, and yet: %s", err.text);
        if (!failed) break;
        if (s != QN_OK && !err.text[0]) fail_msg("allocation %ld fails without a sentence (%s)", n, qn_status_name(s));
    }
    assert_true(n > 100);
}

/* Bytes of a file that hurt, and every place where it may be cut. */
static void damaged_files(void **state)
{
    (void)state;
    static const uint8_t values[] = { 0, 1, 9, 0x7f, 0x80, 0xff };
    qn_err err = { 0 };
    qn_map map;
    qn_imatrix *m = NULL;
    assert_true(tiny_model_write(model_path, "qwen2", 0, 1));
    if (collect(&m, &err) != QN_OK || qn_imatrix_save(m, path, &err) != QN_OK) fail_msg("%s", err.text);
    qn_imatrix_close(&m);
    assert_int_equal(qn_map_open(&map, path, &err), QN_OK);
    uint8_t *copy = malloc(map.n_bytes);
    assert_non_null(copy);
    memcpy(copy, map.ptr, map.n_bytes);
    const size_t n_header = map.n_bytes < 1024 ? map.n_bytes : 1024;
    for (size_t i = 0; i < n_header; i++) {
        assert_int_equal(qn_imatrix_load_memory(&m, copy, i, &err), QN_ERR_FORMAT);
        for (size_t k = 0; k < sizeof values; k++) {
            copy[i] = values[k];
            err.text[0] = 0;
            if (qn_imatrix_load_memory(&m, copy, map.n_bytes, &err) != QN_OK && !err.text[0]) fail_msg("byte %zu: no sentence", i);
            qn_imatrix_close(&m);
        }
        copy[i] = map.ptr[i];
    }
    free(copy);
    qn_map_close(&map);
}

static void texts_that_are_too_short(void **state)
{
    (void)state;
    qn_err err = { 0 };
    qn_model *model = NULL;
    qn_imatrix *m = NULL;
    assert_true(tiny_model_write(model_path, "llama", 0, 1));
    assert_int_equal(qn_model_open(&model, model_path, NULL, NULL), QN_OK);
    assert_int_equal(qn_imatrix_collect(&m, model, (qn_str){ text, sizeof text - 1 }, NULL, &err), QN_ERR_ARG);
    assert_non_null(strstr(err.text, "at least one window of 512"));
    assert_int_equal(qn_imatrix_collect(&m, model, (qn_str){ NULL, 0 }, NULL, &err), QN_ERR_ARG);
    assert_null(m);
    qn_model_close(&model);
}

int main(void)
{
    snprintf(model_path, sizeof model_path, "/tmp/quern-imatrix-fault-%ld.gguf", (long)getpid());
    snprintf(path, sizeof path, "/tmp/quern-imatrix-fault-%ld.im.gguf", (long)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(texts_that_are_too_short),
    };
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    remove(model_path);
    remove(path);
    return code;
}
