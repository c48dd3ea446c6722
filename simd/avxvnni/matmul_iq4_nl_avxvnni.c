/* IQ4_NL x A16 and A8. */
#include "simd/avxvnni/avxvnni.h"

void qn_matmul_iq4_nl_avxvnni(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &qn_iq4_nl_avx2, qn_dot_avxvnni);
}

void qn_matmul8_iq4_nl_avxvnni(const qn_matmul_args *a)
{
    qn_matmul_a8_avxvnni(a, &qn_iq4_nl_a8_avx2);
}
