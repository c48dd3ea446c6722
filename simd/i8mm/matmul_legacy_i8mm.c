/* Formats with one scale for 32 weights x A16. */
#include "simd/i8mm/level_i8mm.h"
#include "simd/neon/formats_legacy_neon.h"

ARM_FORMATS_LEGACY(ARM_MATMUL)

void qn_rows_init_legacy_i8mm(qn_kernels *k)
{
    ARM_FORMATS_LEGACY(ARM_ROW)
}
