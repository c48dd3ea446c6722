/**
 * Products of quantised panels with A16 activations on AMX, for many tokens. Same bits as scalar.
 *
 * Why bf16 tiles for integers: a digit (hi or lo of q = 256 * hi + lo), 256 * hi and a weight of up to 8 bits are bf16 numbers, so TDPBF16PS sums
 * integers in float32, exactly and in any order while all sums stay below 2^24. The digits of q meet in one accumulator, which a signed byte product
 * (TDPBSSD) cannot do: 256 * hi * w + lo * w needs two, and the shift, addition and conversion that join them for each block of 32 cost more time
 * than the products. Three kinds, by the largest weight:
 *     32 * most * 32639 <= 2^24   SUM_ONE     both digits into one accumulator: weights of 4 bits, or 5 with a sign
 *     two scales in a block       SUM_HALVES  one accumulator for each half: 16 * most * 32639 <= 2^24, weights of 6 bits with a sign
 *     else                        SUM_DIGITS  one accumulator for each digit; their sum rounds once, as the conversion of the integer would
 *
 * Tiles: 2 x 2, 32 tokens by two panels.
 *
 *              B0 | B1        16 rows: weights (k 2p, k 2p + 1) of 16 rows of the panel, one block of 32
 *        A0  | C0 | C1        A: 16 tokens x 32 digits of the block, straight from qn_act.planes
 *        A1  | C2 | C3
 *
 * The sums of a chunk (two blocks, or one with two accumulators) go to memory, and while the tile unit works on the next chunk, AVX-512 scales and
 * adds them: the instructions of both alternate and the out-of-order window of 512 lets them overlap. Per 16 tokens x 16 rows x 32 columns, in
 * cycles of Sapphire Rapids (estimated from documented latencies and throughputs; no time has been measured here):
 *     tile unit   32    two TDPBF16PS of 16 each, however short the rows; 64 for SUM_HALVES, whose rows fill half of a tile
 *     load ports  31    62 loads of 64 bytes, two a cycle: 24 rows of A and B, 16 of sums, 16 scales and sums of activations (shared by two panels),
 *                       4 partial results, 2 scales of weights
 *     ports 0, 5  24    three instructions a row: product of scales, fma, fma of the minimum (16 without)
 *     store port  20    16 rows of sums, 4 partial results
 * against 48 on ports 0 and 5 for the same with byte products. So 8192 products take about 34 cycles, 240 a cycle of the tile unit's 256.
 */
#ifndef QN_SIMD_MATMUL_A16_AMX_H
#define QN_SIMD_MATMUL_A16_AMX_H

#include "simd/amx/amx.h"

#include <string.h>

enum {
    /* From here on tiles pay. Estimated: unpacking 35 cycles for a block of a panel and one round of tiles 35, against 11 a token of AVX512_VNNI. */
    QN_AMX_TOKENS = 8,
    AMX_GROUP = 32,        /* tokens of a round                                                            */
    AMX_PIECE = 8,         /* blocks unpacked at a time: 16 KiB of two panels in the L1 cache              */
    AMX_PANELS = 16,       /* and tokens, whose results (512 KiB) and piece of activations (512 KiB) stay  */
    AMX_TOKENS = 512,      /* in the L2 cache while the pieces follow each other                           */
    AMX_EXACT = 1 << 24    /* up to here float32 holds every integer                                       */
};

typedef struct amx_format {
    const a16_format *a16;
    int32_t lo, hi; /* weights lie in [lo, hi] */
} amx_format;

typedef enum amx_kind { SUM_ONE, SUM_HALVES, SUM_DIGITS } amx_kind;

/* A constant to the compiler, as f is. */
QN_INLINE amx_kind kind_of(const amx_format *f)
{
    const int32_t most = f->hi > -f->lo ? f->hi : -f->lo;
    if (f->a16->halves == 2) return SUM_HALVES;
    return QN_ACT_BLOCK * most * (int32_t)QN_A16_MAX <= AMX_EXACT ? SUM_ONE : SUM_DIGITS;
}

