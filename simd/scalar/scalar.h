/* Shared by the scalar kernels. Plain C that says what every other level must give, bit for bit. */
#ifndef QN_SIMD_SCALAR_H
#define QN_SIMD_SCALAR_H

#include "simd/panel.h"
#include "src/base/half.h"

/* ---- quantised weights: one block of 32 of one row, as numbers ---- */

typedef struct qn_block {
    int16_t q[32];
    float d[2];      /* scale of each half of 16                                   */
    float m[2];      /* added to every weight of the half                          */
    bool halves;     /* the halves have scales of their own: two sums, else one of 32 with d[0] and m[0] */
    bool min;        /* m has a part                                               */
} qn_block;

/** Block b (of 32 weights) of row r. */
typedef void (*qn_block_fn)(const uint8_t *panel, int32_t r, int64_t b, qn_block *out);

void qn_matmul_a16_scalar(const qn_matmul_args *a, qn_block_fn read);
void qn_matmul_a8_scalar(const qn_matmul_args *a, qn_block_fn read);
void qn_unpack_a16_scalar(const uint8_t *panel, int32_t r, int64_t n_cols, float *out, qn_block_fn read);

/* ---- elementary functions: each step is an IEEE operation or an fmaf ---- */

float qn_exp_scalar(float x);
float qn_tanh_scalar(float x);
float qn_silu_scalar(float x);
/** Sum of 16 lanes: halves 8, 4, 2, 1. */
float qn_tree16_scalar(const float *lane);

/* ---- rows of the table ---- */

void qn_rows_init_q4_0_scalar(qn_kernels *k);
void qn_rows_init_q4_1_scalar(qn_kernels *k);
void qn_rows_init_q5_0_scalar(qn_kernels *k);
void qn_rows_init_q5_1_scalar(qn_kernels *k);
void qn_rows_init_q8_0_scalar(qn_kernels *k);
void qn_rows_init_q4_k_scalar(qn_kernels *k);
void qn_rows_init_q5_k_scalar(qn_kernels *k);
void qn_rows_init_q6_k_scalar(qn_kernels *k);
void qn_rows_init_q2_k_scalar(qn_kernels *k);
void qn_rows_init_q3_k_scalar(qn_kernels *k);
void qn_rows_init_iq4_nl_scalar(qn_kernels *k);
void qn_rows_init_iq4_xs_scalar(qn_kernels *k);
void qn_rows_init_mxfp4_scalar(qn_kernels *k);
void qn_rows_init_float_scalar(qn_kernels *k);
void qn_rows_init_fallback_scalar(qn_kernels *k);
void qn_rows_init_kv_scalar(qn_kernels *k);

/** Put a row into the table; nothing where the build lacks the format. */
void qn_row_set_scalar(qn_kernels *k, const char *fmt_name, const qn_matmul_row *row);

void qn_quantize_a8_scalar(const float *x, int64_t n, int8_t *q, float *d, float *s);
void qn_encode_scalar(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, uint8_t *out);
void qn_quantize_a16_scalar(const float *x, int64_t n, int16_t *q, float *d, float *s);
void qn_rms_norm_scalar(const float *x, const float *w, int64_t n, float eps, float *out);
void qn_layer_norm_scalar(const float *x, const float *w, const float *b, int64_t n, float eps, float *out);
void qn_add_scalar(const float *a, const float *b, int64_t n, float *out);
void qn_scale_scalar(const float *x, float c, int64_t n, float *out);
void qn_softcap_scalar(const float *x, float cap, int64_t n, float *out);
void qn_swiglu_scalar(const float *gate, const float *up, int64_t n, float *out);
void qn_geglu_scalar(const float *gate, const float *up, int64_t n, float *out);
void qn_silu_array_scalar(const float *x, int64_t n, float *out);
void qn_gelu_array_scalar(const float *x, int64_t n, float *out);
void qn_sigmoid_array_scalar(const float *x, int64_t n, float *out);
void qn_softplus_array_scalar(const float *x, int64_t n, float *out);
void qn_relu_scalar(const float *x, int64_t n, float *out);
void qn_relu_sqr_scalar(const float *x, int64_t n, float *out);
void qn_mul_scalar(const float *a, const float *b, int64_t n, float *out);
void qn_clamp_scalar(const float *x, float most, int64_t n, float *out);
void qn_exp_array_scalar(const float *x, int64_t n, float *out);
void qn_rope_scalar(float *x, const float *cos_sin, int32_t n_rot, bool neox);
void qn_softmax_scalar(float *x, int64_t n);
void qn_attention_scalar(const qn_attn_args *a);
void qn_conv_scalar(const qn_conv_args *a);
void qn_scan_scalar(const qn_scan_args *a);
void qn_selective_scalar(const qn_selective_args *a);
int64_t qn_argmax_scalar(const float *x, int64_t n);
int64_t qn_peak_scalar(int64_t rounds);

#endif
