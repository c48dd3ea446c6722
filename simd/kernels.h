/**
 * The table of kernels, and their numerics.
 *
 * simd/scalar defines every result. An instruction set lives in simd/<isa>/ with isa.cmake (flags, needs, rank) and init_<isa>.c, which
 * overrides pointers of the table; a higher rank overrides a lower one. All results below are the same bits on every level unless a row
 * says `exact = false`.
 *
 * Weights are packed in panels of 16 rows ("P16"): lane r of a vector is output row r, so there are no horizontal sums, and each output
 * element has one order of additions at every vector width: ascending along the row.
 *
 * Activations of quantised weights are A16: blocks of 32 along the row, 16-bit integers q with a float32 scale d and d * sum(q):
 *     x[i] ~ d * q[i],  d = amax / 32639,  q = round-to-nearest-even(x * (32639 / amax))
 * 32639 = 127 * 256 + 127: q splits into two signed bytes, q = 256 * hi + lo, for byte instructions (sdot, smmla, AMX), which stay exact.
 * An integer dot product over a block (exact in int32) is combined by one fused multiply-add:
 *     acc = fma(dw * d, (float)isum, acc)     then, for formats with a minimum,     acc = fma(mw, d * sum(q), acc)
 * blocks ascending, acc starting at +0. Where scales belong to 16 weights, each half of a block is taken so in its turn, and sum(q) is the half's,
 * rounded as d * (float)sum. 8-bit activations are not the default: their error is larger than the margins between the first and second token of real
 * models. Who asks for them gets A8, the same with 8-bit integers, twice as many of which go into an instruction:
 *     x[i] ~ d * q[i],  d = amax / 127,  q = round-to-nearest-even(x * (127 / amax))
 * F32, F16 and BF16 weights, and every format without a row of its own, use float32 activations: acc = fma(w, x, acc).
 */
#ifndef QN_SIMD_KERNELS_H
#define QN_SIMD_KERNELS_H

#include "quant/quant.h"

#define QN_A16_MAX 32639.0f
#define QN_A8_MAX 127.0f
/** A8 activations lie in memory so that four bytes meet the weights of a nibble line (simd/panel.h): byte i of each 8 is column order[i]. */
#define QN_A8_ORDER { 0, 4, 1, 5, 2, 6, 3, 7 }

enum { QN_PANEL = 16, QN_ACT_BLOCK = 32, QN_SPLIT_MAX = 128, QN_KV_BLOCK = 16, QN_ATTN_SPAN = 64 };

/* ---- CPU ---- */

/** Features, as data in isa.cmake's ISA_NEEDS. */
enum {
    QN_CPU_AVX2 = 1u << 0,
    QN_CPU_FMA = 1u << 1,
    QN_CPU_F16C = 1u << 2,
    QN_CPU_AVX512 = 1u << 3, /* F, BW, DQ, VL and CD together */
    QN_CPU_VNNI = 1u << 4,   /* AVX512_VNNI */
    QN_CPU_BF16 = 1u << 5,   /* AVX512_BF16 */
    QN_CPU_AVXVNNI = 1u << 6,
    QN_CPU_AMX = 1u << 7,    /* TILE, INT8 and BF16 together, permitted by the system */
    QN_CPU_NEON = 1u << 8,
    QN_CPU_DOTPROD = 1u << 9,
    QN_CPU_I8MM = 1u << 10,
};
/** What this CPU and this system can run. */
uint32_t qn_cpu_flags(void);

/* ---- matrix product ---- */

/** Under a table with `a8`, rows of kind A16 read A8. */
typedef enum qn_act_kind { QN_ACT_F32 = 0, QN_ACT_A16 } qn_act_kind;

/** Activations of n_tokens tokens, row t at the stated strides. A kernel reads the kind its row asks for. */
typedef struct qn_act {
    const float *x;      /* [n_tokens][n_cols]            QN_ACT_F32                          */
    const int16_t *q;    /* [n_tokens][n_cols_padded]     QN_ACT_A16; padded to a multiple of 32 */
    const int8_t *q8;    /* [n_tokens][n_cols_padded]     A8, each 8 in QN_A8_ORDER           */
    const float *d;      /* [n_tokens][n_cols_padded/32]  scale of a block                    */
    const float *s;      /* [n_tokens][n_cols_padded/32]  d * sum(q)                          */
    const int8_t *planes; /* [n_tokens][n_cols_padded/32][split_bytes] q as the level's split_a16 lays it out; NULL where the level has none */
    int64_t x_stride;    /* floats between tokens                                             */
    int64_t q_stride;    /* elements of q or q8 between tokens; d and s: q_stride / 32, planes: q_stride / 32 * split_bytes */
} qn_act;

