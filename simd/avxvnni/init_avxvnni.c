#include "simd/avxvnni/avxvnni.h"

void qn_init_avxvnni(qn_kernels *k);

void qn_init_avxvnni(qn_kernels *k)
{
    QN_SET_PRODUCTS(avxvnni) /* the panels are scalar's: products alone change */
    k->peak = qn_peak_avxvnni;
}
