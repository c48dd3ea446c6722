/* Formats in super-blocks x A16. */
#include "simd/i8mm/level_i8mm.h"
#include "simd/neon/formats_k_neon.h"

ARM_FORMATS_K(ARM_MATMUL)

void qn_rows_init_k_i8mm(qn_kernels *k)
{
    ARM_FORMATS_K(ARM_ROW)
}
