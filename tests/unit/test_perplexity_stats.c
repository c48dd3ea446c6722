/* Statistics of perplexity and divergence against values that Python's statistics module gave, and rows against probabilities in double. */
#include "tools/perplexity_row.c"
#include "tools/perplexity_stats.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { N = 11 };

static void expect(double got, double want)
{
    if (fabs(got - want) > 1e-12 * fabs(want)) print_error("%.17g, not %.17g\n", got, want);
    assert_true(fabs(got - want) <= 1e-12 * fabs(want));
}

/* nll = (7i mod 11 + 1) / 4 and so on; means by fmean, errors by sqrt(pvariance / (n - 1)), quantiles by the inclusive method. */
static void test_stats(void **state)
{
    (void)state;
    ppl_point p[N];
    double scratch[N];
    for (int i = 0; i < N; i++) {
        const int third = 3 * i % 11;
        p[i] = (ppl_point){ .nll = (7 * i % 11 + 1) / 4.0, .nll_base = (5 * i % 11 + 2) / 5.0, .kl = third * third / 1000.0, .same_top = i % 4 != 0 };
        p[i].dp = exp(-p[i].nll) - exp(-p[i].nll_base);
    }
    ppl_stats s;
    ppl_stats_make(&s, p, N, scratch);
    expect(s.perplexity.value, 4.4816890703380645);
    expect(s.perplexity.error, 1.1204222675845161);
    expect(s.base_perplexity.value, 4.055199966844675);
    expect(s.base_perplexity.error, 0.8110399933689352);
    expect(s.log_ratio.value, 0.1);
    expect(s.log_ratio.error, 0.30413812651491096);
    expect(s.kl.value, 0.035);
    expect(s.kl.error, 0.010382677881933929);
    expect(s.kl_median, 0.025);
    expect(s.kl_p99, 0.0981);
    expect(s.kl_max, 0.1);
    expect(s.top1_percent.value, 72.72727272727273);
    expect(s.top1_percent.error, 14.083575804390607);
    expect(s.dp_rms_percent.value, 23.82901240002694);
    expect(s.dp_rms_percent.error, 4.61741224463803);
    ppl_stats_make(&s, p, 1, NULL);
    expect(s.perplexity.value, exp(0.25));
    assert_true(s.n == 1 && s.perplexity.error == 0 && s.kl.value == 0);
}

/* An odd vocabulary, two models; the row of the first holds its log-probabilities to half a step. */
static void test_rows(void **state)
{
    (void)state;
    enum { V = 37 };
    float a[V], b[V];
    uint16_t row[V + 1 + PPL_ROW_HEAD];
    double sum_a = 0, sum_b = 0, kl = 0;
    assert_int_equal(ppl_row_words(V), V + 1 + PPL_ROW_HEAD);
    for (int i = 0; i < V; i++) {
        a[i] = 5 * sinf((float)(i * i)) - 100;
        b[i] = a[i] + 0.25F * cosf((float)i);
        sum_a += exp((double)a[i]);
        sum_b += exp((double)b[i]);
    }
    for (int i = 0; i < V; i++) kl += exp((double)a[i]) / sum_a * ((double)a[i] - log(sum_a) - (double)b[i] + log(sum_b));
    for (int token = 0; token < V; token++) {
        const double nll_a = log(sum_a) - (double)a[token], nll_b = log(sum_b) - (double)b[token];
        assert_true(fabs(ppl_row_nll(a, V, token) - nll_a) < 1e-6);
        assert_true(fabs(ppl_row_write(row, a, V, token) - nll_a) < 1e-6);
        assert_true(ppl_row_is_good(row));
        const ppl_point p = ppl_row_compare(row, b, V, token);
        assert_true(fabs(p.nll - nll_b) < 1e-6 && fabs(p.nll_base - nll_a) < 2e-4 && fabs(p.kl - kl) < 2e-4);
        assert_true(fabs(p.dp - (exp(-nll_b) - exp(-nll_a))) < 2e-4 && p.same_top == (argmax(a, V) == argmax(b, V)));
    }
    assert_true(fabs(ppl_row_compare(row, a, V, 0).kl) < 1e-4);
}

/* What no model may bring down: equal logits, a range beyond 16 nats, logits that are no numbers. */
static void test_rows_that_hurt(void **state)
{
    (void)state;
    enum { V = 8 };
    uint16_t row[V + PPL_ROW_HEAD];
    const float flat[V] = { 3, 3, 3, 3, 3, 3, 3, 3 }, wide[V] = { 0, 1e30F, -1e30F, -INFINITY }, bad[V] = { 0, NAN }, high[V] = { INFINITY, 1 };
    assert_true(fabs(ppl_row_write(row, flat, V, 1) - log(8)) < 1e-6 && ppl_row_is_good(row));
    assert_true(fabs(ppl_row_compare(row, flat, V, 1).kl) < 1e-6);
    assert_true(ppl_row_write(row, wide, V, 1) == 0);
    assert_true(ppl_row_compare(row, wide, V, 1).same_top);
    assert_false(isfinite(ppl_row_write(row, bad, V, 0)));
    assert_false(isfinite(ppl_row_write(row, high, V, 1)));
    const float heads[][2] = { { NAN, -1 }, { -1e-4F, -1 }, { 1, -20 }, { 1e-4F, 0 }, { 1e-4F, NAN }, { 0, -1000 }, { INFINITY, -INFINITY } };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        memcpy(row, heads[i], sizeof heads[i]);
        assert_false(ppl_row_is_good(row));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_stats), cmocka_unit_test(test_rows), cmocka_unit_test(test_rows_that_hurt) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