/* What a thread works on. */
typedef struct amx_piece {
    __m512i w[2][AMX_PIECE][16];          /* [panel][block][pair]: tiles B, bf16                   */
    __m512 scale[AMX_PIECE][2][2];        /* [block][half][panel]                                  */
    __m512 min[AMX_PIECE][2];             /* [block][panel]                                        */
    __m512 sum[2][2][4][16];              /* [chunk by turns][accumulator][tile C][token]          */
    __m512 acc[2][AMX_GROUP];             /* [panel][token] of the group at hand                   */
    float d[AMX_GROUP][AMX_PIECE];        /* of a group that is not full, and zeros behind it      */
    float s[AMX_GROUP][AMX_PIECE];
} amx_piece;
_Static_assert(sizeof(amx_piece) + 64 <= QN_MATMUL_SCRATCH * sizeof(float), "a piece fits the scratch memory");

/* Two panels, the blocks of a piece, and tokens: whole groups, or one that is not full. */
typedef struct amx_pass {
    amx_piece *piece;
    const int8_t *planes;    /* first token, first block of the piece */
    int64_t planes_stride;
    const float *d, *s;
    int64_t d_stride;
    float *out;
    int64_t out_stride, n_rows; /* 1 .. 32 */
    int32_t n_blocks, n_tokens;
    bool begin;              /* nothing is in out yet */
} amx_pass;

/* ---- weights ---- */

/* Index i holds the weight whose lowest bits are i: 32 weights in one register, 64 in both. */
typedef struct amx_table {
    __m512i part[2];
} amx_table;

QN_INLINE __m512 table_floats(const amx_format *f, int32_t from)
{
    const int32_t mask = f->hi - f->lo < 32 ? 31 : 63;
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i above = _mm512_and_si512(_mm512_add_epi32(lane, _mm512_set1_epi32(from - f->lo)), _mm512_set1_epi32(mask));
    return _mm512_cvtepi32_ps(_mm512_add_epi32(above, _mm512_set1_epi32(f->lo)));
}

QN_INLINE amx_table table_of(const amx_format *f)
{
    return (amx_table){ { (__m512i)_mm512_cvtne2ps_pbh(table_floats(f, 16), table_floats(f, 0)),
                          (__m512i)_mm512_cvtne2ps_pbh(table_floats(f, 48), table_floats(f, 32)) } };
}

/* 16 pairs of int16 to bf16. */
QN_INLINE __m512i bf16_of_pair(const amx_format *f, const amx_table *table, __m512i pair)
{
    if (f->hi - f->lo < 32) return _mm512_permutexvar_epi16(pair, table->part[0]);
    if (f->hi - f->lo < 64) return _mm512_permutex2var_epi16(table->part[0], pair, table->part[1]);
    const __m512 even = _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(pair, 16), 16));
    const __m512 odd = _mm512_cvtepi32_ps(_mm512_srai_epi32(pair, 16));
    return _mm512_or_si512(_mm512_castps_si512(odd), _mm512_srli_epi32(_mm512_castps_si512(even), 16)); /* no bit below the upper 16 */
}

/* Panel i (0 or 1) of the pair. */
QN_INLINE void panel_unpack(const amx_format *f, const uint8_t *panel, int64_t b0, int32_t n, amx_piece *to, int32_t i)
{
    const amx_table table = table_of(f);
    for (int32_t b = 0; b < n; b++) {
        const void *lines = f->a16->lines(panel, b0 + b);
        QN_UNROLL
        for (int32_t p = 0; p < 16; p++) to->w[i][b][p] = bf16_of_pair(f, &table, f->a16->pair(lines, p));
        QN_UNROLL
        for (int32_t half = 0; half < f->a16->halves; half++) to->scale[b][half][i] = f->a16->scale(panel, b0 + b, half);
        if (f->a16->min) to->min[b][i] = f->a16->min(panel, b0 + b, 0);
    }
}

/* ---- products ---- */

