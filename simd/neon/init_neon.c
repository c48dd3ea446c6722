#include "simd/neon/neon.h"

void qn_init_neon(qn_kernels *k);

void qn_init_neon(qn_kernels *k)
{
    qn_rows_init_float_neon(k); /* every number; the rest overrides it */
    qn_rows_init_legacy_neon(k);
    qn_rows_init_k_neon(k);
    qn_rows_init_levels_neon(k);
    k->quantize_a16 = qn_quantize_a16_neon;
    k->rms_norm = qn_rms_norm_neon;
    k->layer_norm = qn_layer_norm_neon;
    k->softmax = qn_softmax_neon;
    k->add = qn_add_neon;
    k->scale = qn_scale_neon;
    k->softcap = qn_softcap_neon;
    k->swiglu = qn_swiglu_neon;
    k->geglu = qn_geglu_neon;
    k->silu = qn_silu_array_neon;
    k->gelu = qn_gelu_array_neon;
    k->exp = qn_exp_array_neon;
    k->rope = qn_rope_neon;
    k->argmax = qn_argmax_neon;
    k->peak = qn_peak_neon;
    qn_rows_init_kv_neon(k);
    k->attention = qn_attention_neon;
    k->sigmoid = qn_sigmoid_array_neon;
    k->softplus = qn_softplus_array_neon;
    k->conv = qn_conv_neon;
    k->scan = qn_scan_neon;
    k->selective = qn_selective_neon;
}
