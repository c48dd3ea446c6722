/*
 * The pipeline. Tensors are taken one after another; each is cut into pieces, which the threads take in turn: read, decode to float32, check,
 * encode, decode again to measure the error and to check that nothing but finite weights was made, write to the place it has in the new file.
 * No piece waits for another, and memory is a few megabytes a thread.
 */
#include "quant/lanes.h"
#include "src/base/half.h"
#include "src/base/mem.h"
#include "src/base/pool.h"
#include "src/convert/quantize_job.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A piece is read and written at once; within it, what is decoded at a time stays in the nearer caches. Both are multiples of sixteen of the
 * largest blocks: as many as an encoder takes side by side. */
enum { PIECE = 256 * 1024, STEP = 4 * 1024, MAX_WEIGHT_BYTES = 8 };

/* Of one thread. */
typedef struct lane {
    uint8_t *in, *out; /* [PIECE] weights as they are in the files */
    float *w;          /* [PIECE] */
    float *back, *importance; /* [STEP] */
    int64_t i_failed;  /* piece; -1: none */
    qn_err err;
} lane;

/* Of one tensor. */
typedef struct work {
    qn_quantize *q;
    int64_t i_tensor;
    const qn_gguf_tensor *from;
    const qn_job *job;
    const qn_writer *writer;
    const float *importance; /* [matrices][dims[0]], or NULL */
    bool hooked;
    int64_t n_weights, piece, n_pieces; /* weights; weights in a piece */
    double (*sum)[2];        /* [n_pieces] of squares: of the changes, of the weights */
    lane *lanes;             /* [threads] */
    atomic_llong next;       /* piece */
    atomic_bool stop;
    atomic_ullong done;      /* bytes of the source, of all tensors so far */
    uint64_t total;
} work;

/* Some weights of a tensor: [begin, begin + n). */
typedef struct span {
    int64_t begin, n;
} span;

static uint64_t bytes_of(const qn_fmt *f, int64_t n_weights)
{
    return (uint64_t)(n_weights / f->block) * (uint64_t)f->bytes;
}

/* ---- checks ---- */

/* Index of the first that is not finite, or -1. */
static int64_t find_wild(const float *x, int64_t n)
{
    enum { AT_ONCE = 256 };
    for (int64_t at = 0; at < n; at += AT_ONCE) {
        const int64_t end = n - at < AT_ONCE ? n : at + AT_ONCE;
        uint32_t most = 0;
        for (int64_t i = at; i < end; i++) {
            const uint32_t a = qn_f32_bits(x[i]) & 0x7fffffff;
            most = a > most ? a : most;
        }
        for (int64_t i = at; most >= 0x7f800000 && i < end; i++)
            if (!isfinite(x[i])) return i;
    }
    return -1;
}

static qn_status check_finite(const work *k, const float *x, span s, const qn_fmt *f, const char *when, qn_err *err)
{
    const int64_t i = find_wild(x, s.n), n = k->from->info.dims[0];
    if (i < 0) return QN_OK;
    const int64_t at = s.begin + i;
    return qn_fail(err, QN_ERR_NUMERIC, "tensor '%.*s' (%s) has %s in row %lld, column %lld%s", QN_STR_ARG(k->from->info.name), f->name,
                   isnan(x[i]) ? "NaN" : "an infinity", (long long)(at / n), (long long)(at % n), when);
}

/* Squares in double: for weights that are huge. */
static void add_error_wide(const float *w, const float *back, int64_t n, double sum[2])
{
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)w[i] - (double)back[i];
        sum[0] += d * d;
        sum[1] += (double)w[i] * (double)w[i];
    }
}

/* Add the squares of the changes and of the weights, in float32 at first. @return false, nothing added: a weight, before or after, or a square
 * is not finite */
static bool add_error(const float *w, const float *back, int64_t n, double sum[2])
{
    enum { CHAINS = 4, AT_ONCE = 128 * CHAINS * QN_LANES };
    double change = 0, all = 0;
    for (int64_t at = 0; at < n;) {
        const int64_t end = n - at < AT_ONCE ? n : at + AT_ONCE;
        qn_vf d2[CHAINS] = { { 0 } }, w2[CHAINS] = { { 0 } };
        for (; at < end; at += CHAINS * QN_LANES) { /* spans are multiples of that but for the last of a tensor */
            qn_vf a[CHAINS] = { { 0 } }, b[CHAINS] = { { 0 } };
            const int64_t left = (end - at) * (int64_t)sizeof *w;
            const size_t n_bytes = left < (int64_t)sizeof a ? (size_t)left : sizeof a;
            if (n_bytes == sizeof a) {
                memcpy(a, w + at, sizeof a);
                memcpy(b, back + at, sizeof b);
            } else {
                memcpy(a, w + at, n_bytes);
                memcpy(b, back + at, n_bytes);
            }
            for (int i = 0; i < CHAINS; i++) {
                d2[i] += (a[i] - b[i]) * (a[i] - b[i]);
                w2[i] += a[i] * a[i];
            }
        }
        for (int i = 0; i < CHAINS * QN_LANES; i++) {
            change += (double)d2[i / QN_LANES][i % QN_LANES];
            all += (double)w2[i / QN_LANES][i % QN_LANES];
        }
    }
    if (!isfinite(change) || !isfinite(all)) return false;
    sum[0] += change;
    sum[1] += all;
    return true;
}

