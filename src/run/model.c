#include "src/run/open_model.h"

#include "src/base/mem.h"
#include "src/base/opts.h"
#include "src/base/sysmem.h"
#include "src/format/keys.h"
#include "src/ops/weight_encode.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A key's text as a C string; "" when the key is absent or no text. NULL: no memory. */
static char *text_of(const qn_file *file, const char *key)
{
    qn_value v;
    qn_str s = { "", 0 };
    if (qn_file_key(file, key, &v)) (void)qn_value_as_str(&v, &s);
    char *out = qn_new(s.len + 1, 1);
    if (out) memcpy(out, s.ptr, s.len);
    return out;
}

/* First pass over weights and vectors: how large. Second: where. Third: contents. */
typedef struct loader {
    qn_model *m;
    size_t at;
    qn_pool *pool;
    qn_kernels kernels;      /* encode what the file has in another format                   */
    const qn_model_opts *opts; /* NULL while sizes alone are asked for                       */
    qn_err *err;
} loader;

static qn_status add_size(loader *l, size_t n)
{
    return qn_size_add(l->at, n, &l->at) ? QN_OK : qn_fail(l->err, QN_ERR_NOMEM, "the weights are larger than memory can address");
}

static qn_status size_weight(void *user, qn_weight *w)
{
    return add_size(user, qn_weight_bytes(w));
}

static qn_status size_vector(void *user, qn_vector *v)
{
    return add_size(user, qn_vector_bytes(v));
}

static qn_status progress(const loader *l, size_t n_more)
{
    const qn_model_opts *o = l->opts;
    if (!o->progress || o->progress(o->progress_user, l->at + n_more, l->m->arena_bytes)) return QN_OK;
    return qn_fail(l->err, QN_ERR_CANCELLED, "loading was cancelled");
}

/* In slices, the file's pages dropped behind each: the packed copy and one slice are all that is in memory. */
static qn_status pack_weight(loader *l, const qn_weight *w)
{
    enum { SLICE = 16 << 20 }; /* bytes of the file */
    const uint8_t *bytes = qn_file_tensor_bytes(l->m->file, w->i_tensor);
    qn_tensor_info t;
    size_t row = 0;
    (void)qn_file_tensor_at(l->m->file, w->i_tensor, &t); /* checked by the binding */
    const qn_fmt *from = qn_fmt_by_id(t.type);
    if (w->turned) return qn_weight_encode_turned(w, from, bytes, &l->kernels, l->pool, l->err);
    (void)qn_fmt_row_bytes(from, w->n_cols, &row);
    const size_t panel = QN_PANEL * row;
    const int64_t n_panels = w->n_parts * w->n_panels, n_slice = panel < SLICE ? (int64_t)(SLICE / panel) : 1;
    qn_file_tensor_expect(l->m->file, w->i_tensor);
    for (int64_t p = 0; p < n_panels; p += n_slice) {
        const int64_t end = p + n_slice < n_panels ? p + n_slice : n_panels;
        const size_t at = (size_t)qn_weight_row_at(w, p) * row;
        if (from == w->fmt) qn_weight_pack(w, bytes, p, end, l->pool);
        else QN_TRY(qn_weight_encode(w, from, bytes, p, end, &l->kernels, l->pool, l->err));
        qn_file_tensor_drop(l->m->file, w->i_tensor, at, (size_t)qn_weight_row_at(w, end) * row - at);
        QN_TRY(progress(l, (size_t)end * w->panel_bytes));
    }
    return QN_OK;
}

static qn_status load_weight(void *user, qn_weight *w)
{
    loader *l = user;
    size_t at;
    const qn_map *map = qn_file_tensor_map(l->m->file, w->i_tensor, &at);
    qn_weight_place(w, map, at, (uint8_t *)l->m->arena + l->at);
    const bool is_packed = !w->on_use && !w->in_file;
    if (is_packed) QN_TRY(pack_weight(l, w));
    l->at += qn_weight_bytes(w);
    return is_packed ? QN_OK : progress(l, 0);
}

