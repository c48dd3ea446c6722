/* Activations, gated and plain, exp and the soft cap. */
#include "simd/avx512/avx512.h"

QN_INLINE __m512 silu(__m512 x)
{
    const __m512 e = qn_exp_avx512(_mm512_xor_ps(x, _mm512_set1_ps(-0.0f)));
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

QN_INLINE __m512 gelu(__m512 x)
{
    const __m512 cx2 = _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(0.044715f), x), x), inner = _mm512_fmadd_ps(cx2, x, x);
    const __m512 e = qn_exp_avx512(_mm512_mul_ps(_mm512_set1_ps(-1.5957691216f), inner));
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

void qn_silu_array_avx512(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 16) qn_store16(out + i, n - i, silu(qn_load16(x + i, n - i)));
}

void qn_gelu_array_avx512(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 16) qn_store16(out + i, n - i, gelu(qn_load16(x + i, n - i)));
}

void qn_exp_array_avx512(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 16) qn_store16(out + i, n - i, qn_exp_avx512(qn_load16(x + i, n - i)));
}

void qn_softcap_avx512(const float *x, float cap, int64_t n, float *out)
{
    const __m512 c = _mm512_set1_ps(cap);
    for (int64_t i = 0; i < n; i += 16)
        qn_store16(out + i, n - i, _mm512_mul_ps(c, qn_tanh_avx512(_mm512_div_ps(qn_load16(x + i, n - i), c))));
}

void qn_swiglu_avx512(const float *gate, const float *up, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 16)
        qn_store16(out + i, n - i, _mm512_mul_ps(silu(qn_load16(gate + i, n - i)), qn_load16(up + i, n - i)));
}

void qn_geglu_avx512(const float *gate, const float *up, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 16)
        qn_store16(out + i, n - i, _mm512_mul_ps(gelu(qn_load16(gate + i, n - i)), qn_load16(up + i, n - i)));
}
