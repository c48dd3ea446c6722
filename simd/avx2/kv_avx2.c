/* The formats of the KV cache. Rows are a multiple of 8 long. */
#include "simd/avx2/avx2.h"

/* ---- F16, BF16 ---- */

static void f16_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint16_t *out = codes;
    (void)scales;
    for (int32_t d = 0; d < dim; d += 8) _mm_storeu_si128((__m128i *)(out + d), _mm256_cvtps_ph(_mm256_loadu_ps(x + d), _MM_FROUND_TO_NEAREST_INT));
}

static void f16_load(const void *block, int32_t dim, float *out)
{
    const uint16_t *h = block;
    for (int32_t i = 0; i < dim * QN_KV_BLOCK; i += 8) _mm256_store_ps(out + i, qn_load8_f16(h + i));
}

/* 8 floats to the upper halves of 8 numbers: to nearest even, or quiet. */
QN_INLINE __m256i bf16_round(__m256 x)
{
    const __m256i u = _mm256_castps_si256(x), one = _mm256_set1_epi32(1);
    const __m256i even = _mm256_and_si256(_mm256_srli_epi32(u, 16), one);
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), even);
    const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q))), 16);
}

static void bf16_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint16_t *out = codes;
    (void)scales;
    for (int32_t d = 0; d < dim; d += 8) {
        const __m256i u = bf16_round(_mm256_loadu_ps(x + d));
        _mm_storeu_si128((__m128i *)(out + d), _mm_packus_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1)));
    }
}

static void bf16_load(const void *block, int32_t dim, float *out)
{
    const uint16_t *h = block;
    for (int32_t i = 0; i < dim * QN_KV_BLOCK; i += 8) {
        const __m256i u = _mm256_cvtepu16_epi32(_mm_load_si128((const __m128i *)(h + i)));
        _mm256_store_ps(out + i, _mm256_castsi256_ps(_mm256_slli_epi32(u, 16)));
    }
}

/* ---- Q8_0, Q4_0: codes ---- */

enum { GROUP = QN_ACT_BLOCK, NOT_A_SCALE = 0x7e00 };

/* n <= 32 values, a multiple of 8, then zeros. */
QN_INLINE void load_group(const float *x, int32_t n, __m256 *out)
{
    QN_UNROLL
    for (int32_t j = 0; j < 4; j++) out[j] = 8 * j < n ? _mm256_loadu_ps(x + 8 * j) : _mm256_setzero_ps();
}

/* The largest and the smallest value, 0 at least and at most. @return false where an Inf or NaN is among them */
QN_INLINE bool extremes_of(const __m256 *x, float *lo, float *hi)
{
    const __m256 zero = _mm256_setzero_ps();
    __m256 least = zero, most = zero, sound = zero; /* x - x is 0, or NaN */
    for (int32_t j = 0; j < 4; j++) {
        least = _mm256_min_ps(x[j], least);
        most = _mm256_max_ps(x[j], most);
        sound = _mm256_add_ps(sound, _mm256_sub_ps(x[j], x[j]));
    }
    *hi = qn_max8_avx2(most);
    *lo = 0.0f - qn_max8_avx2(_mm256_sub_ps(zero, least)); /* never -0 */
    return _mm256_movemask_ps(_mm256_cmp_ps(sound, sound, _CMP_UNORD_Q)) == 0;
}

/* d as it is kept. @param inverse out: what values are multiplied by */
QN_INLINE uint16_t scale_of(float d, float *inverse)
{
    const uint16_t h = (uint16_t)_mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(d), _MM_FROUND_TO_NEAREST_INT));
    const float kept = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h)));
    *inverse = kept != 0 ? 1.0f / kept : 0;
    return (h & 0x7c00) == 0x7c00 ? NOT_A_SCALE : h;
}

/* 32 codes as bytes, in order. */
QN_INLINE __m256i codes_of(const __m256 *x, float inverse)
{
    const __m256 f = _mm256_set1_ps(inverse);
    __m256i q[4];
    QN_UNROLL
    for (int32_t j = 0; j < 4; j++) q[j] = _mm256_cvtps_epi32(_mm256_mul_ps(x[j], f));
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

static void q8_0_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint8_t *out = codes;
    for (int32_t from = 0; from < dim; from += GROUP) {
        const int32_t n = dim - from < GROUP ? dim - from : GROUP;
        __m256 v[4];
        __m256i q = _mm256_setzero_si256();
        float lo, hi, inverse;
        load_group(x + from, n, v);
        const bool sound = extremes_of(v, &lo, &hi);
        const uint16_t h = *scales++ = sound ? scale_of((-lo > hi ? -lo : hi) / QN_A8_MAX, &inverse) : NOT_A_SCALE;
        if (h != NOT_A_SCALE) q = _mm256_max_epi8(codes_of(v, inverse), _mm256_set1_epi8(-127));
        if (n == GROUP) {
            _mm256_storeu_si256((__m256i *)(out + from), q);
            continue;
        }
        uint8_t tail[GROUP];
        _mm256_storeu_si256((__m256i *)tail, q);
        for (int32_t i = 0; i < n; i++) out[from + i] = tail[i];
    }
}

