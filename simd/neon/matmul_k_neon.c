/* Formats in super-blocks x A16. */
#include "simd/neon/level_neon.h"
#include "simd/neon/formats_k_neon.h"

ARM_FORMATS_K(ARM_MATMUL)

void qn_rows_init_k_neon(qn_kernels *k)
{
    ARM_FORMATS_K(ARM_ROW)
}
