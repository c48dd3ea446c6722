/* Formats with levels x A16. */
#include "simd/dotprod/level_dotprod.h"
#include "simd/neon/formats_levels_neon.h"

ARM_FORMATS_LEVELS(ARM_MATMUL)

void qn_rows_init_levels_dotprod(qn_kernels *k)
{
    ARM_FORMATS_LEVELS(ARM_ROW)
}
