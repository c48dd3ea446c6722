#include "src/ops/weight_encode.h"

#include "src/base/mem.h"

#include <stdlib.h>

bool qn_weight_describe_in(qn_weight *w, const qn_fmt *fmt)
{
    const qn_weight as = *w;
    if (!qn_weight_describe(w, fmt, as.i_tensor, as.n_rows, as.n_cols) || !qn_size_mul(w->n_bytes, (size_t)as.n_parts, &w->n_bytes)) return false;
    w->n_parts = as.n_parts;
    w->first_row = as.first_row;
    w->part_rows = as.part_rows;
    return true;
}

typedef struct encode_job {
    const qn_weight *w;
    const qn_fmt *from;
    const uint8_t *bytes;
    int64_t begin, end;      /* panels                                                       */
    size_t from_bytes, to_bytes; /* of a row                                                 */
    const qn_kernels *k;
    float *row;              /* [n_threads][n_cols]                                          */
    uint8_t *rows;           /* [n_threads][QN_PANEL][to_bytes]                              */
} encode_job;

static void encode_part(void *arg, int32_t i_thread, int32_t n_threads)
{
    const encode_job *j = arg;
    const qn_weight *w = j->w;
    float *row = j->row + i_thread * w->n_cols;
    uint8_t *rows = j->rows + (size_t)i_thread * QN_PANEL * j->to_bytes;
    int64_t begin, end;
    qn_split(j->end - j->begin, i_thread, n_threads, &begin, &end);
    for (int64_t p = j->begin + begin; p < j->begin + end; p++) {
        const int64_t left = w->n_rows - p % w->n_panels * QN_PANEL, n = left < QN_PANEL ? left : QN_PANEL;
        for (int64_t r = 0; r < n; r++) {
            j->from->decode(j->bytes + (size_t)(qn_weight_row_at(w, p) + r) * j->from_bytes, w->n_cols / j->from->block, row);
            j->k->encode(w->fmt, row, NULL, w->n_cols / w->fmt->block, rows + (size_t)r * j->to_bytes);
        }
        j->k->matmul[w->fmt->id].pack(w->fmt, rows, j->to_bytes, n, w->n_cols, w->panels + (size_t)p * w->panel_bytes);
    }
}

qn_status qn_weight_encode(const qn_weight *w, const qn_fmt *from, const uint8_t *bytes, int64_t begin, int64_t end, const qn_kernels *k, qn_pool *pool,
                           qn_err *err)
{
    const size_t n_threads = (size_t)qn_pool_n_threads(pool);
    encode_job job = { .w = w, .from = from, .bytes = bytes, .begin = begin, .end = end, .k = k };
    (void)qn_fmt_row_bytes(from, w->n_cols, &job.from_bytes); /* checked by the binding */
    (void)qn_fmt_row_bytes(w->fmt, w->n_cols, &job.to_bytes);
    job.row = qn_new(n_threads * (size_t)w->n_cols, sizeof *job.row);
    job.rows = qn_new(n_threads * QN_PANEL, job.to_bytes);
    const bool known = job.row && job.rows;
    if (known) qn_pool_run(pool, encode_part, &job);
    free(job.row);
    free(job.rows);
    return known ? QN_OK : qn_fail(err, QN_ERR_NOMEM, "no memory to quantise the rows of a matrix");
}

bool qn_weight_turn(qn_weight *w)
{
    const qn_weight as = *w;
    if (!qn_weight_describe(w, qn_fmt_by_name("F32"), as.i_tensor, as.n_cols, as.n_rows) || !qn_size_mul(w->n_bytes, (size_t)as.n_parts, &w->n_bytes))
        return false;
    w->n_parts = as.n_parts;
    w->first_row = as.first_row;
    w->part_rows = as.part_rows;
    w->turned = true;
    return true;
}

/* A part is a task: its rows of the file become columns of `rows`, [n_threads][n_rows][n_cols]. */
static void turn_part(void *arg, int32_t i_thread, int32_t n_threads)
{
    const encode_job *j = arg;
    const qn_weight *w = j->w;
    float *row = j->row + i_thread * w->n_rows, *turned = (float *)(void *)j->rows + i_thread * w->n_rows * w->n_cols;
    int64_t begin, end;
    qn_split(w->n_parts, i_thread, n_threads, &begin, &end);
    for (int64_t part = begin; part < end; part++) {
        for (int64_t c = 0; c < w->n_cols; c++) {
            j->from->decode(j->bytes + (size_t)(w->first_row + part * w->part_rows + c) * j->from_bytes, w->n_rows / j->from->block, row);
            for (int64_t r = 0; r < w->n_rows; r++) turned[r * w->n_cols + c] = row[r];
        }
        for (int64_t p = 0; p < w->n_panels; p++) {
            const int64_t left = w->n_rows - p * QN_PANEL, n = left < QN_PANEL ? left : QN_PANEL;
            j->k->matmul[w->fmt->id].pack(w->fmt, (const uint8_t *)(turned + p * QN_PANEL * w->n_cols), j->to_bytes, n, w->n_cols,
                                          w->panels + (size_t)(part * w->n_panels + p) * w->panel_bytes);
        }
    }
}

qn_status qn_weight_encode_turned(const qn_weight *w, const qn_fmt *from, const uint8_t *bytes, const qn_kernels *k, qn_pool *pool, qn_err *err)
{
    const size_t n_threads = (size_t)qn_pool_n_threads(pool);
    encode_job job = { .w = w, .from = from, .bytes = bytes, .k = k };
    (void)qn_fmt_row_bytes(from, w->n_rows, &job.from_bytes); /* checked by the binding */
    (void)qn_fmt_row_bytes(w->fmt, w->n_cols, &job.to_bytes);
    job.row = qn_new(n_threads * (size_t)w->n_rows, sizeof *job.row);
    job.rows = qn_new(n_threads * (size_t)w->n_rows, job.to_bytes);
    const bool known = job.row && job.rows;
    if (known) qn_pool_run(pool, turn_part, &job);
    free(job.row);
    free(job.rows);
    return known ? QN_OK : qn_fail(err, QN_ERR_NOMEM, "no memory to turn a matrix");
}
