/* Sessions in files: what is loaded goes on as if it had never been away; what is of another model, format or version, cut or damaged, is refused. */
#include "src/run/session_file.h"
#include "src/format/gguf.h"
#include "src/format/keys.h"
#include "tests/common/fault.h"
#include "tests/common/tiny_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { CTX = 128, N_TEXT = 100 };
static char path[64], saved[64];
static int32_t text[N_TEXT];

typedef struct place {
    qn_model *m;
    qn_engine *e;
    qn_session *s;
} place;

static void leave(place *p)
{
    qn_session_close(&p->s);
    qn_engine_close(&p->e);
    qn_model_close(&p->m);
}

static place enter(const char *arch, uint32_t seed, int32_t act_bits, int32_t n_ctx)
{
    place p = { 0 };
    qn_err err = { 0 };
    const qn_engine_opts o = { .size = sizeof o, .n_ctx = n_ctx, .n_threads = 1, .n_chunk = 16, .act_bits = act_bits };
    assert_true(tiny_model_write(path, arch, 8, seed));
    assert_int_equal(qn_model_open(&p.m, path, NULL, &err), QN_OK);
    assert_int_equal(qn_engine_open(&p.e, p.m, &o, &err), QN_OK);
    assert_int_equal(qn_session_open(&p.s, p.e, &err), QN_OK);
    return p;
}

static void save_text(place *p, int32_t n)
{
    qn_err err = { 0 };
    (void)qn_session_rewind(p->s, text, 0);
    if (n) assert_int_equal(qn_session_eval(p->s, text, n, NULL, &err), QN_OK);
    assert_int_equal(qn_session_save(p->s, saved, (qn_str){ "a note", 6 }, &err), QN_OK);
}

static uint8_t *slurp(size_t *n)
{
    FILE *f = fopen(saved, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*n);
    assert_true(bytes && fread(bytes, 1, *n, f) == *n);
    fclose(f);
    return bytes;
}

static void goes_on(void **state)
{
    (void)state;
    static const char *const archs[] = { "llama", "gemma3" }; /* one with windows */
    static const int32_t lengths[] = { 0, 1, 15, 16, 17, 64, N_TEXT - 1 };
    for (size_t a = 0; a < 2; a++) {
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            const int32_t n = lengths[k];
            float want[TINY_VOCAB], got[TINY_VOCAB];
            qn_err err = { 0 };
            qn_str note;
            place p = enter(archs[a], 5, 0, CTX), q = enter(archs[a], 5, 0, CTX);
            save_text(&p, n);
            assert_int_equal(qn_session_eval(p.s, text + n, 1, want, &err), QN_OK);
            assert_int_equal(qn_session_eval(q.s, text + 7, 40, NULL, &err), QN_OK); /* something else before */
            assert_int_equal(qn_session_load(q.s, saved, &note, &err), QN_OK);
            assert_true(note.len == 6 && !memcmp(note.ptr, "a note", 7));
            assert_int_equal(qn_session_position(q.s), n);
            assert_int_equal(qn_session_rewind(q.s, text, N_TEXT), n);
            assert_int_equal(qn_session_eval(q.s, text + n, 1, got, &err), QN_OK);
            assert_memory_equal(want, got, sizeof want);
            qn_session *other = NULL; /* what is loaded serves the engine's other sessions too */
            assert_int_equal(qn_session_open(&other, q.e, &err), QN_OK);
            if (a == 0) assert_int_equal(qn_session_rewind(other, text, N_TEXT), (n + 1) / 16 * 16);
            qn_session_close(&other);
            leave(&p);
            leave(&q);
        }
    }
}

/* Blocks are given back, whatever was refused. */
static void expect_refused(place *p, qn_status want, const char *words)
{
    qn_err err = { 0 };
    qn_str note;
    const qn_status got = qn_session_load(p->s, saved, &note, &err);
    if (got != want || !strstr(err.text, words)) fail_msg("%s (%s)", err.text, qn_status_name(got));
}

static void other_models(void **state)
{
    (void)state;
    place p = enter("llama", 5, 0, CTX);
    save_text(&p, 40);
    leave(&p);
    p = enter("llama", 6, 0, CTX);
    expect_refused(&p, QN_ERR_ARG, "another model");
    leave(&p);
    p = enter("gemma3", 5, 0, CTX);
    expect_refused(&p, QN_ERR_ARG, "another architecture");
    leave(&p);
    p = enter("llama", 5, 8, CTX);
    expect_refused(&p, QN_ERR_ARG, "bits of activations");
    leave(&p);
    p = enter("llama", 5, 0, CTX);
    const qn_engine_opts q8 = { .size = sizeof q8, .n_ctx = CTX, .n_threads = 1, .cache_type_v = "Q8_0" };
    qn_session_close(&p.s);
    qn_engine_close(&p.e);
    assert_int_equal(qn_engine_open(&p.e, p.m, &q8, NULL), QN_OK);
    assert_int_equal(qn_session_open(&p.s, p.e, NULL), QN_OK);
    expect_refused(&p, QN_ERR_ARG, "values in another format");
    leave(&p);
    p = enter("llama", 5, 0, 32);
    expect_refused(&p, QN_ERR_CTX_FULL, "holds 32");
    assert_int_equal(rename(path, saved), 0); /* a model is no session */
    expect_refused(&p, QN_ERR_FORMAT, "not a saved session");
    leave(&p);
}