/* Tiles C0 .. C3, A0, A1, B0, B1 for n tokens (1 .. 32). */
QN_INLINE void tiles_configure(const amx_format *f, int32_t n)
{
    const int32_t n0 = n < 16 ? n : 16, pairs = kind_of(f) == SUM_HALVES ? 8 : 16;
    qn_tile_config c = { .palette = 1 };
    for (int32_t i = 0; i < 4; i++) {
        c.rows[i] = (uint8_t)(i < 2 ? n0 : n - n0);
        c.row_bytes[i] = c.rows[i] ? 64 : 0;
    }
    for (int32_t i = 0; i < 2; i++) {
        c.rows[4 + i] = c.rows[2 * i];
        c.row_bytes[4 + i] = (uint16_t)(c.rows[2 * i] ? 4 * pairs : 0);
        c.rows[6 + i] = (uint8_t)pairs;
        c.row_bytes[6 + i] = 64;
    }
    QN_MEMORY_DONE();
    _tile_loadconfig(&c);
}

/* One accumulator of the four tiles C: digits [plane, plane_end) times the weights at w0 and w1. keep: tiles B still hold them. */
QN_INLINE void multiply(const amx_pass *k, const int8_t *a, const __m512i *w0, const __m512i *w1, const int32_t plane, const int32_t plane_end,
                        const bool keep, bool two, __m512 (*sum)[16])
{
    const int8_t *a1 = a + 16 * k->planes_stride;
    _tile_zero(0);
    _tile_zero(1);
    if (two) _tile_zero(2);
    if (two) _tile_zero(3);
    QN_UNROLL
    for (int32_t i = plane; i < plane_end; i++) {
        const bool load = !keep && i == plane;
        if (load) _tile_loadd(6, w0, 64);
        _tile_loadd(4, a + 64 * i, k->planes_stride);
        _tile_dpbf16ps(0, 4, 6);
        if (load) _tile_loadd(7, w1, 64);
        _tile_dpbf16ps(1, 4, 7);
        if (!two) continue;
        _tile_loadd(5, a1 + 64 * i, k->planes_stride);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sum[0], 64);
    _tile_stored(1, sum[1], 64);
    if (two) _tile_stored(2, sum[2], 64);
    if (two) _tile_stored(3, sum[3], 64);
}

/* A chunk of a group, and where its sums are. */
typedef struct amx_chunk {
    int32_t group, i;
    int32_t turn;
} amx_chunk;

/* Accumulator j (0, 1) of a chunk. */
QN_INLINE void chunk_multiply(const amx_pass *k, const amx_format *f, const amx_chunk *c, const int32_t j)
{
    const amx_kind kind = kind_of(f);
    const int32_t b = kind == SUM_ONE ? 2 * c->i + j : c->i;
    if (b >= k->n_blocks) return;
    const int8_t *a = k->planes + c->group * AMX_GROUP * k->planes_stride + b * QN_SPLIT_AMX;
    const __m512i *w0 = k->piece->w[0][b], *w1 = k->piece->w[1][b];
    const bool two = k->n_tokens > 16;
    __m512(*sum)[16] = k->piece->sum[c->turn][j];
    if (kind == SUM_ONE) multiply(k, a, w0, w1, 0, 2, false, two, sum);
    else if (kind == SUM_HALVES) multiply(k, a + 32 * j, w0 + 8 * j, w1 + 8 * j, 0, 2, false, two, sum);
    else multiply(k, a, w0, w1, j, j + 1, j == 1, two, sum);
}

/* ---- sums ---- */

