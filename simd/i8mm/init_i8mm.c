#include "simd/i8mm/level_i8mm.h"

void qn_init_i8mm(qn_kernels *k);

/* The split of activations is dotprod's. */
void qn_init_i8mm(qn_kernels *k)
{
    qn_rows_init_legacy_i8mm(k);
    qn_rows_init_k_i8mm(k);
    qn_rows_init_levels_i8mm(k);
    k->peak = qn_peak_i8mm;
}
