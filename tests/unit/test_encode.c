/* Encoding weights: how near they come back, that the numbers found are kept, and that nothing that comes in makes a NaN. */
#include "quant/quant.h"

#include "simd/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_WEIGHTS = 256 * 37 };

/* Relative error of normal weights that a format has to keep to: its own figure and a hundredth. */
static const struct limit {
    const char *name;
    double rms;
} limits[] = {
    { "F32", 0 }, { "F16", 2.2e-4 }, { "BF16", 1.7e-3 }, { "Q8_0", 0.0056 }, { "Q4_0", 0.088 }, { "Q4_1", 0.080 }, { "Q5_0", 0.045 },
    { "Q5_1", 0.039 }, { "Q2_K", 0.30 }, { "Q3_K", 0.160 }, { "Q4_K", 0.080 }, { "Q5_K", 0.039 }, { "Q6_K", 0.019 }, { "IQ4_NL", 0.080 },
    { "IQ4_XS", 0.080 }, { "MXFP4", 0.115 },
};

static uint64_t random_next(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 0x2545F4914F6CDD1Dull;
}

static double random_normal(uint64_t *s)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += (double)(random_next(s) >> 11) * 0x1p-53;
    return sum;
}

/* Weights as a model has them: rows of differing size, a few far out. */
static void fill(float *w, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++) {
        const double x = random_normal(&seed) * (i / 256 % 5 + 1) * 0.01;
        w[i] = (float)(random_next(&seed) % 400 == 0 ? 4 * x : x);
    }
}

static double relative_rms(const float *w, const float *importance, const float *back, int n)
{
    double error = 0, all = 0;
    for (int i = 0; i < n; i++) {
        const double e = (double)w[i] - (double)back[i], weight = importance ? (double)importance[i] : 1;
        error += weight * e * e;
        all += weight * (double)w[i] * (double)w[i];
    }
    return sqrt(error / all);
}

typedef struct room {
    float *w, *importance, *back;
    uint8_t *blocks;
} room;

static room room_new(void)
{
    const size_t n = N_WEIGHTS * sizeof(float);
    room r = { malloc(n), malloc(n), malloc(n), malloc(n) };
    assert_true(r.w && r.importance && r.back && r.blocks);
    return r;
}

static void room_free(room *r)
{
    free(r->w);
    free(r->importance);
    free(r->back);
    free(r->blocks);
}

static void test_error(void **state)
{
    (void)state;
    room r = room_new();
    fill(r.w, N_WEIGHTS, 7);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const qn_fmt *f = qn_fmt_by_name(limits[i].name);
        f->encode(r.w, NULL, N_WEIGHTS / f->block, r.blocks);
        f->decode(r.blocks, N_WEIGHTS / f->block, r.back);
        const double rms = relative_rms(r.w, NULL, r.back, N_WEIGHTS);
        if (rms > limits[i].rms) fail_msg("%s: relative error %.5f, at most %.5f", f->name, rms, limits[i].rms);
    }
    room_free(&r);
}

/* What counts more comes back nearer. */
static void test_importance(void **state)
{
    (void)state;
    room r = room_new();
    uint64_t seed = 3;
    fill(r.w, N_WEIGHTS, 5);
    for (int i = 0; i < N_WEIGHTS; i++) r.importance[i] = (float)exp(2 * random_normal(&seed));
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const qn_fmt *f = qn_fmt_by_name(limits[i].name);
        f->encode(r.w, NULL, N_WEIGHTS / f->block, r.blocks);
        f->decode(r.blocks, N_WEIGHTS / f->block, r.back);
        const double plain = relative_rms(r.w, r.importance, r.back, N_WEIGHTS);
        f->encode(r.w, r.importance, N_WEIGHTS / f->block, r.blocks);
        f->decode(r.blocks, N_WEIGHTS / f->block, r.back);
        const double weighted = relative_rms(r.w, r.importance, r.back, N_WEIGHTS);
        const bool searched = f->block > 1 && strcmp(f->name, "Q8_0");
        if (weighted > plain * (searched ? 0.99 : 1)) fail_msg("%s: error %.5f with importance, %.5f without", f->name, weighted, plain);
    }
    room_free(&r);
}