/** out[t][row] = sum over columns of weight[row][col] * act[t][col], for rows [16 * panel, ...) of a range of panels. */
typedef struct qn_matmul_args {
    const uint8_t *w;        /* first panel of the range                                      */
    size_t panel_bytes;      /* from one panel to the next                                    */
    int64_t n_panels;        /* 1 ..                                                          */
    int64_t n_rows;          /* rows to write, in (16 * (n_panels - 1), 16 * n_panels]        */
    int64_t n_cols;          /* a multiple of the format's block                              */
    int32_t n_tokens;        /* 1 ..                                                          */
    qn_act act;
    float *out;              /* token t, row r of the range: out[t * out_stride + r]          */
    int64_t out_stride;      /* floats between tokens, >= n_rows                              */
    const qn_fmt *fmt;       /* for the fallback                                              */
    float *scratch;          /* [QN_MATMUL_SCRATCH] per thread                                */
} qn_matmul_args;
enum { QN_MATMUL_SCRATCH = 16 * 1024 };

/** How one weight format is packed and multiplied. The output does not depend on n_tokens or on how rows are split into calls. */
typedef struct qn_matmul_row {
    const char *isa;         /* level that supplied `run`; static                             */
    qn_act_kind act;
    bool exact;              /* same bits as scalar                                           */
    size_t (*panel_bytes)(const qn_fmt *fmt, int64_t n_cols); /* a multiple of 64; 64-byte aligned panels      */
    /** Pack n_rows (1 .. 16; absent rows become zeros) rows, row_bytes apart, in the file's layout, into one panel. */
    void (*pack)(const qn_fmt *fmt, const uint8_t *rows, size_t row_bytes, int64_t n_rows, int64_t n_cols, uint8_t *panel);
    /** Row r (0 .. 15) of a panel as float32, bit for bit what fmt->decode gives. @param out [n_cols] */
    void (*unpack_row)(const qn_fmt *fmt, const uint8_t *panel, int32_t r, int64_t n_cols, float *out);
    void (*run)(const qn_matmul_args *a);      /* any n_tokens                                */
    void (*run8)(const qn_matmul_args *a);     /* the same of A8 activations; there where act is QN_ACT_A16. The same bits on every level */
} qn_matmul_row;

/* ---- keys and values ---- */

/** What attention reads: values that it widens on the way, or what `load_k` and `load_v` have made of a block. */
typedef enum qn_kv_kind { QN_KV_ABSENT = 0, QN_KV_CODED, QN_KV_F16, QN_KV_F32 } qn_kv_kind;

/**
 * How one format keeps the keys, or the values, of one head at 16 positions: K as [head_dim][16], V as [16][head_dim_v]. Formats with scales round
 * `group` dimensions of a position together (the last group may be shorter); their block begins with the scales, f16 [n_groups][16] for K and V
 * alike. 4-bit codes: two dimensions in a byte, the even one low: K [head_dim / 2][16], V [16][head_dim_v / 2].
 *   F32, F16, BF16: rounded to nearest even.
 *   Q8_0: d = f16(amax / 127),  q = clamp(round(x * (1 / d)), -127, 127),  value = d * q
 *   Q4_0: d = f16(extreme / -8), extreme: the value furthest from 0, the negative one of two;  code = clamp(round(x * (1 / d)), -8, 7) + 8,
 *         value = d * (code - 8)
 * each step rounded to float32, `round` to the nearest even integer; 1 / d is 0 where d is. The products d * q are exact. A group with an Inf or NaN,
 * or whose d does not fit into f16, has d = NaN and codes of 0.
 */
typedef struct qn_kv_row {
    qn_kv_kind kind;
    int32_t bits, group;     /* of an element: 32, 16, 8 or 4; dimensions of a scale, QN_ACT_BLOCK at least, or 0 */
    /** One position. @param dim a multiple of 8, at most QN_KV_MAX_DIM  @param codes [dim * bits / 8] bytes  @param scales [n_groups] */
    void (*encode)(const float *x, int32_t dim, void *codes, uint16_t *scales);
    /** A block as float32, in the block's order. @param block 64-byte aligned  @param out the same; [dim][16] or [16][dim] */
    void (*load_k)(const void *block, int32_t dim, float *out);
    void (*load_v)(const void *block, int32_t dim, float *out);
} qn_kv_row;
enum { QN_KV_MAX_DIM = 1024 };

