#include "simd/avx512/avx512.h"

void qn_init_avx512(qn_kernels *k);

/* The panels are scalar's: `run` and `run8` alone change. */
static void row_set(qn_kernels *k, const char *fmt_name, void (*run)(const qn_matmul_args *), void (*run8)(const qn_matmul_args *))
{
    qn_matmul_row *row = qn_kernels_row(k, fmt_name);
    if (!row) return;
    row->isa = "avx512";
    row->run = run;
    row->run8 = run8;
}

void qn_init_avx512(qn_kernels *k)
{
    row_set(k, "F32", qn_matmul_f32_avx512, NULL);
    row_set(k, "F16", qn_matmul_f16_avx512, NULL);
    row_set(k, "BF16", qn_matmul_bf16_avx512, NULL);
    row_set(k, "Q4_0", qn_matmul_q4_0_avx512, qn_matmul8_q4_0_avx512);
    row_set(k, "Q4_1", qn_matmul_q4_1_avx512, qn_matmul8_q4_1_avx512);
    row_set(k, "Q5_0", qn_matmul_q5_0_avx512, qn_matmul8_q5_0_avx512);
    row_set(k, "Q5_1", qn_matmul_q5_1_avx512, qn_matmul8_q5_1_avx512);
    row_set(k, "Q8_0", qn_matmul_q8_0_avx512, qn_matmul8_q8_0_avx512);
    row_set(k, "Q4_K", qn_matmul_q4_k_avx512, qn_matmul8_q4_k_avx512);
    row_set(k, "Q5_K", qn_matmul_q5_k_avx512, qn_matmul8_q5_k_avx512);
    row_set(k, "Q6_K", qn_matmul_q6_k_avx512, qn_matmul8_q6_k_avx512);
    row_set(k, "Q2_K", qn_matmul_q2_k_avx512, qn_matmul8_q2_k_avx512);
    row_set(k, "Q3_K", qn_matmul_q3_k_avx512, qn_matmul8_q3_k_avx512);
    row_set(k, "IQ4_NL", qn_matmul_iq4_nl_avx512, qn_matmul8_iq4_nl_avx512);
    row_set(k, "IQ4_XS", qn_matmul_iq4_xs_avx512, qn_matmul8_iq4_xs_avx512);
    row_set(k, "MXFP4", qn_matmul_mxfp4_avx512, qn_matmul8_mxfp4_avx512);
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
    k->store_v = qn_store_v_avx512;
    k->argmax = qn_argmax_avx512;
    k->attention = qn_attention_avx512;
    k->peak = qn_peak_avx512;
}
