/* Pre-tokenizers against the published expressions (tests/data/pre_splits.txt), on runs that break regex engines, and their table. */
#include "src/token/pre.h"
#include "src/token/work.h"
#include "tests/common/gguf_bytes.h"

#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void decode(qn_work *w, const char *text, size_t len)
{
    w->n_cp = 0;
    assert_true(qn_work_decode(w, (qn_str){ text, len }));
}

static size_t unhex(char *s, char *out)
{
    size_t n = 0;
    for (; s[0] > ' '; s += 2) {
        const char digits[3] = { s[0], s[1], 0 };
        out[n++] = (char)strtoul(digits, NULL, 16);
    }
    return n;
}

/* One line of pre_splits.txt: the words are the expected ones, and they cover the text. */
static void check_line(char *line, int number)
{
    char text[1024];
    char *name = strtok(line, " "), *hex = strtok(NULL, " ");
    assert_non_null(hex);
    const qn_pre *pre = qn_pre_find_name((qn_str){ name, strlen(name) });
    if (!pre) fail_msg("line %d: no pre-tokenizer %s", number, name);
    qn_work w = { 0 };
    decode(&w, text, unhex(hex, text));
    const qn_scan scan = { w.cp, w.cls, w.n_cp };
    qn_pre_walk walk;
    qn_span word;
    size_t at = 0;
    for (qn_pre_begin(&walk, pre, &scan); qn_pre_next(&walk, &word); at = word.end) {
        const char *want = strtok(NULL, " \n");
        if (!want || word.begin != at || word.end - word.begin != strtoul(want, NULL, 10))
            fail_msg("line %d, %s: word [%zu, %zu) where %s characters are expected", number, name, word.begin, word.end, want ? want : "no");
    }
    assert_int_equal(at, w.n_cp);
    assert_null(strtok(NULL, " \n"));
    qn_work_free(&w);
}

static void test_published_expressions(void **state)
{
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/data/pre_splits.txt", getenv("QUERN_SOURCE") ? getenv("QUERN_SOURCE") : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    int n = 0;
    while (getline(&line, &cap, f) > 0) check_line(line, ++n);
    free(line);
    fclose(f);
    assert_true(n > 500);
}

/* Every row of the table has its passes and is found by its name. */
static void test_table(void **state)
{
    (void)state;
    int32_t n = 0;
    for (const qn_pre *p; (p = qn_pre_at(n)); n++) {
        assert_ptr_equal(qn_pre_find_name((qn_str){ p->name, strlen(p->name) }), p);
        assert_in_range(p->n_rules, 1, QN_PRE_PASSES);
        for (int32_t r = 0; r < p->n_rules; r++) {
            assert_non_null(p->rules[r].find);
            for (int32_t k = 1; k < p->rules[r].n_ranges; k++)
                assert_true(p->rules[r].ranges[k - 1].last < p->rules[r].ranges[k].first);
        }
    }
    assert_true(n > 80);
    assert_null(qn_pre_at(-1));
    assert_null(qn_pre_find_name(QN_LIT("no-such")));
    assert_null(qn_pre_find_name(QN_LIT("qwen")));
}

/* Words are not empty and cover the text in order. */
static void check_cover(const qn_pre *pre, const qn_scan *scan)
{
    qn_pre_walk walk;
    qn_span word;
    size_t at = 0;
    for (qn_pre_begin(&walk, pre, scan); qn_pre_next(&walk, &word); at = word.end)
        if (word.begin != at || word.end <= word.begin) fail_msg("%s: [%zu, %zu) behind %zu", pre->name, word.begin, word.end, at);
    assert_int_equal(at, scan->n);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* 200 kB of one thing: what makes backtracking engines recurse or go quadratic. Every pre-tokenizer, on a stack of 128 KiB. */
static void *run_long(void *arg)
{
    static const char *const units[] = {
        "Z", " ", "\n", ".", "\xe4\xb8\xad", "us", "1", "'", "a ", " a", "1a", "\xcc\x81", "\xcc\x81\x41", "A", "\t \n ", "/",
        "<sentinel:1", "IMGIMGA",
        "\xff", ("\xc2\xaa" "A"), "\xd9\xa3", "1\xc2\xb2", " '", "((", "\xe3\x80\x81", "\r",
    };
    qn_work w = { 0 };
    char *text = malloc(200000 + 16);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        const size_t n_unit = strlen(units[u]);
        size_t len = 0;
        while (len < 200000) {
            memcpy(text + len, units[u], n_unit);
            len += n_unit;
        }
        decode(&w, text, len);
        for (int32_t i = 0; qn_pre_at(i); i++) {
            const double t0 = seconds();
            check_cover(qn_pre_at(i), &(qn_scan){ w.cp, w.cls, w.n_cp });
            const double t = seconds() - t0;
            if (t > 0.2 * TEST_SLOWNESS) fail_msg("%s on 200 kB of \"%s\": %.2f s", qn_pre_at(i)->name, units[u], t);
        }
    }
    free(text);
    qn_work_free(&w);
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

/* Random code points, bytes that are not UTF-8 among them: covered, whatever they are. */
static void test_random(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    qn_work w = { 0 };
    for (int round = 0; round < 300; round++) {
        char text[96];
        for (size_t i = 0; i < sizeof text; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            static const char common[] = "aZ1 '\n\t.";
            text[i] = round % 2 ? (char)(unsigned char)x : common[x % (sizeof common - 1)];
        }
        decode(&w, text, sizeof text);
        for (int32_t i = 0; qn_pre_at(i); i++) check_cover(qn_pre_at(i), &(qn_scan){ w.cp, w.cls, w.n_cp });
    }
    qn_work_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_expressions),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
