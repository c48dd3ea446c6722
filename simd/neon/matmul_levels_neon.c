/* Formats with levels x A16. */
#include "simd/neon/level_neon.h"
#include "simd/neon/formats_levels_neon.h"

ARM_FORMATS_LEVELS(ARM_MATMUL)

void qn_rows_init_levels_neon(qn_kernels *k)
{
    ARM_FORMATS_LEVELS(ARM_ROW)
}