static void q4_0_encode(const float *x, int32_t dim, void *codes, uint16_t *scales)
{
    uint8_t *out = codes;
    for (int32_t from = 0; from < dim; from += GROUP) {
        const int32_t n = dim - from < GROUP ? dim - from : GROUP;
        __m256 v[4];
        __m128i pairs = _mm_setzero_si128();
        float lo, hi, inverse;
        load_group(x + from, n, v);
        const bool sound = extremes_of(v, &lo, &hi);
        const uint16_t h = *scales++ = sound ? scale_of((-lo >= hi ? lo : hi) / -8.0f, &inverse) : NOT_A_SCALE;
        if (h != NOT_A_SCALE) {
            __m256i q = _mm256_min_epi8(_mm256_max_epi8(codes_of(v, inverse), _mm256_set1_epi8(-8)), _mm256_set1_epi8(7));
            q = _mm256_add_epi8(q, _mm256_set1_epi8(8));
            q = _mm256_maddubs_epi16(q, _mm256_set1_epi16(0x1001)); /* even + 16 odd */
            pairs = _mm_packus_epi16(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
        }
        if (n == GROUP) {
            _mm_storeu_si128((__m128i *)(out + from / 2), pairs);
            continue;
        }
        uint8_t tail[GROUP / 2];
        _mm_storeu_si128((__m128i *)tail, pairs);
        for (int32_t i = 0; i < n / 2; i++) out[from / 2 + i] = tail[i];
    }
}

/* ---- Q8_0, Q4_0: values ---- */

QN_INLINE int32_t n_scales(int32_t dim)
{
    return (dim + GROUP - 1) / GROUP * QN_KV_BLOCK;
}

QN_INLINE const uint8_t *codes_behind(const uint16_t *scale, int32_t dim)
{
    return (const uint8_t *)(scale + n_scales(dim));
}

QN_INLINE __m256 widen8(const uint8_t *q)
{
    return qn_load8_i8((const int8_t *)q);
}

static void q8_0_load_k(const void *block, int32_t dim, float *out)
{
    const uint16_t *scale = block;
    const uint8_t *q = codes_behind(scale, dim);
    for (int32_t from = 0; from < dim; from += GROUP, scale += QN_KV_BLOCK) {
        const __m256 lo = qn_load8_f16(scale), hi = qn_load8_f16(scale + 8);
        for (int32_t d = from; d < dim && d < from + GROUP; d++, q += QN_KV_BLOCK, out += QN_KV_BLOCK) {
            _mm256_store_ps(out, _mm256_mul_ps(lo, widen8(q)));
            _mm256_store_ps(out + 8, _mm256_mul_ps(hi, widen8(q + 8)));
        }
    }
}

/* All scales as floats: broadcasts from memory cost nothing. @param out [n_groups][16] */
QN_INLINE void widen_scales(const uint16_t *scale, int32_t dim, float *out)
{
    for (int32_t i = 0; i < n_scales(dim); i += 8) _mm256_storeu_ps(out + i, qn_load8_f16(scale + i));
}

static void q8_0_load_v(const void *block, int32_t dim, float *out)
{
    float scale[QN_KV_MAX_DIM / GROUP * QN_KV_BLOCK];
    const uint8_t *q = codes_behind(block, dim);
    widen_scales(block, dim, scale);
    for (int32_t slot = 0; slot < QN_KV_BLOCK; slot++)
        for (int32_t d = 0; d < dim; d += 8, q += 8, out += 8)
            _mm256_store_ps(out, _mm256_mul_ps(_mm256_broadcast_ss(&scale[d / GROUP * QN_KV_BLOCK + slot]), widen8(q)));
}

/* 8 codes of 4 bits as numbers around 0. */
QN_INLINE __m256 centre8(__m256i q)
{
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_and_si256(q, _mm256_set1_epi32(15)), _mm256_set1_epi32(8)));
}

static void q4_0_load_k(const void *block, int32_t dim, float *out)
{
    const uint16_t *scale = block;
    const uint8_t *q = codes_behind(scale, dim);
    for (int32_t from = 0; from < dim; from += GROUP, scale += QN_KV_BLOCK) {
        const __m256 d[2] = { qn_load8_f16(scale), qn_load8_f16(scale + 8) };
        for (int32_t i = from; i < dim && i < from + GROUP; i += 2, q += QN_KV_BLOCK, out += 2 * QN_KV_BLOCK) {
            QN_UNROLL
            for (int32_t j = 0; j < 2; j++) {
                const __m256i pairs = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(q + 8 * j)));
                _mm256_store_ps(out + 8 * j, _mm256_mul_ps(d[j], centre8(pairs)));
                _mm256_store_ps(out + QN_KV_BLOCK + 8 * j, _mm256_mul_ps(d[j], centre8(_mm256_srli_epi32(pairs, 4))));
            }
        }
    }
}

static void q4_0_load_v(const void *block, int32_t dim, float *out)
{
    float scale[QN_KV_MAX_DIM / GROUP * QN_KV_BLOCK];
    const __m256i nibble = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const uint8_t *q = codes_behind(block, dim);
    widen_scales(block, dim, scale);
    for (int32_t slot = 0; slot < QN_KV_BLOCK; slot++)
        for (int32_t d = 0; d < dim; d += 8, q += 4, out += 8) {
            int32_t eight;
            __builtin_memcpy(&eight, q, 4);
            const __m256 v = centre8(_mm256_srlv_epi32(_mm256_set1_epi32(eight), nibble));
            _mm256_store_ps(out, _mm256_mul_ps(_mm256_broadcast_ss(&scale[d / GROUP * QN_KV_BLOCK + slot]), v));
        }
}

void qn_rows_init_kv_avx2(qn_kernels *k)
{
    qn_kernels_kv_set(k, "F16", f16_encode, f16_load, f16_load);
    qn_kernels_kv_set(k, "BF16", bf16_encode, bf16_load, bf16_load);
    qn_kernels_kv_set(k, "Q8_0", q8_0_encode, q8_0_load_k, q8_0_load_v);
    qn_kernels_kv_set(k, "Q4_0", q4_0_encode, q4_0_load_k, q4_0_load_v);
}
