/* What the level multiplies at most. */
#include "simd/avx2/matmul_a16_avx2.h"

int64_t qn_peak_avx2(int64_t rounds)
{
    return qn_peak_a16_avx2(rounds, qn_dot_avx2);
}
