#include "simd/kernels.h"

void qn_init_avx512bf16(qn_kernels *k);

/* Nothing gains: isa.cmake has the numbers. */
void qn_init_avx512bf16(qn_kernels *k)
{
    (void)k;
}
