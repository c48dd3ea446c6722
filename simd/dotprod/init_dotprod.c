#include "simd/dotprod/level_dotprod.h"

void qn_init_dotprod(qn_kernels *k);

void qn_init_dotprod(qn_kernels *k)
{
    qn_rows_init_legacy_dotprod(k);
    qn_rows_init_k_dotprod(k);
    qn_rows_init_levels_dotprod(k);
    k->split_a16 = qn_split_a16_dotprod;
    k->split_bytes = 64;
    k->peak = qn_peak_dotprod;
}
