#include "quant/quant.h"

#include <strings.h>

#define QN_FMT(n) extern const qn_fmt qn_fmt_##n;
#include "fmt_list.inc"
#undef QN_FMT

static const qn_fmt *const fmts[] = {
#define QN_FMT(n) &qn_fmt_##n,
#include "fmt_list.inc"
#undef QN_FMT
};

int32_t qn_fmt_count(void)
{
    return (int32_t)(sizeof fmts / sizeof *fmts);
}

const qn_fmt *qn_fmt_at(int32_t i)
{
    return fmts[i];
}

const qn_fmt *qn_fmt_by_id(int32_t id)
{
    for (int32_t i = 0; i < qn_fmt_count(); i++)
        if (fmts[i]->id == id) return fmts[i];
    return NULL;
}

const qn_fmt *qn_fmt_by_name(const char *name)
{
    for (int32_t i = 0; i < qn_fmt_count(); i++)
        if (!strcasecmp(fmts[i]->name, name)) return fmts[i];
    return NULL;
}

bool qn_fmt_row_bytes(const qn_fmt *fmt, int64_t n, size_t *out)
{
    if (n <= 0 || n % fmt->block) return false;
    const int64_t blocks = n / fmt->block;
    if (blocks > (INT64_MAX >> 1) / fmt->bytes) return false;
    *out = (size_t)(blocks * fmt->bytes);
    return true;
}
