/* Q3_K x A16 and A8. */
#include "simd/avxvnni/avxvnni.h"

void qn_matmul_q3_k_avxvnni(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &qn_q3_k_avx2, qn_dot_avxvnni);
}

void qn_matmul8_q3_k_avxvnni(const qn_matmul_args *a)
{
    qn_matmul_a8_avxvnni(a, &qn_q3_k_a8_avx2);
}
