#include "simd/avx512/avx512.h"

void qn_init_avx512(qn_kernels *k);

/* The panels are scalar's: `run` alone changes. */
static void row_set(qn_kernels *k, const char *fmt_name, void (*run)(const qn_matmul_args *))
{
    qn_matmul_row *row = qn_kernels_row(k, fmt_name);
    if (!row) return;
    row->isa = "avx512";
    row->run = run;
}

void qn_init_avx512(qn_kernels *k)
{
    row_set(k, "Q4_0", qn_matmul_q4_0_avx512);
    row_set(k, "Q4_1", qn_matmul_q4_1_avx512);
    row_set(k, "Q5_0", qn_matmul_q5_0_avx512);
    row_set(k, "Q5_1", qn_matmul_q5_1_avx512);
    row_set(k, "Q8_0", qn_matmul_q8_0_avx512);
    row_set(k, "Q4_K", qn_matmul_q4_k_avx512);
    row_set(k, "Q5_K", qn_matmul_q5_k_avx512);
    row_set(k, "Q6_K", qn_matmul_q6_k_avx512);
    k->attention = qn_attention_avx512;
    k->peak = qn_peak_avx512;
}
