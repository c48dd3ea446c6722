/* GPTQ on one matrix: without correlations it is the format's own encoder; with them, the error of the results falls, for every format with a
 * grid and in both orders, and falls again when codes are looked at once more; rows do not know of each other. */
#include "quant/gptq.h"
#include "src/base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 512, ROWS = 21, SAMPLES = 1024, MOST_BYTES = 4 * N };

#define DAMPING 0.01

static float weight[ROWS][N], carry[N][N], importance[N];
static double gram[N][N];
static float damped[N][N];
static int32_t order[N];
static uint8_t out[ROWS][MOST_BYTES];

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    const double u = uniform(state), v = uniform(state);
    return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

/* Inputs that share some directions, as those of networks do: x = noise + (loadings of 24 common factors), columns of different sizes. */
static void make_inputs(uint64_t *state)
{
    enum { FACTORS = 24 };
    static float loading[FACTORS][N], size[N], x[N];
    for (int i = 0; i < N; i++) size[i] = (float)exp(0.8 * normal(state));
    for (int f = 0; f < FACTORS; f++)
        for (int i = 0; i < N; i++) loading[f][i] = (float)normal(state) * 0.5f;
    memset(gram, 0, sizeof gram);
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < N; i++) x[i] = (float)normal(state);
        for (int f = 0; f < FACTORS; f++) {
            const float z = (float)normal(state);
            for (int i = 0; i < N; i++) x[i] += z * loading[f][i];
        }
        for (int i = 0; i < N; i++) x[i] *= size[i];
        for (int i = 0; i < N; i++)
            for (int j = i; j < N; j++) gram[i][j] += (double)x[i] * (double)x[j] / SAMPLES;
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++) gram[i][j] = gram[j][i];
}

/* U, upper, with gram^-1 = U^T U in the given order: from gram = V V^T with V upper (rows eliminated from the last), U = V^-1. */
static void make_carry(bool ordered)
{
    static double v[N][N], u[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) v[i][j] = gram[ordered ? order[i] : i][ordered ? order[j] : j] + (i == j ? DAMPING : 0);
    for (int k = N - 1; k >= 0; k--) {
        v[k][k] = sqrt(v[k][k]);
        for (int i = 0; i < k; i++) v[i][k] /= v[k][k];
        for (int i = 0; i < k; i++)
            for (int j = 0; j < k; j++) v[i][j] -= v[i][k] * v[j][k];
    }
    memset(u, 0, sizeof u);
    for (int j = 0; j < N; j++)
        for (int i = j; i >= 0; i--) {
            double sum = i == j;
            for (int k = i + 1; k <= j; k++) sum -= v[i][k] * u[k][j];
            u[i][j] = sum / v[i][i];
        }
    for (int p = 0; p < N; p++)
        for (int o = 0; o < p; o++) carry[p][o] = (float)(u[o][p] / u[o][o]);
    for (int i = 0; i < N; i++) importance[ordered ? order[i] : i] = (float)(1 / (u[i][i] * u[i][i]));
}

static int by_size(const void *a, const void *b)
{
    const double x = gram[*(const int32_t *)a][*(const int32_t *)a], y = gram[*(const int32_t *)b][*(const int32_t *)b];
    return (x < y) - (x > y);
}

/* Sum over rows of (w - q) H (w - q)^T. */
static double results_error(const qn_fmt *fmt)
{
    double sum = 0;
    for (int r = 0; r < ROWS; r++) {
        float q[N];
        double e[N];
        fmt->decode(out[r], N / fmt->block, q);
        for (int i = 0; i < N; i++) e[i] = (double)weight[r][i] - (double)q[i];
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) sum += e[i] * gram[i][j] * e[j];
    }
    return sum;
}

