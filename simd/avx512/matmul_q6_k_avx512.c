/* Q6_K x A16 and A8. */
#include "simd/avx512/level_avx512.h"

void qn_matmul_q6_k_avx512(const qn_matmul_args *a)
{
    qn_matmul_a16_avx512(a, &qn_q6_k_avx512, qn_dot_avx512);
}

void qn_matmul8_q6_k_avx512(const qn_matmul_args *a)
{
    qn_matmul8_avx512(a, &qn_q6_k_a8_avx512);
}
