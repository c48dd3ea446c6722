/* The AVX-VNNI kernels with the same products of AVX-512, on machines without AVX-VNNI too: the same bits as scalar. */
#include "matmul_check.h"

#if defined(QUERN_AVXVNNI_EMULATED)

void qn_init_avxvnni(qn_kernels *k);

static qn_kernels scalar, avxvnni;

static int open_levels(void **state)
{
    (void)state;
    assert_int_equal(qn_kernels_init(&scalar, "scalar", true, NULL), QN_OK);
    assert_int_equal(qn_kernels_init(&avxvnni, "avx2", true, NULL), QN_OK);
    qn_init_avxvnni(&avxvnni);
    avxvnni.level = "avxvnni, emulated";
    return 0;
}

/* Every quantised format that has kernels at the level below has them here. */
static void check_formats(void)
{
    int32_t n = 0;
    for (int32_t f = 0; f < qn_fmt_count(); f++) {
        const qn_fmt *fmt = qn_fmt_at(f);
        if (avxvnni.matmul[fmt->id].act != QN_ACT_A16) continue;
        assert_string_equal(avxvnni.matmul[fmt->id].isa, "avxvnni");
        check_format(&scalar, &avxvnni, fmt);
        n++;
    }
    assert_true(n >= 13);
}

static void test_matmul(void **state)
{
    (void)state;
    check_formats();
}

static void test_matmul8(void **state)
{
    (void)state;
    scalar.a8 = avxvnni.a8 = true;
    check_formats();
    scalar.a8 = avxvnni.a8 = false;
}

static void test_peak(void **state)
{
    (void)state;
    assert_true(avxvnni.peak(3) >= 3 * 16);
}

int main(void)
{
    const uint32_t needs = QN_CPU_AVX2 | QN_CPU_FMA | QN_CPU_F16C | QN_CPU_AVX512 | QN_CPU_VNNI;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_matmul8),
        cmocka_unit_test(test_peak),
    };
    if (needs & ~qn_cpu_flags()) {
        print_message("skipped: this CPU has no AVX-512 with VNNI\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, open_levels, NULL);
}

#else

int main(void)
{
    print_message("skipped: this build has no AVX-VNNI level\n");
    return 77;
}

#endif
