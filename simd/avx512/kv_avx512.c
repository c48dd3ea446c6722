/* Blocks of the KV cache as float32: a line of 16 positions, or 16 columns, is one register. AVX2 makes them. */
#include "simd/avx512/avx512.h"

enum { GROUP = QN_ACT_BLOCK };

static void bf16_load(const void *block, int32_t dim, float *out)
{
    const uint16_t *h = block;
    for (int32_t i = 0; i < dim * QN_KV_BLOCK; i += 16) {
        const __m512i u = _mm512_cvtepu16_epi32(_mm256_load_si256((const __m256i *)(h + i)));
        _mm512_store_ps(out + i, _mm512_castsi512_ps(_mm512_slli_epi32(u, 16)));
    }
}

QN_INLINE int32_t n_scales(int32_t dim)
{
    return (dim + GROUP - 1) / GROUP * QN_KV_BLOCK;
}

QN_INLINE const uint8_t *codes_behind(const uint16_t *scale, int32_t dim)
{
    return (const uint8_t *)(scale + n_scales(dim));
}

/* All scales as floats: broadcasts from memory cost nothing. @param out [n_groups][16] */
QN_INLINE void widen_scales(const uint16_t *scale, int32_t dim, float *out)
{
    for (int32_t i = 0; i < n_scales(dim); i += 16) _mm512_storeu_ps(out + i, qn_load16_f16(scale + i));
}

static void q8_0_load_k(const void *block, int32_t dim, float *out)
{
    const uint16_t *scale = block;
    const uint8_t *q = codes_behind(scale, dim);
    for (int32_t from = 0; from < dim; from += GROUP, scale += QN_KV_BLOCK) {
        const __m512 s = qn_load16_f16(scale);
        for (int32_t d = from; d < dim && d < from + GROUP; d++, q += QN_KV_BLOCK, out += QN_KV_BLOCK)
            _mm512_store_ps(out, _mm512_mul_ps(s, qn_load16_i8((const int8_t *)q)));
    }
}

/* 16 columns from d, of which dim - d are there. */
QN_INLINE __m512 q8_0_columns(const uint8_t *q, int32_t left)
{
    if (left >= 16) return qn_load16_i8((const int8_t *)q);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)q)));
}

static void q8_0_load_v(const void *block, int32_t dim, float *out)
{
    float scale[QN_KV_MAX_DIM / GROUP * QN_KV_BLOCK];
    const uint8_t *q = codes_behind(block, dim);
    widen_scales(block, dim, scale);
    for (int32_t slot = 0; slot < QN_KV_BLOCK; slot++, q += dim, out += dim)
        for (int32_t d = 0; d < dim; d += 16)
            qn_store16(out + d, dim - d, _mm512_mul_ps(_mm512_set1_ps(scale[d / GROUP * QN_KV_BLOCK + slot]), q8_0_columns(q + d, dim - d)));
}

/* 16 codes of 4 bits as numbers around 0. */
QN_INLINE __m512 centre16(__m512i q)
{
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_and_si512(q, _mm512_set1_epi32(15)), _mm512_set1_epi32(8)));
}

static void q4_0_load_k(const void *block, int32_t dim, float *out)
{
    const uint16_t *scale = block;
    const uint8_t *q = codes_behind(scale, dim);
    for (int32_t from = 0; from < dim; from += GROUP, scale += QN_KV_BLOCK) {
        const __m512 s = qn_load16_f16(scale);
        for (int32_t d = from; d < dim && d < from + GROUP; d += 2, q += QN_KV_BLOCK, out += 2 * QN_KV_BLOCK) {
            const __m512i pairs = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i *)q));
            _mm512_store_ps(out, _mm512_mul_ps(s, centre16(pairs)));
            _mm512_store_ps(out + QN_KV_BLOCK, _mm512_mul_ps(s, centre16(_mm512_srli_epi32(pairs, 4))));
        }
    }
}

/* 16 columns, of which `left` are there, 8 at least. */
QN_INLINE __m512 q4_0_columns(const uint8_t *q, int32_t left)
{
    const __m512i word = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m512i nibble = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    uint64_t sixteen = 0;
    if (left >= 16) __builtin_memcpy(&sixteen, q, 8);
    else __builtin_memcpy(&sixteen, q, 4);
    const __m512i words = _mm512_permutexvar_epi32(word, _mm512_castsi128_si512(_mm_cvtsi64_si128((int64_t)sixteen)));
    return centre16(_mm512_srlv_epi32(words, nibble));
}

static void q4_0_load_v(const void *block, int32_t dim, float *out)
{
    float scale[QN_KV_MAX_DIM / GROUP * QN_KV_BLOCK];
    const uint8_t *q = codes_behind(block, dim);
    widen_scales(block, dim, scale);
    for (int32_t slot = 0; slot < QN_KV_BLOCK; slot++, q += dim / 2, out += dim)
        for (int32_t d = 0; d < dim; d += 16)
            qn_store16(out + d, dim - d, _mm512_mul_ps(_mm512_set1_ps(scale[d / GROUP * QN_KV_BLOCK + slot]), q4_0_columns(q + d / 2, dim - d)));
}

void qn_rows_init_kv_avx512(qn_kernels *k)
{
    qn_kernels_kv_set(k, "BF16", NULL, bf16_load, bf16_load);
    qn_kernels_kv_set(k, "Q8_0", NULL, q8_0_load_k, q8_0_load_v);
    qn_kernels_kv_set(k, "Q4_0", NULL, q4_0_load_k, q4_0_load_v);
}