/** Bytes of one head's K or V at 16 positions, whole cache lines. */
static inline size_t qn_kv_block_bytes(const qn_kv_row *row, int32_t dim)
{
    const size_t n_groups = row->group ? (size_t)((dim + row->group - 1) / row->group) : 0;
    const size_t codes = (size_t)dim * QN_KV_BLOCK * (size_t)row->bits / 8, scales = n_groups * QN_KV_BLOCK * sizeof(uint16_t);
    return (codes + scales + 63) & ~(size_t)63;
}

/** Write one position into its block. @param slot position mod 16 */
void qn_kv_store_k(const qn_kv_row *row, const float *k, int32_t dim, int32_t slot, void *block);
void qn_kv_store_v(const qn_kv_row *row, const float *v, int32_t dim, int32_t slot, void *block);

/* ---- attention ---- */

/**
 * Attention of n_q query rows over one KV head. Row i sees absolute positions [first[i], last[i]].
 * Positions are taken in fixed spans of QN_ATTN_SPAN absolute positions (span k is [64k, 64k + 64)), ascending, with online softmax:
 *   s_j = fma-chain over head_dim of q[d] * k[j][d] (d ascending, from +0), then softcap when > 0: s = cap * tanh(s / cap),
 *   then, with slopes, linear position biases (Press et al. 2022): s = fma(-slope[i], |j - at[i]|, s)
 *   m' = max(m, max_j s_j);  c = exp(m - m');  p_j = exp(s_j - m');  l = l * c;  l = l + sum(p);  o = o * c;  o[d] = fma(p_j, v[j][d], o[d])
 * (j ascending; masked positions have no part in anything, whatever their slots hold; a span without a position is not there).
 * k and v are the float32 that their formats stand for. m starts at -Inf; a NaN is never the larger one. sum(p): lane j mod 16 adds its positions of
 * the span ascending, then halves 8, 4, 2, 1.
 * The result is (m, l, o): what sees the rest of a row's positions is joined to it by src/ops/attn_join.h. exp and tanh: simd/scalar/exp_scalar.c.
 */
typedef struct qn_attn_args {
    const float *q;                   /* [n_q][head_dim], scaled already; row i at q + i * q_stride */
    int64_t q_stride;
    int32_t n_q;
    int32_t head_dim, head_dim_v;     /* multiples of 8, at most QN_KV_MAX_DIM                      */
    const int32_t *first, *last;      /* [n_q] positions, first <= last                             */
    const qn_kv_row *k_row, *v_row;   /* formats of the blocks, of the table that `attention` is from */
    const void *const *k_blocks;      /* block b holds positions [16b, 16b + 16); only blocks in use are valid; 64-byte aligned */
    const void *const *v_blocks;
    float softcap;                    /* 0: none                                                    */
    const float *slope;               /* [n_q] by how much a score falls from one position to the next; NULL: not */
    const int32_t *at;                /* [n_q] with slopes: the position whence row i looks         */
    float *o;                         /* row i at o + i * o_stride; [head_dim_v]                    */
    int64_t o_stride;
    float *m, *l;                     /* [n_q]                                                      */
    float *scratch;                   /* [qn_attn_scratch] per thread                               */
} qn_attn_args;

/** Scores of 64 rows, and a span of keys or values. */
static inline int64_t qn_attn_scratch(int32_t head_dim, int32_t head_dim_v)
{
    return 64 * QN_ATTN_SPAN + (int64_t)QN_ATTN_SPAN * (head_dim > head_dim_v ? head_dim : head_dim_v);
}

/* ---- layers with a state ---- */

/**
 * A causal convolution of each channel c alone: out[c] = silu?(bias[c] + sum over i of w[i][c] * x[i][c]).
 * One chain of fma, i ascending (rows[n_taps - 1] is the token itself), from the bias or +0.
 */
typedef struct qn_conv_args {
    const float *const *rows;    /* [n_taps] rows of inputs, oldest first; channel c of row i at rows[i][c] */
    int32_t n_taps;              /* 1 ..                                                     */
    const float *w;              /* [n_taps][w_stride]                                       */
    int64_t w_stride;
    const float *bias;           /* [n] or NULL                                              */
    int64_t n;                   /* channels                                                 */
    bool silu;
    float *out;                  /* [n]; none of the rows                                    */
} qn_conv_args;

