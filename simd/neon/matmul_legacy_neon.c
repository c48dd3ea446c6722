/* Formats with one scale for 32 weights x A16. */
#include "simd/neon/level_neon.h"
#include "simd/neon/formats_legacy_neon.h"

ARM_FORMATS_LEGACY(ARM_MATMUL)

void qn_rows_init_legacy_neon(qn_kernels *k)
{
    ARM_FORMATS_LEGACY(ARM_ROW)
}
