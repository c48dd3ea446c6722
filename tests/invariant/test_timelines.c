/* What a timeline remembers, over every registered architecture, with keys and values, windows or states: a fork, a prefix found in the cache, going back,
 * and a file that was saved go on with the bits of a text that was read at once, in an engine that knew nothing before. */
#include "models/model.h"
#include "src/run/engine.h"
#include "tests/common/tiny_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { CTX = 128, N = 90, N_SAME = 37, CHUNK = 16 };

static char path[64], saved[64];
static int32_t one[N], two[N]; /* they differ from N_SAME on */
static float want[2][TINY_VOCAB];

static void make_texts(void)
{
    uint32_t seed = 11;
    for (int32_t i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        one[i] = (int32_t)((seed >> 8) % TINY_VOCAB);
        two[i] = i < N_SAME ? one[i] : (one[i] + 1 + i) % TINY_VOCAB;
    }
    if (two[N_SAME] == one[N_SAME]) two[N_SAME] = (one[N_SAME] + 1) % TINY_VOCAB;
}

static void must(qn_status s, const char *arch, const qn_err *err)
{
    if (s != QN_OK) fail_msg("%s: %s", arch, err->text);
}

static qn_engine *open_engine(const qn_model *m, const char *arch, int32_t n_threads)
{
    qn_engine *e = NULL;
    qn_err err = { 0 };
    const qn_engine_opts o = { .size = sizeof o, .n_ctx = CTX, .n_chunk = CHUNK, .n_sessions = 3 };
    must(qn_engine_open_threads(&e, m, &o, n_threads, &err), arch, &err);
    return e;
}

static qn_session *open_session(qn_engine *e)
{
    qn_session *s = NULL;
    assert_int_equal(qn_session_open(&s, e, NULL), QN_OK);
    return s;
}

/* Tokens [from, N) of a text, in pieces. */
static void go_on(qn_session *s, const char *arch, const int32_t *text, int32_t from, int32_t piece, const float *expected, const char *what)
{
    float got[TINY_VOCAB];
    qn_err err = { 0 };
    for (int32_t n; from < N; from += n) {
        n = N - from < piece ? N - from : piece;
        must(qn_session_eval(s, text + from, n, got, &err), arch, &err);
    }
    if (memcmp(got, expected, sizeof got)) fail_msg("%s: other bits for %s", arch, what);
}

static void read_at_once(const qn_model *m, const char *arch)
{
    for (int i = 0; i < 2; i++) {
        qn_engine *e = open_engine(m, arch, 1);
        qn_session *s = open_session(e);
        qn_err err = { 0 };
        must(qn_session_eval(s, i ? two : one, N, want[i], &err), arch, &err);
        qn_session_close(&s);
        qn_engine_close(&e);
    }
    if (!memcmp(want[0], want[1], sizeof want[0])) fail_msg("%s: both texts have the same logits", arch);
}

/* Two go their own ways from one beginning, by turns; then a third finds what they left. */
static void forked_and_found(const qn_model *m, const char *arch)
{
    qn_engine *e = open_engine(m, arch, 2);
    qn_session *s = open_session(e), *t = open_session(e);
    qn_err err = { 0 };
    must(qn_session_eval(s, one, N_SAME, NULL, &err), arch, &err);
    must(qn_session_fork(t, s, &err), arch, &err);
    assert_int_equal(qn_session_position(t), N_SAME);
    must(qn_session_eval(t, two + N_SAME, 9, NULL, &err), arch, &err);
    go_on(s, arch, one, N_SAME, 20, want[0], "a text that was forked from");
    go_on(t, arch, two, N_SAME + 9, 1, want[1], "a fork");
    qn_session_close(&s);
    qn_session_close(&t);
    s = open_session(e);
    int32_t kept = qn_session_rewind(s, one, N - 1);
    if (kept < CHUNK) fail_msg("%s: %d tokens of a text that was read before are found", arch, kept);
    go_on(s, arch, one, kept, 33, want[0], "a prefix that was found");
    kept = qn_session_rewind(s, two, N - 1);
    assert_true(kept >= 0 && kept < N);
    go_on(s, arch, two, kept, 33, want[1], "another way after going back");
    qn_session_close(&s);
    qn_engine_close(&e);
}

static void saved_and_loaded(const qn_model *m, const char *arch)
{
    static const int32_t lengths[] = { 1, N_SAME, 64 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        qn_engine *e = open_engine(m, arch, 1), *f = open_engine(m, arch, 2);
        qn_session *s = open_session(e), *t = open_session(f);
        qn_err err = { 0 };
        must(qn_session_eval(s, one, lengths[i], NULL, &err), arch, &err);
        must(qn_session_save(s, saved, (qn_str){ 0 }, &err), arch, &err);
        must(qn_session_eval(t, two + 5, 40, NULL, &err), arch, &err);
        must(qn_session_load(t, saved, NULL, &err), arch, &err);
        assert_int_equal(qn_session_position(t), lengths[i]);
        go_on(t, arch, one, lengths[i], 7, want[0], "a session that was saved");
        const int32_t kept = qn_session_rewind(t, two, N - 1);
        go_on(t, arch, two, kept, 40, want[1], "another way after loading");
        qn_session_close(&s);
        qn_session_close(&t);
        qn_engine_close(&e);
        qn_engine_close(&f);
    }
}

static void each(void (*check)(const qn_model *m, const char *arch))
{
    char name[64];
    for (int32_t a = 0; tiny_model_name(a, name); a++) {
        qn_model *m = NULL;
        qn_err err = { 0 };
        const qn_model_opts o = { .size = sizeof o, .n_threads = 2 };
        assert_true(tiny_model_write(path, name, 8, 5));
        must(qn_model_open(&m, path, &o, &err), name, &err);
        if (!qn_net_is_encoder(&m->net)) { /* which reads a text in one step, and keeps nothing */
            read_at_once(m, name);
            check(m, name);
        }
        qn_model_close(&m);
    }
}

static void forks_and_prefixes(void **state)
{
    (void)state;
    each(forked_and_found);
}

static void files(void **state)
{
    (void)state;
    each(saved_and_loaded);
}

int main(int argc, char **argv)
{
    if (argc > 1) tiny_model_choose(argv + 1);
    snprintf(path, sizeof path, "/tmp/quern-timelines-%ld.gguf", (long)getpid());
    snprintf(saved, sizeof saved, "/tmp/quern-timelines-%ld.session", (long)getpid());
    make_texts();
    const struct CMUnitTest tests[] = { cmocka_unit_test(forks_and_prefixes), cmocka_unit_test(files) };
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    remove(path);
    remove(saved);
    return code;
}
