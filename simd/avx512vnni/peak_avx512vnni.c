/* What the level multiplies at most. */
#include "simd/avx512vnni/avx512vnni.h"

int64_t qn_peak_avx512vnni(int64_t rounds)
{
    return qn_peak_a16_avx512(rounds, qn_dot_avx512vnni);
}