static qn_status load_vector(void *user, qn_vector *v)
{
    loader *l = user;
    v->w = (float *)(void *)((uint8_t *)l->m->arena + l->at);
    qn_vector_load(v, qn_file_tensor_bytes(l->m->file, v->i_tensor));
    l->at += qn_vector_bytes(v);
    return QN_OK;
}

static qn_status weight_bytes(qn_model *m, size_t *out, qn_err *err)
{
    loader l = { .m = m, .err = err };
    const qn_status s = qn_net_visit(&m->net, &(qn_net_visitor){ size_weight, size_vector, &l });
    *out = l.at;
    return s;
}

static qn_status load_weights(qn_model *m, const qn_model_opts *opts, qn_err *err)
{
    const uint64_t available = qn_memory_available();
    QN_TRY(weight_bytes(m, &m->arena_bytes, err));
    if (m->arena_bytes > available) {
        const double need = (double)m->arena_bytes / 1e9, have = (double)available / 1e9;
        m->arena_bytes = 0;
        return qn_fail(err, QN_ERR_NOMEM, "the weights take %.2f GB of memory, and %.2f GB are available", need, have);
    }
    QN_TRY(qn_pages_new(&m->arena, m->arena_bytes, "the weights", err));
    loader l = { .m = m, .opts = opts, .err = err };
    QN_TRY(qn_kernels_init(&l.kernels, NULL, false, err));
    QN_TRY(qn_pool_open(&l.pool, opts->n_threads, err));
    const qn_status s = qn_net_visit(&m->net, &(qn_net_visitor){ load_weight, load_vector, &l });
    qn_pool_close(&l.pool);
    return s == QN_OK ? progress(&l, 0) : s; /* done is total, whatever came last */
}

static void count_tensors(qn_model *m)
{
    qn_tensor_info t;
    for (int64_t i = 0; qn_file_tensor_at(m->file, i, &t); i++) {
        m->n_params += (uint64_t)(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]);
        m->tensor_bytes += t.n_bytes;
    }
}

void qn_model_note(const qn_model *m, const char *fmt, ...)
{
    char text[500];
    va_list ap;
    if (!m->log) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    m->log(m->log_user, text);
}

static void note_of_vocab(const qn_model *m)
{
    qn_value v;
    qn_str kind = { "", 0 };
    if (qn_file_key(m->file, "tokenizer.ggml.model", &v)) (void)qn_value_as_str(&v, &kind);
    if (kind.len == 4 && !memcmp(kind.ptr, "gpt2", 4) && !qn_file_key(m->file, "tokenizer.ggml.pre", &v))
        qn_model_note(m, "the file names no pre-tokenizer; GPT-2's is used, and answers may suffer");
}

static qn_status open_parts(qn_model *m, const char *path, const qn_model_opts *opts, qn_err *err)
{
    QN_TRY(qn_file_open(&m->file, path, err));
    m->name = text_of(m->file, "general.name");
    m->arch = text_of(m->file, "general.architecture");
    if (!m->name || !m->arch) return qn_fail(err, QN_ERR_NOMEM, "no memory for the model");
    count_tensors(m);
    QN_TRY(qn_vocab_open(&m->vocab, m->file, err));
    note_of_vocab(m);
    if (opts->vocab_only) return QN_OK;
    m->has_net = true;
    QN_TRY(qn_net_open(&m->net, m->file, qn_vocab_size(m->vocab), err));
    if (opts->quantize) QN_TRY(qn_net_requantize(&m->net, m->file, opts->quantize, err));
    return load_weights(m, opts, err);
}

qn_status qn_model_open(qn_model **out, const char *path, const qn_model_opts *opts, qn_err *err)
{
    qn_model_opts o;
    *out = NULL;
    QN_TRY(qn_opts_take(&o, sizeof o, opts, "model", err));
    qn_model *m = qn_new(1, sizeof *m);
    if (!m) return qn_fail(err, QN_ERR_NOMEM, "no memory for the model");
    m->log = o.log;
    m->log_user = o.log_user;
    qn_status s = open_parts(m, path, &o, err);
    if (s == QN_OK) {
        *out = m;
        return QN_OK;
    }
    if (m->file && err) s = qn_fail_in(err, s, "%s", path); /* the reader has named the file itself */
    qn_model_close(&m);
    return s;
}

