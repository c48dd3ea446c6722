/* IQ4_XS x A16 and A8. */
#include "simd/avx512vnni/avx512vnni.h"

void qn_matmul_iq4_xs_avx512vnni(const qn_matmul_args *a)
{
    qn_matmul_a16_avx512(a, &qn_iq4_xs_avx512, qn_dot_avx512vnni);
}

void qn_matmul8_iq4_xs_avx512vnni(const qn_matmul_args *a)
{
    qn_matmul_a8_avx512vnni(a, &qn_iq4_xs_a8_avx512);
}
