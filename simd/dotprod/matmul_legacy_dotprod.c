/* Formats with one scale for 32 weights x A16. */
#include "simd/dotprod/level_dotprod.h"
#include "simd/neon/formats_legacy_neon.h"

ARM_FORMATS_LEGACY(ARM_MATMUL)

void qn_rows_init_legacy_dotprod(qn_kernels *k)
{
    ARM_FORMATS_LEGACY(ARM_ROW)
}
