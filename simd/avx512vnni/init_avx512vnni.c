#include "simd/avx512vnni/avx512vnni.h"

void qn_init_avx512vnni(qn_kernels *k);

/* The panels are scalar's: `run` and `run8` alone change. */
static void row_set(qn_kernels *k, const char *fmt_name, void (*run)(const qn_matmul_args *), void (*run8)(const qn_matmul_args *))
{
    qn_matmul_row *row = qn_kernels_row(k, fmt_name);
    if (!row) return;
    row->isa = "avx512vnni";
    row->run = run;
    row->run8 = run8;
}

void qn_init_avx512vnni(qn_kernels *k)
{
    row_set(k, "Q4_0", qn_matmul_q4_0_avx512vnni, qn_matmul8_q4_0_avx512vnni);
    row_set(k, "Q4_1", qn_matmul_q4_1_avx512vnni, qn_matmul8_q4_1_avx512vnni);
    row_set(k, "Q5_0", qn_matmul_q5_0_avx512vnni, qn_matmul8_q5_0_avx512vnni);
    row_set(k, "Q5_1", qn_matmul_q5_1_avx512vnni, qn_matmul8_q5_1_avx512vnni);
    row_set(k, "Q8_0", qn_matmul_q8_0_avx512vnni, qn_matmul8_q8_0_avx512vnni);
    row_set(k, "Q4_K", qn_matmul_q4_k_avx512vnni, qn_matmul8_q4_k_avx512vnni);
    row_set(k, "Q5_K", qn_matmul_q5_k_avx512vnni, qn_matmul8_q5_k_avx512vnni);
    row_set(k, "Q6_K", qn_matmul_q6_k_avx512vnni, qn_matmul8_q6_k_avx512vnni);
    row_set(k, "Q2_K", qn_matmul_q2_k_avx512vnni, qn_matmul8_q2_k_avx512vnni);
    row_set(k, "Q3_K", qn_matmul_q3_k_avx512vnni, qn_matmul8_q3_k_avx512vnni);
    row_set(k, "IQ4_NL", qn_matmul_iq4_nl_avx512vnni, qn_matmul8_iq4_nl_avx512vnni);
    row_set(k, "IQ4_XS", qn_matmul_iq4_xs_avx512vnni, qn_matmul8_iq4_xs_avx512vnni);
    row_set(k, "MXFP4", qn_matmul_mxfp4_avx512vnni, qn_matmul8_mxfp4_avx512vnni);
    k->peak = qn_peak_avx512vnni;
}