/* Blocks of levels alone: those weights exist in the format, so they are found again. */
static void test_on_grid(void **state)
{
    (void)state;
    room r = room_new();
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const qn_fmt *f = qn_fmt_by_name(limits[i].name);
        fill(r.w, N_WEIGHTS, 11);
        f->encode(r.w, NULL, N_WEIGHTS / f->block, r.blocks);
        f->decode(r.blocks, N_WEIGHTS / f->block, r.w);
        f->encode(r.w, NULL, N_WEIGHTS / f->block, r.blocks);
        f->decode(r.blocks, N_WEIGHTS / f->block, r.back);
        const double rms = relative_rms(r.w, NULL, r.back, N_WEIGHTS);
        if (rms > limits[i].rms * 0.35 && strcmp(f->name, "F32")) fail_msg("%s: %.5f from weights that it can hold", f->name, rms);
    }
    room_free(&r);
}

/* Anything: NaN, infinity, the largest and smallest floats, all bits. The blocks decode to finite values. */
static void test_finite(void **state)
{
    (void)state;
    static const float odd[] = { NAN, INFINITY, -INFINITY, 0x1.fffffep127f, -0x1p-149f, 0x1p-126f, 1e30f, -65520, 65504, -0.0f, 1e-8f, 0 };
    enum { N_ODD = sizeof odd / sizeof *odd };
    room r = room_new();
    for (int32_t i = 0; i < qn_fmt_count(); i++) {
        const qn_fmt *f = qn_fmt_at(i);
        if (!f->encode) continue;
        uint64_t seed = 1;
        for (int round = 0; round < 3 * N_ODD + 3; round++) {
            for (int k = 0; k < N_WEIGHTS; k++) {
                const uint32_t bits = (uint32_t)random_next(&seed);
                memcpy(&r.w[k], &bits, 4);
                memcpy(&r.importance[k], &bits, 4);
                r.importance[k] *= k % 3 ? 1 : odd[k % N_ODD];
                if (round < N_ODD) r.w[k] = odd[round];
                else if (round < 2 * N_ODD) r.w[k] = k % 32 == 5 ? odd[round - N_ODD] : 0.5f;
                else if (round < 3 * N_ODD) r.w[k] = k % 256 < 100 ? odd[round - 2 * N_ODD] : r.w[k];
            }
            f->encode(r.w, round % 2 ? r.importance : NULL, N_WEIGHTS / f->block, r.blocks);
            f->decode(r.blocks, N_WEIGHTS / f->block, r.back);
            for (int k = 0; k < N_WEIGHTS; k++)
                if (!isfinite(r.back[k])) fail_msg("%s: round %d, weight %d of %a is %a", f->name, round, k, (double)r.w[k], (double)r.back[k]);
        }
    }
    room_free(&r);
}

/* A block is the same whatever its neighbours are, and however many. */
static void test_alone(void **state)
{
    (void)state;
    room r = room_new();
    uint8_t one[256];
    fill(r.w, N_WEIGHTS, 13);
    for (int32_t i = 0; i < qn_fmt_count(); i++) {
        const qn_fmt *f = qn_fmt_at(i);
        if (!f->encode) continue;
        f->encode(r.w, NULL, 37, r.blocks);
        for (int k = 0; k < 37; k++) {
            f->encode(r.w + k * f->block, NULL, 1, one);
            assert_memory_equal(one, r.blocks + k * f->bytes, (size_t)f->bytes);
        }
    }
    room_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error), cmocka_unit_test(test_importance), cmocka_unit_test(test_on_grid),
        cmocka_unit_test(test_finite), cmocka_unit_test(test_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
