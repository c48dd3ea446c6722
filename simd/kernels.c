/* The levels of this build, lowest first, and how a table is filled from them. */
#include "simd/kernels.h"

#include <stdio.h>
#include <string.h>

void qn_init_scalar(qn_kernels *k);
#define QN_ISA(name, needs) void qn_init_##name(qn_kernels *k);
#include "isa_list.inc"
#undef QN_ISA

static const qn_isa isas[] = {
    { "scalar", 0, qn_init_scalar },
#define QN_ISA(name, needs) { #name, needs, qn_init_##name },
#include "isa_list.inc"
#undef QN_ISA
};

int32_t qn_isa_count(void)
{
    return (int32_t)(sizeof isas / sizeof *isas);
}

const qn_isa *qn_isa_at(int32_t i)
{
    return &isas[i];
}

static bool runs(const qn_isa *isa, uint32_t flags)
{
    return (isa->needs & ~flags) == 0;
}

/* Index of the level in isas, or -1. */
static int32_t level_find(const char *level, uint32_t flags)
{
    int32_t best = -1;
    for (int32_t i = 0; i < qn_isa_count(); i++)
        if (runs(&isas[i], flags) && (!level || !strcmp(isas[i].name, level))) best = i;
    return best;
}

static qn_status level_unknown(const char *level, uint32_t flags, qn_err *err)
{
    char have[200] = "";
    size_t n = 0;
    for (int32_t i = 0; i < qn_isa_count(); i++)
        if (runs(&isas[i], flags) && n < sizeof have)
            n += (size_t)snprintf(have + n, sizeof have - n, "%s%s", n ? ", " : "", isas[i].name);
    return qn_fail(err, QN_ERR_ARG, "no instruction set level '%.40s' on this machine; it has %s", level, have);
}

/* Put the rows back that this level made inexact. */
static void restore_exact(qn_kernels *k, const qn_matmul_row *before)
{
    for (int32_t id = 0; id < QN_MAX_FMT_ID; id++)
        if (!k->matmul[id].exact) k->matmul[id] = before[id];
}

qn_status qn_kernels_init(qn_kernels *k, const char *level, bool exact, qn_err *err)
{
    /* The scalar table is asked for often, and CPUID costs tens of microseconds under a hypervisor. */
    const uint32_t flags = level && !strcmp(level, isas[0].name) ? 0 : qn_cpu_flags();
    const int32_t top = level_find(level, flags);
    if (top < 0) return level_unknown(level, flags, err);
    memset(k, 0, sizeof *k);
    for (int32_t i = 0; i <= top; i++) {
        if (!runs(&isas[i], flags)) continue;
        qn_matmul_row before[QN_MAX_FMT_ID];
        memcpy(before, k->matmul, sizeof before);
        isas[i].init(k);
        if (exact && i > 0) restore_exact(k, before);
    }
    k->level = isas[top].name;
    return QN_OK;
}

qn_matmul_row *qn_kernels_row(qn_kernels *k, const char *fmt_name)
{
    const qn_fmt *fmt = qn_fmt_by_name(fmt_name);
    return fmt && fmt->id >= 0 && fmt->id < QN_MAX_FMT_ID ? &k->matmul[fmt->id] : NULL;
}

void qn_kernels_kv_set(qn_kernels *k, const char *fmt_name, void (*encode)(const float *x, int32_t dim, void *codes, uint16_t *scales),
                       void (*load_k)(const void *block, int32_t dim, float *out), void (*load_v)(const void *block, int32_t dim, float *out))
{
    const qn_fmt *fmt = qn_fmt_by_name(fmt_name);
    if (!fmt) return;
    qn_kv_row *row = &k->kv[fmt->id];
    if (encode) row->encode = encode;
    if (load_k) row->load_k = load_k;
    if (load_v) row->load_v = load_v;
}

void qn_kernels_row_set(qn_kernels *k, const char *fmt_name, const char *isa, void (*run)(const qn_matmul_args *a),
                        void (*run8)(const qn_matmul_args *a))
{
    qn_matmul_row *row = qn_kernels_row(k, fmt_name);
    if (!row) return;
    row->isa = isa;
    row->run = run;
    row->run8 = run8;
}
