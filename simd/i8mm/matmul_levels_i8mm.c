/* Formats with levels x A16. */
#include "simd/i8mm/level_i8mm.h"
#include "simd/neon/formats_levels_neon.h"

ARM_FORMATS_LEVELS(ARM_MATMUL)

void qn_rows_init_levels_i8mm(qn_kernels *k)
{
    ARM_FORMATS_LEVELS(ARM_ROW)
}
