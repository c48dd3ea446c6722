/* Names of the formats of the KV cache. */
#include "src/run/engine.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

qn_status qn_kv_row_find(const qn_kernels *k, const char *name, const qn_kv_row **out, qn_err *err)
{
    char have[200] = "";
    if (!name) name = "F16";
    for (int32_t i = 0; i < qn_fmt_count(); i++) {
        const qn_fmt *fmt = qn_fmt_at(i);
        *out = &k->kv[fmt->id]; /* below QN_MAX_FMT_ID: the table of products has every format */
        if ((*out)->kind == QN_KV_ABSENT) continue;
        if (!strcasecmp(fmt->name, name)) return QN_OK;
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", *have ? ", " : "", fmt->name);
    }
    *out = NULL;
    return qn_fail(err, QN_ERR_ARG, "keys and values cannot be kept as '%.40s'; there are %s", name, have);
}

int32_t qn_cache_types(const char **names, int32_t cap)
{
    qn_kernels k;
    int32_t n = 0;
    if (qn_kernels_init(&k, "scalar", true, NULL) != QN_OK) return 0;
    for (int32_t i = 0; i < qn_fmt_count(); i++) {
        if (k.kv[qn_fmt_at(i)->id].kind == QN_KV_ABSENT) continue;
        if (n < cap) names[n] = qn_fmt_at(i)->name;
        n++;
    }
    return n;
}
