/* Activations as bf16 digits. A signed byte, and 256 times one, are bf16 numbers without rounding. */
#include "simd/amx/amx.h"

/* 32 small integers as bf16. */
QN_INLINE __m512i bf16_of(__m512i x)
{
    const __m512i lo = _mm512_cvtepi16_epi32(_mm512_castsi512_si256(x)), hi = _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(x, 1));
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_cvtepi32_ps(hi), _mm512_cvtepi32_ps(lo));
}

void qn_split_a16_amx(const int16_t *q, int64_t n_blocks, int8_t *planes)
{
    for (int64_t b = 0; b < n_blocks; b++) {
        const __m512i v = _mm512_loadu_si512(q + b * QN_ACT_BLOCK);
        const __m512i lo = _mm512_srai_epi16(_mm512_slli_epi16(v, 8), 8);
        _mm512_storeu_si512(planes + b * QN_SPLIT_AMX, bf16_of(_mm512_sub_epi16(v, lo)));
        _mm512_storeu_si512(planes + b * QN_SPLIT_AMX + 64, bf16_of(lo));
    }
}