/* Sum up what encoding a span has changed. Sums that are finite tell that all weights are, before and after: only where they are not is each looked at. */
static qn_status sum_change(const work *k, const float *w, const float *back, span s, double sum[2], qn_err *err)
{
    if (add_error(w, back, s.n, sum)) return QN_OK;
    QN_TRY(check_finite(k, w, s, k->from->fmt, "", err));
    QN_TRY(check_finite(k, back, s, k->job->to, " after encoding", err));
    add_error_wide(w, back, s.n, sum);
    return QN_OK;
}

/* ---- a piece ---- */

/* The importance of a span's weights: that of their columns. */
static const float *importance_of(const work *k, span s, float *out)
{
    const qn_tensor_info *t = &k->from->info;
    if (!k->importance) return NULL;
    for (int64_t at = 0, n; at < s.n; at += n) {
        const int64_t row = (s.begin + at) / t->dims[0], column = (s.begin + at) % t->dims[0];
        n = t->dims[0] - column < s.n - at ? t->dims[0] - column : s.n - at;
        memcpy(out + at, k->importance + row / t->dims[1] * t->dims[0] + column, (size_t)n * sizeof *out);
    }
    return out;
}

/* Make the new bytes of a span in l->out, from the old ones in l->in. */
static qn_status convert(const work *k, lane *l, span s, double sum[2])
{
    const qn_fmt *from = k->from->fmt, *to = k->job->to;
    const int64_t n_row = k->from->info.dims[0];
    if (k->hooked) {
        from->decode(l->in, s.n / from->block, l->w);
        QN_TRY(check_finite(k, l->w, s, from, "", &l->err));
        QN_TRY(k->q->hook.rows(k->q->hook.user, l->w, s.begin / n_row, s.n / n_row, l->out, &l->err));
    }
    for (int64_t at = 0, n; at < s.n; at += n) {
        const span part = { s.begin + at, n = s.n - at < STEP ? s.n - at : STEP };
        float *w = k->hooked ? l->w + at : l->w;
        uint8_t *out = l->out + bytes_of(to, at);
        if (!k->hooked) {
            from->decode(l->in + bytes_of(from, at), n / from->block, w);
            if (to == from) {
                QN_TRY(check_finite(k, w, part, from, "", &l->err));
                continue;
            }
            k->q->kernels.encode(to, w, importance_of(k, part, l->importance), n / to->block, out);
        }
        to->decode(out, n / to->block, l->back);
        QN_TRY(sum_change(k, w, l->back, part, sum, &l->err));
    }
    return QN_OK;
}

static qn_status do_piece(work *k, lane *l, int64_t i)
{
    const qn_fmt *from = k->from->fmt, *to = k->job->to;
    const int64_t begin = i * k->piece, left = k->n_weights - begin;
    const span s = { begin, left < k->piece ? left : k->piece };
    const size_t n_in = (size_t)bytes_of(from, s.n);
    const qn_map *map = &k->q->file->shards[k->from->info.i_shard].map;
    const qn_status read = qn_map_read(map, k->from->info.offset + bytes_of(from, begin), n_in, l->in, &l->err);
    if (read != QN_OK) return qn_fail_in(&l->err, read, "tensor '%.*s'", QN_STR_ARG(k->from->info.name));
    QN_TRY(convert(k, l, s, k->sum[i]));
    const uint8_t *bytes = to == from ? l->in : l->out;
    QN_TRY(qn_writer_place(k->writer, k->job->i_out, bytes_of(to, begin), bytes, (size_t)bytes_of(to, s.n), &l->err));
    atomic_fetch_add(&k->done, n_in);
    return QN_OK;
}

static void do_pieces(void *arg, int32_t i_thread, int32_t n_threads)
{
    (void)n_threads;
    work *k = arg;
    lane *l = &k->lanes[i_thread];
    const qn_quantize *q = k->q;
    l->i_failed = -1;
    for (int64_t i; !atomic_load(&k->stop) && (i = atomic_fetch_add(&k->next, 1)) < k->n_pieces;) {
        qn_status s = do_piece(k, l, i);
        if (s == QN_OK && i_thread == 0 && q->progress && !q->progress(q->progress_user, atomic_load(&k->done), k->total))
            s = qn_fail(&l->err, QN_ERR_CANCELLED, "cancelled in tensor '%.*s'", QN_STR_ARG(k->from->info.name));
        if (s == QN_OK) continue;
        l->i_failed = i;
        atomic_store(&k->stop, true);
    }
}

/* ---- a tensor ---- */

/* Pieces are handed out ascending, so that all before the first that failed were done: its sentence is the same however many threads there are. */
static qn_status first_failure(const work *k, int32_t n_threads, qn_err *err)
{
    const lane *first = NULL;
    for (int32_t i = 0; i < n_threads; i++) {
        const lane *l = &k->lanes[i];
        if (l->i_failed >= 0 && (!first || l->i_failed < first->i_failed)) first = l;
    }
    if (first && err) *err = first->err;
    return first ? first->err.status : QN_OK;
}

