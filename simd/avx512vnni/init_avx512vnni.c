#include "simd/avx512vnni/avx512vnni.h"

void qn_init_avx512vnni(qn_kernels *k);

void qn_init_avx512vnni(qn_kernels *k)
{
    QN_SET_PRODUCTS(avx512vnni) /* the panels are scalar's: products alone change */
    k->peak = qn_peak_avx512vnni;
}
