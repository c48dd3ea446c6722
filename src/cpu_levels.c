/* The instruction set levels of this machine, as the public header shows them. */
#include "simd/kernels.h"

int32_t qn_cpu_levels(const char **names, int32_t cap)
{
    const uint32_t flags = qn_cpu_flags();
    int32_t n = 0;
    for (int32_t i = 0; i < qn_isa_count(); i++) {
        const qn_isa *isa = qn_isa_at(i);
        if (isa->needs & ~flags) continue;
        if (n < cap) names[n] = isa->name;
        n++;
    }
    return n;
}
