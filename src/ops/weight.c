#include "src/ops/weight.h"

#include "simd/kernels.h"
#include "src/base/mem.h"

_Static_assert(QN_PANEL == 16, "qn_weight_row_at counts in panels");

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
    *w = (qn_weight){ .fmt = fmt, .i_tensor = i_tensor, .n_parts = 1, .n_cols = n_cols, .n_rows = n_rows, .part_rows = n_rows };
    w->n_panels = (w->n_rows + QN_PANEL - 1) / QN_PANEL;
    w->panel_bytes = row.panel_bytes(fmt, w->n_cols);
    return qn_size_mul((size_t)w->n_panels, w->panel_bytes, &w->n_bytes);
}

qn_status qn_weight_bind(qn_weight *w, const qn_file *file, int64_t i_tensor, const qn_slice *s, qn_err *err)
{
    qn_tensor_info t;
    if (!qn_file_tensor_at(file, i_tensor, &t)) return qn_fail(err, QN_ERR_NOT_FOUND, "no tensor %lld", (long long)i_tensor);
    const qn_fmt *fmt = qn_fmt_by_id(t.type);
    size_t row_bytes;
    if (!fmt || t.type < 0 || t.type >= QN_MAX_FMT_ID || !qn_fmt_row_bytes(fmt, t.dims[0], &row_bytes))
        return qn_fail(err, QN_ERR_UNSUPPORTED, "tensor %.*s has a type that cannot be multiplied", QN_STR_ARG(t.name));
    if (!qn_weight_describe(w, fmt, i_tensor, s->n_rows, t.dims[0]) || !qn_size_mul(w->n_bytes, (size_t)s->n_parts, &w->n_bytes))
        return qn_fail(err, QN_ERR_FORMAT, "tensor %.*s is too large", QN_STR_ARG(t.name));
    w->n_parts = s->n_parts;
    w->first_row = s->first;
    w->part_rows = s->stride;
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

static size_t round64(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

size_t qn_vector_bytes(const qn_vector *v)
{
    return round64((size_t)v->n * sizeof(float));
}

size_t qn_weight_bytes(const qn_weight *w)
{
    return w->n_bytes + (w->on_use ? round64((size_t)w->n_parts) : 0); /* n_bytes is bounded by the file's, far below what would wrap */
}

void qn_weight_place(qn_weight *w, const qn_map *map, size_t map_at, uint8_t *place)
{
    w->panels = place;
    if (!w->on_use && !w->in_file) return;
    w->map = map;
    w->map_at = map_at;
    if (w->on_use) w->state = (atomic_uchar *)(void *)(place + w->n_bytes);
}

static size_t row_bytes_of(const qn_weight *w)
{
    size_t n = 0;
    (void)qn_fmt_row_bytes(w->fmt, w->n_cols, &n); /* checked by the binding */
    return n;
}

size_t qn_weight_file_at(const qn_weight *w, int64_t i_panel)
{
    return (size_t)qn_weight_row_at(w, i_panel) * row_bytes_of(w);
}

size_t qn_weight_part_file_bytes(const qn_weight *w)
{
    return (size_t)w->n_rows * row_bytes_of(w);
}

void qn_weight_leave(qn_weight *w)
{
    w->in_file = true;
    w->n_bytes = 0;
}

void qn_weight_read_row(const qn_weight *w, int64_t row, float *out)
{
    w->fmt->decode(w->map->ptr + w->map_at + (size_t)row * row_bytes_of(w), w->n_cols / w->fmt->block, out);
}

void qn_weight_pack_panels(const qn_weight *w, const uint8_t *bytes, int64_t begin, int64_t end)
{
    const size_t row_bytes = row_bytes_of(w);
    qn_matmul_row row;
    packing_of(w->fmt, &row);
    for (int64_t p = begin; p < end; p++) {
        const int64_t left = w->n_rows - p % w->n_panels * QN_PANEL;
        row.pack(w->fmt, bytes + qn_weight_file_at(w, p), row_bytes, left < QN_PANEL ? left : QN_PANEL, w->n_cols,
                 w->panels + (size_t)p * w->panel_bytes);
    }
}

typedef struct pack_job {
    const qn_weight *w;
    const uint8_t *bytes;
    int64_t begin, end;
} pack_job;

static void pack_part(void *arg, int32_t i_thread, int32_t n_threads)
{
    const pack_job *j = arg;
    int64_t begin, end;
    qn_split(j->end - j->begin, i_thread, n_threads, &begin, &end);
    qn_weight_pack_panels(j->w, j->bytes, j->begin + begin, j->begin + end);
}

void qn_weight_pack(const qn_weight *w, const uint8_t *bytes, int64_t begin, int64_t end, qn_pool *pool)
{
    qn_pool_run(pool, pack_part, &(pack_job){ w, bytes, begin, end });
}

qn_status qn_vector_turn(qn_vector *v, int64_t n_cols, qn_err *err)
{
    if (n_cols < 1 || n_cols > QN_MAX_ACROSS || v->n % n_cols || n_cols % v->fmt->block)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "%lld elements in rows of %lld cannot be turned", (long long)v->n, (long long)n_cols);
    v->across = n_cols;
    return QN_OK;
}

void qn_vector_load(const qn_vector *v, const uint8_t *bytes)
{
    const uint8_t *from = bytes + (size_t)(v->first / v->fmt->block) * (size_t)v->fmt->bytes;
    if (!v->across) {
        v->fmt->decode(from, v->n / v->fmt->block, v->w);
        return;
    }
    const int64_t n_rows = v->n / v->across, n_blocks = v->across / v->fmt->block;
    float row[QN_MAX_ACROSS];
    for (int64_t i = 0; i < n_rows; i++, from += n_blocks * v->fmt->bytes) {
        v->fmt->decode(from, n_blocks, row);
        for (int64_t j = 0; j < v->across; j++) v->w[j * n_rows + i] = row[j];
    }
}