enum { QN_STATE_LANES = 16 };

/**
 * A head whose memory is a matrix S [d_k][d_v], over n_tokens tokens. Linear attention with decay (Dao and Gu 2024, "Mamba-2"), and the gated delta
 * rule (Yang et al. 2024), which first takes out what the key already brings:
 *   u[j] = rate * (v[j] - decay * sum_i k[i] S[i][j]);  without `delta`: u[j] = rate * v[j]
 *   S[i][j] = fma(k[i], u[j], S[i][j] * decay);  out[j] = sum_i q[i] S[i][j]
 * Sums: element i belongs to chain i mod 4 of fma, ascending from +0; chains join as (0 + 2) + (1 + 3).
 */
typedef struct qn_scan_args {
    float *state;                /* [ceil(d_v / 16)][d_k][16]; lanes past d_v mean nothing */
    int32_t d_k, d_v;            /* 1 ..                                                     */
    int32_t n_tokens;
    const float *q, *k, *v;      /* [n_tokens][d_k], [n_tokens][d_k], [n_tokens][d_v], at the strides below */
    int64_t qk_stride, v_stride; /* floats between tokens                                    */
    const float *decay, *rate;   /* [n_tokens]                                               */
    bool delta;
    float *out;                  /* [n_tokens][d_v]                                          */
    int64_t out_stride;
} qn_scan_args;

/**
 * Channels whose memory is d_state floats each, over n_tokens tokens (Gu and Dao 2023, "Mamba"):
 *   h[s][c] = fma(h[s][c], exp(dt[c] * a[s][c]), b[s] * (x[c] * dt[c]));  out[c] = chain of fma of h[s][c] * c[s], s ascending from +0
 */
typedef struct qn_selective_args {
    float *state;                /* [ceil(n / 16)][d_state][16]                              */
    int64_t n;                   /* channels                                                 */
    int32_t d_state, n_tokens;
    const float *a;              /* [d_state][a_stride]                                      */
    int64_t a_stride;
    const float *x, *dt;         /* [n_tokens][n], at the strides below                      */
    int64_t x_stride, dt_stride;
    const float *b, *c;          /* [n_tokens][d_state]                                      */
    int64_t bc_stride;
    float *out;                  /* [n_tokens][n]                                            */
    int64_t out_stride;
} qn_selective_args;

/* ---- table ---- */

enum { QN_MAX_FMT_ID = 64 };

