/* Q4_0 x A16. */
#include "simd/amx/matmul_a16_amx.h"

static const amx_format format = { &qn_q4_0_avx512, -8, 7 };

void qn_matmul_q4_0_amx(const qn_matmul_args *a)
{
    if (a->n_tokens < QN_AMX_TOKENS) qn_matmul_q4_0_avx512vnni(a);
    else qn_matmul_a16_amx(a, &format);
}
