/* Slopes of linear position biases against those of the paper (Press et al. 2022) and of its authors' code. */
#include "src/ops/alibi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void check(float max_bias, int32_t n_head, const double *log2_slope)
{
    for (int32_t h = 0; h < n_head; h++) {
        const float got = qn_alibi_slope(max_bias, n_head, h), want = (float)exp2(log2_slope[h]);
        if (!(fabsf(got - want) <= want * 0x1p-23f)) fail_msg("%d heads, head %d: %.9g, not %.9g", n_head, h, (double)got, (double)want);
    }
}

static void powers_of_two(void **state)
{
    (void)state;
    check(8, 8, (double[]){ -1, -2, -3, -4, -5, -6, -7, -8 });
    check(8, 16, (double[]){ -0.5, -1, -1.5, -2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -6.5, -7, -7.5, -8 });
    check(8, 1, (double[]){ -8 });
    check(5.5f, 2, (double[]){ -2.75, -5.5 });
}

/* Behind the slopes of the power of two below come the 1st, 3rd, ... of twice as many. */
static void other_numbers(void **state)
{
    (void)state;
    check(8, 12, (double[]){ -1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5 });
    check(8, 6, (double[]){ -2, -4, -6, -8, -1, -3 });
    check(8, 3, (double[]){ -4, -8, -2 });
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(powers_of_two), cmocka_unit_test(other_numbers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