static void quantize(const qn_fmt *fmt, const int32_t *columns, bool twice, int at_once)
{
    const qn_gptq_matrix m = { fmt, N, carry[0], importance, twice ? damped[0] : NULL, columns };
    float *memory = qn_new(qn_gptq_floats(&m), sizeof *memory);
    assert_non_null(memory);
    for (int r = 0; r < ROWS; r += at_once)
        qn_gptq_rows(&m, weight[r], ROWS - r < at_once ? ROWS - r : at_once, memory, out[r], MOST_BYTES);
    free(memory);
}

static int set_up(void **state)
{
    (void)state;
    uint64_t s = 12345;
    make_inputs(&s);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < N; i++) weight[r][i] = (float)normal(&s) * 0.05f;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) damped[i][j] = (float)(gram[i][j] + (i == j ? DAMPING : 0));
    for (int i = 0; i < N; i++) order[i] = i;
    qsort(order, N, sizeof *order, by_size);
    return 0;
}

/* Squared errors in the encoder's own measure. */
static double weighted_error(const qn_fmt *fmt, const uint8_t *bytes, int r)
{
    float q[N];
    double sum = 0;
    fmt->decode(bytes, N / fmt->block, q);
    for (int i = 0; i < N; i++) sum += (double)importance[i] * pow((double)weight[r][i] - (double)q[i], 2);
    return sum;
}

static void without_correlations(void **state)
{
    (void)state;
    static uint8_t want[MOST_BYTES];
    static int32_t as_they_lie[N];
    for (int i = 0; i < N; i++) as_they_lie[i] = i;
    make_carry(false);
    memset(carry, 0, sizeof carry);
    for (int32_t k = 0; k < qn_fmt_count(); k++) {
        const qn_fmt *fmt = qn_fmt_at(k);
        if (!fmt->pack) continue;
        for (int in_place = 0; in_place < 2; in_place++) {
            quantize(fmt, in_place ? NULL : as_they_lie, false, QN_GPTQ_ROWS);
            for (int r = 0; r < ROWS; r++) {
                fmt->encode(weight[r], importance, N / fmt->block, want);
                const double encoder = weighted_error(fmt, want, r), got = weighted_error(fmt, out[r], r);
                /* in place, room for the scales of sub-blocks is left that is not needed here */
                if (!(got < encoder * (in_place ? 1.15 : 1.0001))) fail_msg("%s: row %d, an error of %g; the encoder's is %g", fmt->name, r, got, encoder);
            }
        }
    }
}

static void errors_fall(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        make_carry(ordered);
        for (int32_t k = 0; k < qn_fmt_count(); k++) {
            const qn_fmt *fmt = qn_fmt_at(k);
            if (!fmt->pack) continue;
            for (int r = 0; r < ROWS; r++) fmt->encode(weight[r], importance, N / fmt->block, out[r]);
            const double plain = results_error(fmt);
            quantize(fmt, ordered ? order : NULL, false, QN_GPTQ_ROWS);
            const double once = results_error(fmt);
            quantize(fmt, ordered ? order : NULL, true, QN_GPTQ_ROWS);
            const double twice = results_error(fmt);
            if (!(once < 0.4 * plain)) fail_msg("%s: %g, and %g without GPTQ", fmt->name, once, plain);
            if (!(twice < once * 1.001)) fail_msg("%s: %g, and %g before codes were looked at once more", fmt->name, twice, once);
        }
    }
}

static void rows_alone(void **state)
{
    (void)state;
    static uint8_t together[ROWS][MOST_BYTES];
    make_carry(false);
    for (int32_t k = 0; k < qn_fmt_count(); k++) {
        const qn_fmt *fmt = qn_fmt_at(k);
        if (!fmt->pack) continue;
        memset(out, 0, sizeof out);
        quantize(fmt, NULL, true, QN_GPTQ_ROWS);
        memcpy(together, out, sizeof out);
        memset(out, 0, sizeof out);
        quantize(fmt, NULL, true, 1);
        assert_memory_equal(out, together, sizeof out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_correlations),
        cmocka_unit_test(errors_fall),
        cmocka_unit_test(rows_alone),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
