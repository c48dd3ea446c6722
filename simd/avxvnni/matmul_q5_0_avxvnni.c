/* Q5_0 x A16 and A8. */
#include "simd/avxvnni/avxvnni.h"

void qn_matmul_q5_0_avxvnni(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &qn_q5_0_avx2, qn_dot_avxvnni);
}

void qn_matmul8_q5_0_avxvnni(const qn_matmul_args *a)
{
    qn_matmul_a8_avxvnni(a, &qn_q5_0_a8_avx2);
}
