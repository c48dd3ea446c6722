/* Q4_K x A16 and A8. */
#include "simd/avx2/matmul_a8_avx2.h"

QN_INLINE const void *lines(const uint8_t *panel, int64_t b)
{
    return ((const qn_panel_q4_k *)panel)[b / 8].q[b % 8];
}

QN_INLINE __m256i pair(const void *lines_of, int32_t h, int32_t p)
{
    return qn_nibble_pair(qn_line_half((const uint32_t *)lines_of + p / 4 * QN_PANEL, h), p % 4);
}

QN_INLINE __m256 scale(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q4_k *p = (const qn_panel_q4_k *)panel + b / 8;
    (void)half;
    return _mm256_mul_ps(qn_load8_f16(p->d + 8 * h), qn_load8_u8(p->sc[b % 8] + 8 * h));
}

QN_INLINE __m256 min(const uint8_t *panel, int64_t b, int32_t h, int32_t half)
{
    const qn_panel_q4_k *p = (const qn_panel_q4_k *)panel + b / 8;
    const __m256 m = _mm256_mul_ps(qn_load8_f16(p->dmin + 8 * h), qn_load8_u8(p->mn[b % 8] + 8 * h));
    (void)half;
    return _mm256_xor_ps(m, _mm256_set1_ps(-0.0f));
}

static const a16_format format = { lines, pair, scale, min, 0, 1, sizeof(qn_panel_q4_k) / 8, 32 };
static const a8_format format8 = { &format, qn_nibble_bytes, 0, 15 };

void qn_matmul_q4_k_avx2(const qn_matmul_args *a)
{
    qn_matmul_a16_avx2(a, &format);
}

void qn_matmul8_q4_k_avx2(const qn_matmul_args *a)
{
    qn_matmul_a8_avx2(a, &format8);
}