typedef struct qn_kernels {
    const char *level;                              /* highest level in use; static           */
    bool a8;                                        /* quantised weights meet A8: set by whoever made the table */
    /** By GGUF type number. Formats without kernels of their own have the fallback row: file layout kept, decoded in pieces. */
    qn_matmul_row matmul[QN_MAX_FMT_ID];
    /** Formats of the KV cache, by GGUF type number; kind QN_KV_ABSENT: none. */
    qn_kv_row kv[QN_MAX_FMT_ID];

    /** fmt->encode, the same bytes; only for a format that has it. */
    void (*encode)(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, uint8_t *out);
    /** Quantise one row to A16. n: any; blocks past n are zero-filled up to a multiple of 32. A block with Inf or NaN gets d = s = NaN, q = 0;
     *  amax below 1e-30 gets d = s = 0, q = 0. */
    void (*quantize_a16)(const float *x, int64_t n, int16_t *q, float *d, float *s);
    /** The same to A8. @param q [n padded to 32], each 8 in QN_A8_ORDER */
    void (*quantize_a8)(const float *x, int64_t n, int8_t *q, float *d, float *s);
    /** Lay blocks of q out for the level's own products. NULL: the level reads q alone. @param planes [n_blocks][split_bytes] */
    void (*split_a16)(const int16_t *q, int64_t n_blocks, int8_t *planes);
    int32_t split_bytes;                            /* of a block: 64, or QN_SPLIT_MAX        */
    /** out = x * (1 / sqrt(mean(x^2) + eps)) * w, each step rounded; w NULL: without. Sum: 16 lanes of fma (i mod 16), then halves 8, 4, 2, 1. out may be x. */
    void (*rms_norm)(const float *x, const float *w, int64_t n, float eps, float *out);
    /** out = (x - mean) * (1 / sqrt(var + eps)) * w + b, each step rounded; w, b may be NULL. Same sums. out may be x. */
    void (*layer_norm)(const float *x, const float *w, const float *b, int64_t n, float eps, float *out);
    void (*add)(const float *a, const float *b, int64_t n, float *out);               /* out may be a or b       */
    void (*scale)(const float *x, float c, int64_t n, float *out);
    /** out = cap * tanh(x / cap); cap > 0; out may be x. tanh as in attention. */
    void (*softcap)(const float *x, float cap, int64_t n, float *out);
    /** Gated activations: out = act(gate) * up. */
    void (*swiglu)(const float *gate, const float *up, int64_t n, float *out);        /* x / (1 + exp(-x))       */
    void (*geglu)(const float *gate, const float *up, int64_t n, float *out);         /* GELU, tanh form         */
    void (*silu)(const float *x, int64_t n, float *out);
    void (*gelu)(const float *x, int64_t n, float *out);
    void (*sigmoid)(const float *x, int64_t n, float *out);                           /* 1 / (1 + exp(-x))       */
    /** log(1 + exp(x)) = max(x, 0) + log1p(u), u = exp(-|x|), log1p(u) = 2 artanh(u / (u + 2)). out may be x. */
    void (*softplus)(const float *x, int64_t n, float *out);
    /* max(x, 0), its square; NaN stays. Portable C at every level, as are mul and clamp: few models use them, between products that cost far more */
    void (*relu)(const float *x, int64_t n, float *out);
    void (*relu_sqr)(const float *x, int64_t n, float *out);
    void (*mul)(const float *a, const float *b, int64_t n, float *out);
    void (*clamp)(const float *x, float most, int64_t n, float *out);                 /* to [-most, most]        */
    /** Rotate pairs of one head in place. cos_sin [n_rot / 2][2]. `neox`: pairs (i, i + n_rot/2), else (2i, 2i + 1).
     *  a' = fma(a, c, -(b * s)), b' = fma(a, s, b * c) */
    void (*rope)(float *x, const float *cos_sin, int32_t n_rot, bool neox);
    /** Softmax in place: exp(x - max), times 1 / sum; sum as in rms_norm. */
    void (*softmax)(float *x, int64_t n);
    void (*exp)(const float *x, int64_t n, float *out);
    void (*attention)(const qn_attn_args *a);
    void (*conv)(const qn_conv_args *a);
    void (*scan)(const qn_scan_args *a);
    void (*selective)(const qn_selective_args *a);
    /** Index of the largest value, the lowest index among equals; NaN is never it (-1 when all are NaN). */
    int64_t (*argmax)(const float *x, int64_t n);
    /** `rounds` times the multiply-add of the level's quantised products, on registers: what they can reach at most.
     *  @return multiply-adds of 16-bit activations done */
    int64_t (*peak)(int64_t rounds);
} qn_kernels;

/**
 * Fill the table.
 * @param level  highest level ("scalar", "avx2" ...), NULL: the highest this CPU runs
 * @param exact  leave out rows with exact == false
 * @return QN_ERR_ARG: no such level in this build, or this CPU lacks it; the sentence lists those it has
 */
qn_status qn_kernels_init(qn_kernels *k, const char *level, bool exact, qn_err *err);

static inline void qn_kernels_matmul(const qn_kernels *k, const qn_matmul_row *row, const qn_matmul_args *a)
{
    if (k->a8 && row->run8) row->run8(a);
    else row->run(a);
}

/** Give a cache format the functions of a level; NULL: those below stay. Nothing happens when the build has no such format. */
void qn_kernels_kv_set(qn_kernels *k, const char *fmt_name, void (*encode)(const float *x, int32_t dim, void *codes, uint16_t *scales),
                       void (*load_k)(const void *block, int32_t dim, float *out), void (*load_v)(const void *block, int32_t dim, float *out));
/** The row of a format by its name, or NULL when the build has no such format. For init functions: format numbers live in quant/ alone. */
qn_matmul_row *qn_kernels_row(qn_kernels *k, const char *fmt_name);
/** Give a format's row the products of a level. Nothing happens when the build has no such format. @param run8 NULL: there is none */
void qn_kernels_row_set(qn_kernels *k, const char *fmt_name, const char *isa, void (*run)(const qn_matmul_args *a),
                        void (*run8)(const qn_matmul_args *a));

/** One level of this build. Needs are QN_CPU_ bits; "scalar" has none. */
typedef struct qn_isa {
    const char *name;
    uint32_t needs;
    void (*init)(qn_kernels *k);
} qn_isa;
int32_t qn_isa_count(void);
/** @param i 0 .. count - 1, rising rank; 0 is "scalar" */
const qn_isa *qn_isa_at(int32_t i);

#endif