/* 8 tokens (unit u of the group) of both panels: the sums of a chunk, scaled, to the results. */
QN_INLINE void unit_add(const amx_pass *k, const amx_format *f, const amx_chunk *c, const int32_t u)
{
    amx_piece *p = k->piece;
    const amx_kind kind = kind_of(f);
    const int32_t tile = u / 2 * 2, row = u % 2 * 8, b0 = kind == SUM_ONE ? 2 * c->i : c->i;
    const int32_t n = kind == SUM_ONE && b0 + 1 < k->n_blocks ? 2 : 1;
    const int64_t at = (c->group * AMX_GROUP + 8 * u) * k->d_stride + b0;
    qn_rows14 d = qn_rows14_open(k->d + at, 4 * k->d_stride), s = qn_rows14_open(k->s + at, 4 * k->d_stride);
    __m512(*sum)[4][16] = p->sum[c->turn];
    __m512 acc[2][8];
    QN_UNROLL
    for (int32_t i = 0; i < 16; i++) acc[i / 8][i % 8] = p->acc[i / 8][8 * u + i % 8];
    for (int32_t j = 0; j < n; j++) {
        const __m512(*scale)[2] = (const __m512(*)[2])p->scale[b0 + j];
        QN_UNROLL
        for (int32_t t = 0; t < 8; t++) {
            const __m512 x = _mm512_set1_ps(*(const float *)qn_rows14_at(&d, t));
            QN_UNROLL
            for (int32_t half = 0; half < f->a16->halves; half++) {
                QN_UNROLL
                for (int32_t i = 0; i < 2; i++) {
                    const int32_t from = kind == SUM_ONE ? j : half;
                    __m512 isum = sum[from][tile + i][row + t];
                    if (kind == SUM_DIGITS) isum = _mm512_add_ps(isum, sum[1][tile + i][row + t]);
                    acc[i][t] = _mm512_fmadd_ps(_mm512_mul_ps(scale[half][i], x), isum, acc[i][t]);
                }
            }
            if (!f->a16->min) continue;
            const __m512 z = _mm512_set1_ps(*(const float *)qn_rows14_at(&s, t));
            QN_UNROLL
            for (int32_t i = 0; i < 2; i++) acc[i][t] = _mm512_fmadd_ps(p->min[b0 + j][i], z, acc[i][t]);
        }
        qn_rows14_step(&d, 4);
        qn_rows14_step(&s, 4);
    }
    QN_UNROLL
    for (int32_t i = 0; i < 16; i++) p->acc[i / 8][8 * u + i % 8] = acc[i / 8][i % 8];
}

/* Results of a group between out and the piece. */
QN_INLINE void group_move(const amx_pass *k, int32_t group, bool store)
{
    const int32_t left = k->n_tokens - group * AMX_GROUP, n = left < AMX_GROUP ? left : AMX_GROUP;
    for (int32_t i = 0; i < 2 && 16 * i < k->n_rows; i++) {
        const __mmask16 mask = qn_mask16(k->n_rows - 16 * i);
        float *out = k->out + group * AMX_GROUP * k->out_stride + 16 * i;
        __m512 *acc = k->piece->acc[i];
        for (int32_t t = 0; t < n; t++, out += k->out_stride) {
            if (store) _mm512_mask_storeu_ps(out, mask, acc[t]);
            else acc[t] = _mm512_maskz_loadu_ps(mask, out);
        }
    }
}

QN_INLINE void group_open(const amx_pass *k, int32_t group)
{
    if (!k->begin) group_move(k, group, false);
    else memset(k->piece->acc, 0, sizeof k->piece->acc);
}

/* Chunk after chunk, group after group: the products of the next chunk among the sums of the one before. */
QN_INLINE void pass_run(const amx_pass *k, const amx_format *f)
{
    const int32_t step = kind_of(f) == SUM_ONE ? 2 : 1, n_chunks = (k->n_blocks + step - 1) / step;
    const int32_t n_groups = (k->n_tokens + AMX_GROUP - 1) / AMX_GROUP, n_units = k->n_tokens < AMX_GROUP ? (k->n_tokens + 7) / 8 : 4;
    amx_chunk c = { 0, 0, 0 };
    chunk_multiply(k, f, &c, 0);
    chunk_multiply(k, f, &c, 1);
    while (c.group < n_groups) {
        amx_chunk next = { c.group, c.i + 1, c.turn ^ 1 };
        if (next.i == n_chunks) next = (amx_chunk){ c.group + 1, 0, c.turn ^ 1 };
        if (c.i == 0) group_open(k, c.group);
        if (next.group < n_groups) chunk_multiply(k, f, &next, 0);
        unit_add(k, f, &c, 0);
        if (n_units > 1) unit_add(k, f, &c, 1);
        if (next.group < n_groups) chunk_multiply(k, f, &next, 1);
        if (n_units > 2) unit_add(k, f, &c, 2);
        if (n_units > 3) unit_add(k, f, &c, 3);
        if (next.i == 0) group_move(k, c.group, true);
        c = next;
    }
}

