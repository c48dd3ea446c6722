#include "simd/amx/amx.h"

void qn_init_amx(qn_kernels *k);

/* The panels are scalar's: `run` alone changes. */
static void row_set(qn_kernels *k, const char *fmt_name, void (*run)(const qn_matmul_args *))
{
    qn_matmul_row *row = qn_kernels_row(k, fmt_name);
    if (!row) return;
    row->isa = "amx";
    row->run = run;
}

/* F32, F16 and BF16 weights stay with the level below: their definition is a chain of fmas in float32 along the row, and so is that of attention. A
 * tile product sums pairs of columns apart and takes bf16 alone. */
void qn_init_amx(qn_kernels *k)
{
    row_set(k, "Q4_0", qn_matmul_q4_0_amx);
    row_set(k, "Q4_1", qn_matmul_q4_1_amx);
    row_set(k, "Q5_0", qn_matmul_q5_0_amx);
    row_set(k, "Q5_1", qn_matmul_q5_1_amx);
    row_set(k, "Q8_0", qn_matmul_q8_0_amx);
    row_set(k, "Q4_K", qn_matmul_q4_k_amx);
    row_set(k, "Q5_K", qn_matmul_q5_k_amx);
    row_set(k, "Q6_K", qn_matmul_q6_k_amx);
    k->split_a16 = qn_split_a16_amx;
    k->split_bytes = QN_SPLIT_AMX;
    k->peak = qn_peak_amx;
}
