/* The 256-bit products of AVX-VNNI by their twins of AVX512_VNNI and AVX512VL, for tests of simd/avxvnni on machines that have these alone. The
 * operations are the same; the instructions differ in their encoding. */
#ifndef AVXVNNI_EMULATED_H
#define AVXVNNI_EMULATED_H

#include <immintrin.h>

#undef _mm256_dpwssd_avx_epi32
#undef _mm256_dpbusd_avx_epi32
#define _mm256_dpwssd_avx_epi32(acc, a, b) _mm256_dpwssd_epi32(acc, a, b)
#define _mm256_dpbusd_avx_epi32(acc, a, b) _mm256_dpbusd_epi32(acc, a, b)

#endif
