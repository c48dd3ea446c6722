/* What the level multiplies at most. */
#include "simd/avxvnni/avxvnni.h"

int64_t qn_peak_avxvnni(int64_t rounds)
{
    return qn_peak_a16_avx2(rounds, qn_dot_avxvnni);
}
