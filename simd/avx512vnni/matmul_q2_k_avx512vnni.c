/* Q2_K x A16 and A8. */
#include "simd/avx512vnni/digits_avx512vnni.h"

void qn_matmul_q2_k_avx512vnni(const qn_matmul_args *a)
{
    qn_matmul_digits_avx512vnni(a, &qn_q2_k_a8_avx512);
}

void qn_matmul8_q2_k_avx512vnni(const qn_matmul_args *a)
{
    qn_matmul_a8_avx512vnni(a, &qn_q2_k_a8_avx512);
}
