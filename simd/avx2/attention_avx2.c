/* Attention: the loops of simd/attn_tile.h, 8 lanes at a time. */
#include "simd/avx2/avx2.h"

#include "simd/attn_tile.h"

QN_INLINE __m256 load8(const char *x, const bool f16)
{
    return f16 ? qn_load8_f16((const uint16_t *)x) : _mm256_loadu_ps((const float *)x);
}

/* acc[r][i] = fma(w[r], v[i], acc[r][i]) for R numbers and N times 8 halves or floats; the shorter side stays in registers: 12 sums leave 4 of 16. */
QN_INLINE void outer_add(__m256 *acc, const float *const *w, const char *const *v, const int32_t R, const int32_t N, const bool f16)
{
    __m256 kept[6];
    QN_UNROLL
    for (int32_t i = 0; i < (R < N ? R : N); i++) kept[i] = R < N ? _mm256_broadcast_ss(w[i]) : load8(v[i], f16);
    QN_UNROLL
    for (int32_t j = 0; j < (R < N ? N : R); j++) {
        const __m256 x = R < N ? load8(v[j], f16) : _mm256_broadcast_ss(w[j]);
        QN_UNROLL
        for (int32_t i = 0; i < (R < N ? R : N); i++) {
            const int32_t at = R < N ? i * N + j : j * N + i;
            acc[at] = _mm256_fmadd_ps(kept[i], x, acc[at]);
            QN_IN_ORDER(acc[at]);
        }
    }
}

/* Scores of R rows from r0 and B neighbouring blocks. */
QN_INLINE void scores_block(const rows *t, int32_t r0, int32_t block, const int32_t R, const int32_t B, const bool f16)
{
    const int32_t head_dim = t->a->head_dim, size = f16 ? 2 : 4;
    const float *q[TILE_ROWS];
    const char *k[8];
    __m256 acc[12];
    QN_UNROLL
    for (int32_t r = 0; r < R; r++) q[r] = row_q(t, r0 + r);
    QN_UNROLL
    for (int32_t i = 0; i < 2 * B; i++) k[i] = (const char *)qn_attn_block(&t->keys, block + i / 2) + i % 2 * 8 * size;
    QN_UNROLL
    for (int32_t i = 0; i < R * B * 2; i++) acc[i] = _mm256_setzero_ps();
    for (int32_t d = 0; d < head_dim; d++) {
        outer_add(acc, q, k, R, 2 * B, f16);
        QN_UNROLL
        for (int32_t r = 0; r < R; r++) q[r]++;
        QN_UNROLL
        for (int32_t i = 0; i < 2 * B; i++) k[i] += QN_KV_BLOCK * size;
    }
    float *out = row_s(t, r0) + block % QN_SPAN_BLOCKS * QN_KV_BLOCK;
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < B * 2; i++) _mm256_storeu_ps(out + r * QN_ATTN_SPAN + i * 8, acc[r * B * 2 + i]);
}

/* Blocks [from, to]; R * B chains of two registers keep the units busy. */
QN_INLINE void scores_rows(const rows *t, int32_t r0, int32_t from, int32_t to, const int32_t R, const int32_t B, const bool f16)
{
    int32_t b = from;
    for (; b + B <= to + 1; b += B) scores_block(t, r0, b, R, B, f16);
    for (; b <= to; b++) scores_block(t, r0, b, R, 1, f16);
}

QN_INLINE void scores_as(const rows *t, int32_t r, int32_t n, int32_t from, int32_t to, const bool f16)
{
    switch (n) {
    case 1: scores_rows(t, r, from, to, 1, 4, f16); break;
    case 2: scores_rows(t, r, from, to, 2, 2, f16); break;
    case 3: scores_rows(t, r, from, to, 3, 2, f16); break;
    case 4: scores_rows(t, r, from, to, 4, 1, f16); break;
    case 5: scores_rows(t, r, from, to, 5, 1, f16); break;
    default: scores_rows(t, r, from, to, 6, 1, f16); break;
    }
}

static void level_scores(const rows *t, int32_t r, int32_t n, int32_t from, int32_t to)
{
    if (t->keys.f16) scores_as(t, r, n, from, to, true);
    else scores_as(t, r, n, from, to, false);
}

/* o[d] = fma(p[j], v[j][d], o[d]) for positions [from, to], R rows from r0, D registers from column d. */
QN_INLINE void values_tile(const rows *t, int32_t r0, int32_t from, int32_t to, int32_t d, const int32_t R, const int32_t D, const bool f16)
{
    const qn_attn_args *a = t->a;
    const int32_t size = f16 ? 2 : 4, step = a->head_dim_v * size;
    float *out = row_out(t, r0) + d;
    __m256 o[12];
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < D; i++) o[r * D + i] = _mm256_loadu_ps(out + r * a->o_stride + 8 * i);
    for (int32_t begin = from, end; begin <= to; begin = end) { /* positions of one block */
        const int32_t b = begin / QN_KV_BLOCK, first = begin % QN_KV_BLOCK;
        end = (b + 1) * QN_KV_BLOCK <= to ? (b + 1) * QN_KV_BLOCK : to + 1;
        const char *v = (const char *)qn_attn_block(&t->values, b) + first * step + d * size;
        const float *p = row_s(t, r0) + begin % QN_ATTN_SPAN;
        for (int32_t j = begin; j < end; j++, v += step, p++) {
            const char *x[8];
            const float *w[TILE_ROWS];
            QN_UNROLL
            for (int32_t i = 0; i < D; i++) x[i] = v + 8 * i * size;
            QN_UNROLL
            for (int32_t r = 0; r < R; r++) w[r] = p + r * QN_ATTN_SPAN;
            outer_add(o, w, x, R, D, f16);
        }
    }
    QN_UNROLL
    for (int32_t r = 0; r < R; r++)
        QN_UNROLL
        for (int32_t i = 0; i < D; i++) _mm256_storeu_ps(out + r * a->o_stride + 8 * i, o[r * D + i]);
}

