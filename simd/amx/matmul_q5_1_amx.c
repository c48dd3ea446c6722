/* Q5_1 x A16. */
#include "simd/amx/matmul_a16_amx.h"

static const amx_format format = { &qn_q5_1_avx512, 0, 31 };

void qn_matmul_q5_1_amx(const qn_matmul_args *a)
{
    if (a->n_tokens < QN_AMX_TOKENS) qn_matmul_q5_1_avx512vnni(a);
    else qn_matmul_a16_amx(a, &format);
}