/* ---- the product ---- */

/* Scales of a group that is not full: units are of 8 tokens, and nothing behind the last one may be read. */
QN_INLINE void tail_copy(amx_pass *k)
{
    amx_piece *p = k->piece;
    memset(p->d, 0, sizeof p->d + sizeof p->s);
    for (int32_t t = 0; t < k->n_tokens; t++) {
        memcpy(p->d[t], k->d + t * k->d_stride, (size_t)k->n_blocks * sizeof(float));
        memcpy(p->s[t], k->s + t * k->d_stride, (size_t)k->n_blocks * sizeof(float));
    }
    k->d = p->d[0];
    k->s = p->s[0];
    k->d_stride = AMX_PIECE;
}

/* Tokens [t0, t_end) and blocks [b0, b0 + n) of panel i and the one behind it. *configured: tokens of the tiles. */
QN_INLINE void pair_run(const qn_matmul_args *a, const amx_format *f, int64_t i, int64_t b0, int32_t n, int32_t t0, int32_t t_end, int32_t *configured)
{
    amx_piece *piece = (amx_piece *)(((uintptr_t)a->scratch + 63) / 64 * 64);
    const int64_t n_blocks = a->act.q_stride / QN_ACT_BLOCK;
    const uint8_t *panel = a->w + (size_t)i * a->panel_bytes;
    panel_unpack(f, panel, b0, n, piece, 0);
    panel_unpack(f, i + 1 < a->n_panels ? panel + a->panel_bytes : panel, b0, n, piece, 1);
    QN_MEMORY_DONE();
    for (int32_t t = t0, count; t < t_end; t += count) {
        const int64_t at = t * n_blocks + b0, rows = a->n_rows - QN_PANEL * i;
        count = t_end - t < AMX_GROUP ? t_end - t : (t_end - t) / AMX_GROUP * AMX_GROUP;
        amx_pass k = { piece, a->act.planes + at * QN_SPLIT_AMX, n_blocks * QN_SPLIT_AMX, a->act.d + at, a->act.s + at, n_blocks,
                       a->out + t * a->out_stride + QN_PANEL * i, a->out_stride, rows < 2 * QN_PANEL ? rows : 2 * QN_PANEL, n, count, b0 == 0 };
        if (count < AMX_GROUP) tail_copy(&k);
        if (*configured != (count < AMX_GROUP ? count : AMX_GROUP)) {
            *configured = count < AMX_GROUP ? count : AMX_GROUP;
            tiles_configure(f, *configured);
        }
        pass_run(&k, f);
    }
}

/** `run` of a row for QN_AMX_TOKENS tokens or more: f must be a constant. */
QN_INLINE void qn_matmul_a16_amx(const qn_matmul_args *a, const amx_format *f)
{
    const int64_t n_blocks = a->n_cols / QN_ACT_BLOCK, n_pieces = (n_blocks + AMX_PIECE - 1) / AMX_PIECE;
    const int64_t step = ((n_blocks + n_pieces - 1) / n_pieces + 1) / 2 * 2; /* pieces of one length: 6 + 4 blocks, not 8 + 2 */
    int32_t configured = 0;
    for (int32_t t = 0; t < a->n_tokens; t += AMX_TOKENS) {
        const int32_t t_end = a->n_tokens - t < AMX_TOKENS ? a->n_tokens : t + AMX_TOKENS;
        for (int64_t i0 = 0; i0 < a->n_panels; i0 += AMX_PANELS)
            for (int64_t b0 = 0; b0 < n_blocks; b0 += step)
                for (int64_t i = i0; i < a->n_panels && i < i0 + AMX_PANELS; i += 2)
                    pair_run(a, f, i, b0, (int32_t)(n_blocks - b0 < step ? n_blocks - b0 : step), t, t_end, &configured);
    }
    _tile_release(); /* or the system saves 8 KiB of tiles at every switch of this thread */
}

#endif
