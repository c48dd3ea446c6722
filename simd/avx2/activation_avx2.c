/* Activations, gated and plain, exp and the soft cap. */
#include "simd/avx2/avx2.h"

QN_INLINE __m256 negate(__m256 x)
{
    return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
}

QN_INLINE __m256 silu(__m256 x)
{
    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), qn_exp_avx2(negate(x))));
}

QN_INLINE __m256 gelu(__m256 x)
{
    const __m256 cx2 = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.044715f), x), x), inner = _mm256_fmadd_ps(cx2, x, x);
    const __m256 e = qn_exp_avx2(_mm256_mul_ps(_mm256_set1_ps(-1.5957691216f), inner));
    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

void qn_silu_array_avx2(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 8) qn_store8(out + i, n - i, silu(qn_load8(x + i, n - i)));
}

void qn_gelu_array_avx2(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 8) qn_store8(out + i, n - i, gelu(qn_load8(x + i, n - i)));
}

void qn_exp_array_avx2(const float *x, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 8) qn_store8(out + i, n - i, qn_exp_avx2(qn_load8(x + i, n - i)));
}

void qn_softcap_avx2(const float *x, float cap, int64_t n, float *out)
{
    const __m256 c = _mm256_set1_ps(cap);
    for (int64_t i = 0; i < n; i += 8)
        qn_store8(out + i, n - i, _mm256_mul_ps(c, qn_tanh_avx2(_mm256_div_ps(qn_load8(x + i, n - i), c))));
}

void qn_swiglu_avx2(const float *gate, const float *up, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 8)
        qn_store8(out + i, n - i, _mm256_mul_ps(silu(qn_load8(gate + i, n - i)), qn_load8(up + i, n - i)));
}

void qn_geglu_avx2(const float *gate, const float *up, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i += 8)
        qn_store8(out + i, n - i, _mm256_mul_ps(gelu(qn_load8(gate + i, n - i)), qn_load8(up + i, n - i)));
}
