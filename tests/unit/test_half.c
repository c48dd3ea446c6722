/* Half floats, exhaustively: every half widens to its value, every float beside one or between two of them narrows to the
 * nearest, even on a tie. The reference is arithmetic in double; where the CPU has F16C its answers are compared too, NaN
 * payloads included. */
#include "src/base/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_F16C_TEST 1
__attribute__((target("f16c"))) static float hw_widen(uint16_t h)
{
    return _cvtsh_ss(h);
}
__attribute__((target("f16c"))) static uint16_t hw_narrow(float x)
{
    return (uint16_t)_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}
static int hw_has_f16c(void)
{
    __builtin_cpu_init();
    unsigned a, b, c, d; /* leaf 1, ecx: bit 29 F16C, bit 27 OSXSAVE */
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
    return __builtin_cpu_supports("avx") && (c >> 29 & 1) && (c >> 27 & 1);
}
#else
#define HAVE_F16C_TEST 0
#endif

enum { N_FINITE = 0x7c00 }; /* positive halves below infinity are 0 .. 0x7bff, in ascending order of value */

/* The value of a finite positive half; what would come after the largest, 65536, for 0x7c00. */
static double value(unsigned h)
{
    const int e = (int)(h >> 10), m = (int)(h & 0x3ff);
    return e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
}

/* The half nearest to x >= 0, even on a tie, by bisection over all of them. */
static unsigned nearest(double x)
{
    unsigned lo = 0, hi = N_FINITE; /* value(lo) <= x < value(hi) */
    if (x >= value(N_FINITE)) return N_FINITE;
    while (hi - lo > 1) {
        const unsigned mid = (lo + hi) / 2;
        if (value(mid) <= x)
            lo = mid;
        else
            hi = mid;
    }
    const double below = x - value(lo), above = value(hi) - x;
    return below < above || (below == above && lo % 2 == 0) ? lo : hi;
}

static void check_narrow(float x)
{
    const unsigned want = nearest((double)x);
    if (qn_f16_from_f32(x) != want) fail_msg("%a narrows to %04x, should be %04x", (double)x, qn_f16_from_f32(x), want);
    if (qn_f16_from_f32(-x) != (want | 0x8000)) fail_msg("%a narrows to %04x", (double)-x, qn_f16_from_f32(-x));
}

static void test_widen(void **state)
{
    (void)state;
    for (unsigned h = 0; h < N_FINITE; h++) {
        const float p = qn_f32_from_f16((uint16_t)h), n = qn_f32_from_f16((uint16_t)(h | 0x8000));
        assert_true((double)p == value(h) && (double)n == -value(h));
        assert_true(!signbit(p) && signbit(n));
    }
    assert_true(qn_f32_from_f16(0x7c00) == INFINITY && qn_f32_from_f16(0xfc00) == -INFINITY);
    for (unsigned h = 0x7c01; h < 0x8000; h++) {
        assert_true(isnan(qn_f32_from_f16((uint16_t)h)) && isnan(qn_f32_from_f16((uint16_t)(h | 0x8000))));
        assert_true(qn_f32_bits(qn_f32_from_f16((uint16_t)h)) & 0x400000); /* quiet */
    }
}

static void test_narrow(void **state)
{
    (void)state;
    for (unsigned h = 0; h < N_FINITE; h++) {
        const float x = (float)value(h), mid = (float)((value(h) + value(h + 1)) / 2); /* exact: 12 bits */
        check_narrow(x);
        check_narrow(nextafterf(x, INFINITY));
        if (h) check_narrow(nextafterf(x, 0));
        check_narrow(mid);
        check_narrow(nextafterf(mid, INFINITY));
        check_narrow(nextafterf(mid, 0));
        assert_int_equal(qn_f16_from_f32(x), h);
    }
}

static void test_narrow_ends(void **state)
{
    (void)state;
    assert_int_equal(qn_f16_from_f32(65519.996f), 0x7bff);
    assert_int_equal(qn_f16_from_f32(65520), 0x7c00);
    assert_int_equal(qn_f16_from_f32(3.4e38f), 0x7c00);
    assert_int_equal(qn_f16_from_f32(INFINITY), 0x7c00);
    assert_int_equal(qn_f16_from_f32(-INFINITY), 0xfc00);
    assert_int_equal(qn_f16_from_f32(0x1p-25f), 0); /* a tie with zero, which is even */
    assert_int_equal(qn_f16_from_f32(0x1.000002p-25f), 1);
    assert_int_equal(qn_f16_from_f32(0x1p-149f), 0);
    assert_int_equal(qn_f16_from_f32(-0x1p-149f), 0x8000);
    for (uint32_t u = 0x7f800001; u < 0x80000000; u += 4097) { /* NaN stays NaN, quiet, with its sign */
        assert_int_equal(qn_f16_from_f32(qn_f32_from_bits(u)) & 0xfe00, 0x7e00);
        assert_int_equal(qn_f16_from_f32(qn_f32_from_bits(u | 0x80000000)) & 0xfe00, 0xfe00);
    }
}

/* A prime stride through all floats: every exponent, all bits of the fraction. */
static void test_narrow_sweep(void **state)
{
    (void)state;
    for (uint32_t u = 0; u < 0x7f800000; u += 2039) check_narrow(qn_f32_from_bits(u));
}

static void test_hardware(void **state)
{
    (void)state;
#if HAVE_F16C_TEST
    if (hw_has_f16c()) {
        for (unsigned h = 0; h < 0x10000; h++)
            assert_int_equal(qn_f32_bits(qn_f32_from_f16((uint16_t)h)), qn_f32_bits(hw_widen((uint16_t)h)));
        for (uint64_t u = 0; u < 0x100000000; u += 1021)
            if (qn_f16_from_f32(qn_f32_from_bits((uint32_t)u)) != hw_narrow(qn_f32_from_bits((uint32_t)u)))
                fail_msg("%08x narrows otherwise than in hardware", (unsigned)u);
        return;
    }
#endif
    print_message("no F16C here\n");
    skip();
}

static void test_bf16(void **state)
{
    (void)state;
    for (unsigned b = 0; b < 0x10000; b++) assert_int_equal(qn_f32_bits(qn_f32_from_bf16((uint16_t)b)), (uint32_t)b << 16);
    assert_true(qn_f32_from_bf16(0x3f80) == 1 && qn_f32_from_bf16(0xc000) == -2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widen),        cmocka_unit_test(test_narrow),   cmocka_unit_test(test_narrow_ends),
        cmocka_unit_test(test_narrow_sweep), cmocka_unit_test(test_hardware), cmocka_unit_test(test_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
