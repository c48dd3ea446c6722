#include "models/model.h"

#include <string.h>

#define QN_ARCH(n) extern const qn_arch qn_arch_##n;
#include "arch_list.inc"
#undef QN_ARCH

static const qn_arch *const archs[] = {
#define QN_ARCH(n) &qn_arch_##n,
#include "arch_list.inc"
#undef QN_ARCH
};

int32_t qn_arch_count(void)
{
    return (int32_t)(sizeof archs / sizeof *archs);
}

const qn_arch *qn_arch_at(int32_t i)
{
    return archs[i];
}

const qn_arch *qn_arch_find(qn_str name)
{
    for (int32_t i = 0; i < qn_arch_count(); i++)
        if (strlen(archs[i]->name) == name.len && !memcmp(archs[i]->name, name.ptr, name.len)) return archs[i];
    return NULL;
}
