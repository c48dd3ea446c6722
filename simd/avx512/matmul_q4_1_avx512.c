/* Q4_1 x A16. */
#include "simd/avx512/matmul_a16_avx512.h"

void qn_matmul_q4_1_avx512(const qn_matmul_args *a)
{
    qn_matmul_a16_avx512(a, &qn_q4_1_avx512, qn_dot_avx512);
}