QN_INLINE void values_rows(const rows *t, int32_t r0, int32_t from, int32_t to, const int32_t R, const int32_t D, const bool f16)
{
    int32_t d = 0;
    for (; d + 8 * D <= t->a->head_dim_v; d += 8 * D) values_tile(t, r0, from, to, d, R, D, f16);
    for (; d < t->a->head_dim_v; d += 8) values_tile(t, r0, from, to, d, R, 1, f16);
}

QN_INLINE void values_as(const rows *t, int32_t r, int32_t n, int32_t from, int32_t to, const bool f16)
{
    switch (n) {
    case 1: values_rows(t, r, from, to, 1, 8, f16); break;
    case 2: values_rows(t, r, from, to, 2, 4, f16); break;
    case 3: values_rows(t, r, from, to, 3, 4, f16); break;
    case 4: values_rows(t, r, from, to, 4, 2, f16); break;
    case 5: values_rows(t, r, from, to, 5, 2, f16); break;
    default: values_rows(t, r, from, to, 6, 2, f16); break;
    }
}

static void level_values(const rows *t, int32_t r, int32_t n, int32_t from, int32_t to)
{
    if (t->values.f16) values_as(t, r, n, from, to, true);
    else values_as(t, r, n, from, to, false);
}

static void rescale(const rows *t, int32_t r, float max)
{
    float *m = t->a->m + t->row + r;
    const float c = qn_exp1_avx2(*m - max);
    *m = max;
    t->a->l[t->row + r] *= c;
    if (c == 1.0f) return;
    float *o = row_out(t, r);
    for (int32_t d = 0; d < t->a->head_dim_v; d += 8)
        _mm256_storeu_ps(o + d, _mm256_mul_ps(_mm256_loadu_ps(o + d), _mm256_set1_ps(c)));
}

/* Ones in the lanes of the 8 positions from `pos` that the row sees. */
QN_INLINE __m256 seen(const rows *t, int32_t r, int32_t pos)
{
    const __m256i at = _mm256_add_epi32(_mm256_set1_epi32(pos), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_cmpgt_epi32(at, _mm256_set1_epi32(t->hi[r])),
                                                   _mm256_cmpgt_epi32(at, _mm256_set1_epi32(t->lo[r] - 1))));
}

static void softcap(const rows *t, float *s)
{
    const __m256 cap = _mm256_set1_ps(t->a->softcap);
    for (int32_t i = 0; i < QN_ATTN_SPAN; i += 8)
        _mm256_storeu_ps(s + i, _mm256_mul_ps(cap, qn_tanh_avx2(_mm256_div_ps(_mm256_loadu_ps(s + i), cap))));
}

/* Scores of the span from `base` are lowered by the distance. */
static void lower(const rows *t, int32_t r, int32_t base, float *s)
{
    const int32_t row = t->row + r;
    const __m256 slope = _mm256_set1_ps(t->a->slope[row]);
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (int32_t i = 0; i < QN_ATTN_SPAN; i += 8) {
        const __m256i away = _mm256_abs_epi32(_mm256_add_epi32(_mm256_set1_epi32(base + i - t->a->at[row]), lane));
        _mm256_storeu_ps(s + i, _mm256_fnmadd_ps(slope, _mm256_cvtepi32_ps(away), _mm256_loadu_ps(s + i)));
    }
}

static void level_weigh(const rows *t, int32_t r)
{
    const int32_t base = t->lo[r] / QN_ATTN_SPAN * QN_ATTN_SPAN;
    const int32_t from = (t->lo[r] - base) / QN_KV_BLOCK * QN_KV_BLOCK, to = t->hi[r] - base;
    float *s = row_s(t, r);
    const __m256 least = _mm256_set1_ps(-INFINITY);
    __m256 max = _mm256_set1_ps(t->a->m[t->row + r]), sum[2] = { _mm256_setzero_ps(), _mm256_setzero_ps() };
    if (t->a->softcap > 0) softcap(t, s);
    if (t->a->slope) lower(t, r, base, s);
    for (int32_t i = from; i <= to; i += 8)
        max = _mm256_max_ps(_mm256_blendv_ps(least, _mm256_loadu_ps(s + i), seen(t, r, base + i)), max);
    const float most = qn_max8_avx2(max);
    rescale(t, r, most);
    for (int32_t i = from; i <= to; i += 8) {
        const __m256 p = qn_exp_avx2(_mm256_sub_ps(_mm256_loadu_ps(s + i), _mm256_set1_ps(most)));
        const __m256 kept = _mm256_and_ps(p, seen(t, r, base + i));
        _mm256_storeu_ps(s + i, kept);
        sum[i / 8 % 2] = _mm256_add_ps(sum[i / 8 % 2], kept);
    }
    t->a->l[t->row + r] += qn_tree16_avx2(sum[0], sum[1]);
}

void qn_attention_avx2(const qn_attn_args *a)
{
    attend(a);
}