/* What is not: padding, names that nobody reads. */
static bool is_data(const qn_file *f, const uint8_t *at)
{
    qn_tensor_info t;
    for (int64_t i = 0; qn_file_tensor_at(f, i, &t); i++)
        if (at >= qn_file_tensor_bytes(f, i) && at < qn_file_tensor_bytes(f, i) + t.n_bytes) return true;
    return false;
}

/* Cut anywhere, or a byte changed anywhere: refused. */
static void damaged(void **state)
{
    (void)state;
    size_t n;
    place p = enter("gemma3", 5, 0, CTX);
    save_text(&p, 40);
    uint8_t *bytes = slurp(&n);
    for (size_t k = 0; k < n; k += k < 1200 ? 1 : 997) {
        for (int cut = 0; cut < 2; cut++) {
            qn_file *f = NULL;
            qn_err err = { 0 };
            qn_str note;
            qn_status s = QN_OK;
            uint8_t *copy = malloc(cut ? k + 1 : n);
            memcpy(copy, bytes, cut ? k : n);
            if (!cut) copy[k] ^= 0x10;
            s = qn_file_open_memory(&f, copy, cut ? k : n, &err);
            if (s == QN_OK) s = qn_session_load_file(p.s, f, &note, &err);
            if (s == QN_OK && (cut || is_data(f, copy + k))) fail_msg("%s byte %zu of %zu and taken", cut ? "cut at" : "changed at", k, n);
            if (s == QN_OK && qn_session_position(p.s) != 40) fail_msg("byte %zu changed and taken", k);
            if (s != QN_OK && !err.text[0]) fail_msg("byte %zu: no sentence", k);
            qn_file_close(&f);
            free(copy);
        }
    }
    qn_engine_stats st;
    qn_session_close(&p.s);
    qn_engine_get_stats(p.e, &st);
    assert_int_equal(st.n_blocks_free + st.n_blocks_idle, st.n_blocks);
    free(bytes);
    leave(&p);
}

static void faults(void **state)
{
    (void)state;
    qn_err err = { 0 };
    qn_str note;
    place p = enter("gemma3", 5, 0, CTX);
    save_text(&p, 40);
    size_t n, n_after;
    uint8_t *before = slurp(&n);
    for (long i = 1;; i++) {
        err = (qn_err){ 0 };
        test_fail_alloc_at(i);
        const qn_status s = qn_session_save(p.s, saved, (qn_str){ "a note", 6 }, &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        uint8_t *after = slurp(&n_after); /* the old file, or the new one, which is the same */
        assert_true(n == n_after && !memcmp(before, after, n));
        free(after);
        if (!failed) {
            assert_int_equal(s, QN_OK);
            break;
        }
        assert_true(s == QN_OK || (s == QN_ERR_NOMEM && err.text[0]));
    }
    for (long i = 1;; i++) {
        err = (qn_err){ 0 };
        test_fail_alloc_at(i);
        const qn_status s = qn_session_load(p.s, saved, &note, &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (!failed) {
            assert_int_equal(s, QN_OK);
            break;
        }
        assert_true(s == QN_OK || err.text[0]);
    }
    assert_int_equal(qn_session_save(p.s, "/nowhere/at/all", (qn_str){ "", 0 }, &err), QN_ERR_IO);
    assert_int_equal(qn_session_load(p.s, "/nowhere/at/all", NULL, &err), QN_ERR_IO);
    if (access("/dev/full", W_OK) == 0) assert_int_equal(qn_session_save(p.s, "/dev/full", (qn_str){ "", 0 }, &err), QN_ERR_IO);
    free(before);
    leave(&p);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/quern-state-%ld.gguf", (long)getpid());
    snprintf(saved, sizeof saved, "/tmp/quern-state-%ld.state", (long)getpid());
    for (int32_t i = 0; i < N_TEXT; i++) text[i] = (i * 37 + 11) % TINY_VOCAB;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on), cmocka_unit_test(other_models), cmocka_unit_test(damaged), cmocka_unit_test(faults),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    unlink(saved);
    return failed;
}
