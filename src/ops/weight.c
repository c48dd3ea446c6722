#include "src/ops/weight.h"

#include "simd/kernels.h"
#include "src/base/mem.h"

/* Packing is the same at every level, so the scalar table knows it for all. The table is pure data: made where it is needed. */
static void packing_of(const qn_fmt *fmt, qn_matmul_row *row)
{
    qn_kernels k;
    (void)qn_kernels_init(&k, "scalar", true, NULL);
    *row = k.matmul[fmt->id];
}

bool qn_weight_describe(qn_weight *w, const qn_fmt *fmt, int64_t i_tensor, int64_t n_rows, int64_t n_cols)
{
    qn_matmul_row row;
    packing_of(fmt, &row);
    *w = (qn_weight){ .fmt = fmt, .i_tensor = i_tensor, .n_cols = n_cols, .n_rows = n_rows };
    w->n_panels = (w->n_rows + QN_PANEL - 1) / QN_PANEL;
    w->panel_bytes = row.panel_bytes(fmt, w->n_cols);
    return qn_size_mul((size_t)w->n_panels, w->panel_bytes, &w->n_bytes);
}

qn_status qn_weight_bind(qn_weight *w, const qn_file *file, int64_t i_tensor, int64_t first, int64_t n_rows, qn_err *err)
{
    qn_tensor_info t;
    if (!qn_file_tensor_at(file, i_tensor, &t)) return qn_fail(err, QN_ERR_NOT_FOUND, "no tensor %lld", (long long)i_tensor);
    const qn_fmt *fmt = qn_fmt_by_id(t.type);
    size_t row_bytes;
    if (!fmt || t.type < 0 || t.type >= QN_MAX_FMT_ID || !qn_fmt_row_bytes(fmt, t.dims[0], &row_bytes))
        return qn_fail(err, QN_ERR_UNSUPPORTED, "tensor %.*s has a type that cannot be multiplied", QN_STR_ARG(t.name));
    if (!qn_weight_describe(w, fmt, i_tensor, n_rows, t.dims[0])) return qn_fail(err, QN_ERR_FORMAT, "tensor %.*s is too large", QN_STR_ARG(t.name));
    w->first_row = first;
    return QN_OK;
}

qn_status qn_vector_bind(qn_vector *v, const qn_file *file, int64_t i_tensor, int64_t first, int64_t n, qn_err *err)
{
    qn_tensor_info t;
    if (!qn_file_tensor_at(file, i_tensor, &t)) return qn_fail(err, QN_ERR_NOT_FOUND, "no tensor %lld", (long long)i_tensor);
    const qn_fmt *fmt = qn_fmt_by_id(t.type);
    if (!fmt) return qn_fail(err, QN_ERR_UNSUPPORTED, "tensor %.*s has a type without decoder", QN_STR_ARG(t.name));
    if (first % fmt->block || n % fmt->block)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "tensor %.*s has blocks of %d elements over the end of a vector", QN_STR_ARG(t.name), fmt->block);
    *v = (qn_vector){ .fmt = fmt, .i_tensor = i_tensor, .first = first, .n = n };
    return QN_OK;
}

bool qn_weight_reads_a16(const qn_weight *w)
{
    qn_matmul_row row;
    packing_of(w->fmt, &row);
    return row.act == QN_ACT_A16;
}

size_t qn_vector_bytes(const qn_vector *v)
{
    return ((size_t)v->n * sizeof(float) + 63) & ~(size_t)63;
}

typedef struct pack_job {
    const qn_weight *w;
    const uint8_t *bytes;
    int64_t begin, end;
    size_t row_bytes;
    qn_matmul_row row;
} pack_job;

static size_t row_bytes_of(const qn_weight *w)
{
    size_t n = 0;
    (void)qn_fmt_row_bytes(w->fmt, w->n_cols, &n); /* checked by the binding */
    return n;
}

static void pack_part(void *arg, int32_t i_thread, int32_t n_threads)
{
    const pack_job *j = arg;
    const qn_weight *w = j->w;
    int64_t begin, end;
    qn_split(j->end - j->begin, i_thread, n_threads, &begin, &end);
    for (int64_t p = j->begin + begin; p < j->begin + end; p++) {
        const int64_t left = w->n_rows - p * QN_PANEL;
        j->row.pack(w->fmt, j->bytes + (size_t)p * QN_PANEL * j->row_bytes, j->row_bytes, left < QN_PANEL ? left : QN_PANEL, w->n_cols,
                    w->panels + (size_t)p * w->panel_bytes);
    }
}

void qn_weight_pack(const qn_weight *w, const uint8_t *bytes, int64_t begin, int64_t end, qn_pool *pool)
{
    pack_job job = { .w = w, .bytes = bytes, .begin = begin, .end = end, .row_bytes = row_bytes_of(w) };
    packing_of(w->fmt, &job.row);
    qn_pool_run(pool, pack_part, &job);
}

size_t qn_weight_file_bytes(const qn_weight *w)
{
    return row_bytes_of(w) * QN_PANEL;
}

size_t qn_weight_file_offset(const qn_weight *w)
{
    return row_bytes_of(w) * (size_t)w->first_row;
}

void qn_vector_load(const qn_vector *v, const uint8_t *bytes)
{
    v->fmt->decode(bytes + (size_t)(v->first / v->fmt->block) * (size_t)v->fmt->bytes, v->n / v->fmt->block, v->w);
}
