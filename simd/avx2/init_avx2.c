#include "simd/avx2/avx2.h"

void qn_init_avx2(qn_kernels *k);

void qn_init_avx2(qn_kernels *k)
{
    for (int32_t id = 0; id < QN_MAX_FMT_ID; id++) {
        k->matmul[id].isa = "avx2";
        k->matmul[id].run = qn_matmul_fallback_avx2;
    }
    qn_kernels_row_set(k, "F32", "avx2", qn_matmul_f32_avx2, NULL);
    qn_kernels_row_set(k, "F16", "avx2", qn_matmul_f16_avx2, NULL);
    qn_kernels_row_set(k, "BF16", "avx2", qn_matmul_bf16_avx2, NULL);
    QN_SET_PRODUCTS(avx2) /* the panels are scalar's: products alone change */
    k->encode = qn_encode_avx2;
    k->quantize_a16 = qn_quantize_a16_avx2;
    k->quantize_a8 = qn_quantize_a8_avx2;
    k->rms_norm = qn_rms_norm_avx2;
    k->layer_norm = qn_layer_norm_avx2;
    k->softmax = qn_softmax_avx2;
    k->add = qn_add_avx2;
    k->scale = qn_scale_avx2;
    k->softcap = qn_softcap_avx2;
    k->swiglu = qn_swiglu_avx2;
    k->geglu = qn_geglu_avx2;
    k->silu = qn_silu_array_avx2;
    k->gelu = qn_gelu_array_avx2;
    k->exp = qn_exp_array_avx2;
    k->rope = qn_rope_avx2;
    k->argmax = qn_argmax_avx2;
    k->peak = qn_peak_avx2;
    qn_rows_init_kv_avx2(k);
    k->attention = qn_attention_avx2;
    k->sigmoid = qn_sigmoid_array_avx2;
    k->softplus = qn_softplus_array_avx2;
    k->conv = qn_conv_avx2;
    k->scan = qn_scan_avx2;
    k->selective = qn_selective_avx2;
}