static double relative_error(const work *k)
{
    double change = 0, all = 0;
    for (int64_t i = 0; i < k->n_pieces; i++) {
        change += k->sum[i][0];
        all += k->sum[i][1];
    }
    return all > 0 ? sqrt(change / all) : 0;
}

/* Will the hook encode it? Then pieces are whole rows. */
static qn_status ask_hook(work *k, qn_err *err)
{
    const qn_quantize *q = k->q;
    const int64_t n_row = k->from->info.dims[0];
    k->hooked = false;
    if (!q->hook.begin || k->job->to == k->from->fmt || n_row > PIECE) return QN_OK;
    QN_TRY(q->hook.begin(q->hook.user, k->i_tensor, &k->from->info, k->job->to, &k->hooked, err));
    if (k->hooked) k->piece = PIECE / n_row * n_row;
    return QN_OK;
}

static qn_status do_tensor(work *k, qn_pool *pool, int64_t i, float *importance, qn_err *err)
{
    qn_quantize *q = k->q;
    k->i_tensor = i;
    k->from = qn_quantize_source(q, i);
    k->job = &q->job[i];
    k->n_weights = k->from->info.dims[0] * k->from->n_rows;
    k->piece = PIECE;
    QN_TRY(ask_hook(k, err));
    k->importance = k->job->has_importance && !k->hooked ? importance : NULL;
    if (k->importance) qn_importance_weights(q->imatrix, &k->from->info, importance);
    k->n_pieces = (k->n_weights + k->piece - 1) / k->piece;
    k->sum = qn_new((size_t)k->n_pieces, sizeof *k->sum);
    if (!k->sum) return qn_fail(err, QN_ERR_NOMEM, "no memory for tensor '%.*s'", QN_STR_ARG(k->from->info.name));
    atomic_store(&k->next, 0);
    qn_pool_run(pool, do_pieces, k);
    q->job[i].error = relative_error(k);
    free(k->sum);
    return first_failure(k, qn_pool_n_threads(pool), err);
}

/* ---- all ---- */

/* Room for the importance of the tensor that has most; NULL on failure. */
static float *importance_room(const qn_quantize *q)
{
    size_t most = 1;
    for (int64_t i = 0; i < q->n_jobs; i++) {
        const qn_tensor_info *t = &qn_quantize_source(q, i)->info;
        const size_t n = q->job[i].has_importance ? (size_t)(t->dims[0] * t->dims[2] * t->dims[3]) : 0; /* no more than its weights */
        most = n > most ? n : most;
    }
    return qn_new(most, sizeof(float));
}

static bool lane_open(lane *l)
{
    l->in = qn_new(PIECE, MAX_WEIGHT_BYTES);
    l->out = qn_new(PIECE, MAX_WEIGHT_BYTES);
    l->w = qn_new(PIECE, sizeof *l->w);
    l->back = qn_new(STEP, sizeof *l->back);
    l->importance = qn_new(STEP, sizeof *l->importance);
    return l->in && l->out && l->w && l->back && l->importance;
}

static void lanes_close(lane *lanes, int32_t n)
{
    for (int32_t i = 0; lanes && i < n; i++) {
        free(lanes[i].in);
        free(lanes[i].out);
        free(lanes[i].w);
        free(lanes[i].back);
        free(lanes[i].importance);
    }
    free(lanes);
}

static qn_status do_all(qn_quantize *q, qn_writer *const *writers, qn_pool *pool, qn_err *err)
{
    const int32_t n_threads = qn_pool_n_threads(pool);
    work k = { .q = q, .lanes = qn_new((size_t)n_threads, sizeof *k.lanes) };
    float *importance = importance_room(q);
    bool ok = importance && k.lanes;
    for (int32_t i = 0; ok && i < n_threads; i++) ok = lane_open(&k.lanes[i]);
    qn_status s = ok ? QN_OK : qn_fail(err, QN_ERR_NOMEM, "no memory for %d threads that quantise", n_threads);
    for (int64_t i = 0; i < q->n_jobs; i++) k.total += qn_quantize_source(q, i)->info.n_bytes;
    for (int64_t i = 0; i < q->n_jobs && s == QN_OK; i++) {
        const int64_t i_tensor = q->order[i];
        k.writer = writers[q->job[i_tensor].i_file];
        s = do_tensor(&k, pool, i_tensor, importance, err);
    }
    lanes_close(k.lanes, n_threads);
    free(importance);
    if (s == QN_OK && q->progress && !q->progress(q->progress_user, k.total, k.total)) s = qn_fail(err, QN_ERR_CANCELLED, "cancelled at the end");
    return s;
}

qn_status qn_quantize_tensors(qn_quantize *q, qn_writer *const *writers, qn_err *err)
{
    qn_pool *pool;
    QN_TRY(qn_pool_open(&pool, q->n_threads, err));
    const qn_status s = do_all(q, writers, pool, err);
    qn_pool_close(&pool);
    return s;
}
