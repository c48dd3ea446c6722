#include "simd/avx512/avx512.h"

void qn_init_avx512(qn_kernels *k);

void qn_init_avx512(qn_kernels *k)
{
    qn_kernels_row_set(k, "F32", "avx512", qn_matmul_f32_avx512, NULL);
    qn_kernels_row_set(k, "F16", "avx512", qn_matmul_f16_avx512, NULL);
    qn_kernels_row_set(k, "BF16", "avx512", qn_matmul_bf16_avx512, NULL);
    QN_SET_PRODUCTS(avx512) /* the panels are scalar's: products alone change */
    k->encode = qn_encode_avx512;
    k->quantize_a16 = qn_quantize_a16_avx512;
    k->rms_norm = qn_rms_norm_avx512;
    k->layer_norm = qn_layer_norm_avx512;
    k->softmax = qn_softmax_avx512;
    k->add = qn_add_avx512;
    k->scale = qn_scale_avx512;
    k->softcap = qn_softcap_avx512;
    k->swiglu = qn_swiglu_avx512;
    k->geglu = qn_geglu_avx512;
    k->silu = qn_silu_array_avx512;
    k->gelu = qn_gelu_array_avx512;
    k->exp = qn_exp_array_avx512;
    k->rope = qn_rope_avx512;
    k->argmax = qn_argmax_avx512;
    qn_rows_init_kv_avx512(k);
    k->attention = qn_attention_avx512;
    k->sigmoid = qn_sigmoid_array_avx512;
    k->softplus = qn_softplus_array_avx512;
    k->conv = qn_conv_avx512;
    k->scan = qn_scan_avx512;
    k->selective = qn_selective_avx512;
    k->peak = qn_peak_avx512;
}
