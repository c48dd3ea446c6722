/* Formats without kernels: 16 rows of a piece are decoded as the file has them, turned into a float panel, and multiplied by all tokens. */
#include "simd/avx2/matmul_float_avx2.h"

enum { PIECE = 512 }; /* columns, a multiple of every block; decoded and turned they fill the scratch memory */
_Static_assert(2 * QN_PANEL * PIECE <= QN_MATMUL_SCRATCH, "two pieces");

QN_INLINE __m256 load8(const uint8_t *w)
{
    return _mm256_loadu_ps((const float *)w);
}

static const float_format f32 = { load8, 4 };

/* 8 rows of 8 columns, `from` apart, become 8 columns of 8 rows, 16 apart. */
static void turn8(const float *in, int64_t from, float *out)
{
    __m256 r[8], t[8];
    for (int32_t i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(in + i * from);
    for (int32_t i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int32_t i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int32_t i = 0; i < 4; i++) {
        _mm256_storeu_ps(out + i * QN_PANEL, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(out + (i + 4) * QN_PANEL, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

/* n columns of 16 rows into [column][16]; columns past the last whole 8 one by one. */
static void turn(const float *rows, int64_t n, float *panel)
{
    int64_t c = 0;
    for (; c + 8 <= n; c += 8)
        for (int32_t h = 0; h < QN_PANEL; h += 8) turn8(rows + h * n + c, n, panel + c * QN_PANEL + h);
    for (; c < n; c++)
        for (int32_t r = 0; r < QN_PANEL; r++) panel[c * QN_PANEL + r] = rows[r * n + c];
}

void qn_matmul_fallback_avx2(const qn_matmul_args *a)
{
    const qn_fmt *fmt = a->fmt;
    const size_t row_bytes = (size_t)(a->n_cols / fmt->block) * (size_t)fmt->bytes;
    float *rows = a->scratch, *panel = a->scratch + QN_PANEL * PIECE;
    for (int64_t i = 0; i < a->n_panels; i++) {
        const int64_t left = a->n_rows - QN_PANEL * i, n_rows = left < QN_PANEL ? left : QN_PANEL;
        for (int64_t c = 0; c < a->n_cols; c += PIECE) {
            const int64_t n = a->n_cols - c < PIECE ? a->n_cols - c : PIECE;
            const uint8_t *w = a->w + (size_t)i * a->panel_bytes + (size_t)(c / fmt->block) * (size_t)fmt->bytes;
            for (int64_t r = 0; r < n_rows; r++) fmt->decode(w + (size_t)r * row_bytes, n / fmt->block, rows + r * n);
            for (int64_t at = n_rows * n; at < QN_PANEL * n; at++) rows[at] = 0;
            turn(rows, n, panel);
            qn_float_panel(a, &f32, (const uint8_t *)panel, n, a->act.x + c, a->out + QN_PANEL * i, left, c > 0);
        }
    }
}
