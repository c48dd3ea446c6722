/* IQ4_NL x A16. */
#include "simd/avx512/matmul_a16_avx512.h"

void qn_matmul_iq4_nl_avx512(const qn_matmul_args *a)
{
    qn_matmul_a16_avx512(a, &qn_iq4_nl_avx512, qn_dot_avx512);
}
