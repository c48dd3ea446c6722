#include "simd/kernels.h"

void qn_init_avx2(qn_kernels *k);
void qn_init_avx2(qn_kernels *k)
{
    (void)k;
}
