/* The lowest level: everything, in plain C. */
#include "simd/scalar/scalar.h"

void qn_init_scalar(qn_kernels *k);

void qn_row_set_scalar(qn_kernels *k, const char *fmt_name, const qn_matmul_row *row)
{
    qn_matmul_row *slot = qn_kernels_row(k, fmt_name);
    if (slot) *slot = *row;
}

void qn_init_scalar(qn_kernels *k)
{
    qn_rows_init_fallback_scalar(k); /* every number; the rest overrides it */
    qn_rows_init_float_scalar(k);
    qn_rows_init_q4_0_scalar(k);
    qn_rows_init_q4_1_scalar(k);
    qn_rows_init_q5_0_scalar(k);
    qn_rows_init_q5_1_scalar(k);
    qn_rows_init_q8_0_scalar(k);
    qn_rows_init_q4_k_scalar(k);
    qn_rows_init_q5_k_scalar(k);
    qn_rows_init_q6_k_scalar(k);
    qn_rows_init_q2_k_scalar(k);
    qn_rows_init_q3_k_scalar(k);
    qn_rows_init_iq4_nl_scalar(k);
    qn_rows_init_iq4_xs_scalar(k);
    qn_rows_init_mxfp4_scalar(k);
    qn_rows_init_kv_scalar(k);
    k->encode = qn_encode_scalar;
    k->quantize_a16 = qn_quantize_a16_scalar;
    k->quantize_a8 = qn_quantize_a8_scalar;
    k->rms_norm = qn_rms_norm_scalar;
    k->layer_norm = qn_layer_norm_scalar;
    k->add = qn_add_scalar;
    k->scale = qn_scale_scalar;
    k->softcap = qn_softcap_scalar;
    k->swiglu = qn_swiglu_scalar;
    k->geglu = qn_geglu_scalar;
    k->silu = qn_silu_array_scalar;
    k->gelu = qn_gelu_array_scalar;
    k->sigmoid = qn_sigmoid_array_scalar;
    k->softplus = qn_softplus_array_scalar;
    k->relu = qn_relu_scalar;
    k->relu_sqr = qn_relu_sqr_scalar;
    k->mul = qn_mul_scalar;
    k->clamp = qn_clamp_scalar;
    k->rope = qn_rope_scalar;
    k->softmax = qn_softmax_scalar;
    k->exp = qn_exp_array_scalar;
    k->attention = qn_attention_scalar;
    k->conv = qn_conv_scalar;
    k->scan = qn_scan_scalar;
    k->selective = qn_selective_scalar;
    k->argmax = qn_argmax_scalar;
    k->peak = qn_peak_scalar;
}