void qn_model_close(qn_model **model)
{
    qn_model *m = *model;
    if (!m) return;
    qn_net_close(&m->net);
    qn_pages_free(&m->arena, m->arena_bytes);
    qn_vocab_close(&m->vocab);
    qn_file_close(&m->file);
    free(m->name);
    free(m->arch);
    free(m);
    *model = NULL;
}

/* A file that says "none" tells of no pooling either. */
static qn_pooling pooling_of(const qn_net *net)
{
    static const qn_pooling named[] = {
        [QN_FILE_POOLING_MEAN] = QN_POOLING_MEAN, [QN_FILE_POOLING_CLS] = QN_POOLING_FIRST, [QN_FILE_POOLING_LAST] = QN_POOLING_LAST,
        [QN_FILE_POOLING_RANK] = QN_POOLING_RANK,
    };
    if (net->pooling != QN_FILE_POOLING_NONE) return named[net->pooling];
    return qn_net_is_encoder(net) ? QN_POOLING_MEAN : QN_POOLING_LAST;
}

void qn_model_get_info(const qn_model *m, qn_model_info *out)
{
    const qn_layer *l = m->has_net ? &m->net.layer[0] : NULL;
    *out = (qn_model_info){
        .arch = m->arch,
        .name = m->name,
        .n_vocab = qn_vocab_size(m->vocab),
        .n_layer = m->net.n_layer,
        .n_embd = m->net.n_embd,
        .n_head = l ? l->n_head : 0,
        .n_head_kv = l ? l->n_head_kv : 0,
        .n_ctx_train = m->net.n_ctx_train,
        .n_params = m->n_params,
        .file_bytes = m->tensor_bytes,
        .weight_bytes = m->arena_bytes,
        .pooling = l ? pooling_of(&m->net) : QN_POOLING_NONE,
        .n_labels = m->net.n_labels,
        .is_encoder = qn_net_is_encoder(&m->net),
    };
}

const qn_file *qn_model_file(const qn_model *m)
{
    return m->file;
}

qn_status qn_resolve_sizes(const qn_net *net, int32_t *n_ctx, int32_t *n_chunk, int32_t *n_sessions, qn_err *err)
{
    if (*n_ctx == 0) *n_ctx = net->n_ctx_train < QN_CTX_DEFAULT ? net->n_ctx_train : QN_CTX_DEFAULT;
    const bool is_encoder = qn_net_is_encoder(net); /* reads a text in one step */
    const int32_t most = is_encoder && *n_ctx > QN_CHUNK_MAX ? *n_ctx : QN_CHUNK_MAX;
    if (*n_chunk == 0) *n_chunk = is_encoder ? *n_ctx : QN_CHUNK_DEFAULT;
    if (*n_ctx < 1 || *n_ctx > 1 << 28) return qn_fail(err, QN_ERR_ARG, "a context of %d positions; it must be 1 to %d", *n_ctx, 1 << 28);
    if (net->n_positions && *n_ctx > net->n_positions)
        return qn_fail(err, QN_ERR_ARG, "a context of %d positions; this model has %d, each with an embedding of its own", *n_ctx, net->n_positions);
    if (*n_chunk < 1 || *n_chunk > most) return qn_fail(err, QN_ERR_ARG, "a chunk of %d tokens; it must be 1 to %d", *n_chunk, most);
    if (*n_chunk > *n_ctx) *n_chunk = *n_ctx;
    if (*n_sessions == 0) *n_sessions = 1;
    if (*n_sessions < 1 || *n_sessions > QN_SESSIONS_MAX)
        return qn_fail(err, QN_ERR_ARG, "%d sessions; it must be 1 to %d", *n_sessions, QN_SESSIONS_MAX);
    return QN_OK;
}
