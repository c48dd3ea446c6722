/*
 * A saved session is a GGUF file:
 *
 *     general.type              "quern-state"
 *     quern_state.version       1
 *     quern_state.architecture  of the model, for people
 *     quern_state.model         its fingerprint
 *     quern_state.cache_k, _v   formats of keys and values; .act_bits: 8 or 16, which round them differently
 *     quern_state.tokens        i32: all that were evaluated
 *     quern_state.note          the caller's
 *     blocks.<group>            I8 [bytes of a block, blocks]: what is in sight at the end, as in memory (src/kv/kv.h)
 *     checksum                  I8 [16] over all the above
 */
#include "src/run/session_file.h"

#include "src/base/hash.h"
#include "src/base/mem.h"
#include "src/format/keys.h"
#include "src/format/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, I8 = 24, HASH_BYTES = 16, SAMPLE_BYTES = 64 };

#define KEY(name) "quern_state." name

/* A hash of several pieces: each is hashed under the result so far. */
static void chain(qn_hash *h, const void *bytes, size_t n)
{
    *h = qn_hash_of(*h, bytes, n);
}

/* ---- what a state belongs to ---- */

static void hash_keys(qn_hash *h, const qn_model *m)
{
    const size_t n = strlen(m->arch);
    qn_str key;
    qn_value v;
    for (int64_t i = 0; qn_file_key_at(m->file, i, &key, &v); i++) {
        if (key.len <= n || memcmp(key.ptr, m->arch, n) != 0 || key.ptr[n] != '.') continue;
        chain(h, key.ptr, key.len);
        chain(h, v.data, v.n_bytes);
    }
}

/* Its data is sampled at the beginning, in the middle and at the end. */
static void hash_tensor(qn_hash *h, const qn_file *f, int64_t i, const qn_tensor_info *t)
{
    const uint64_t facts[] = { (uint64_t)t->type, (uint64_t)t->dims[0], (uint64_t)t->dims[1], (uint64_t)t->dims[2], (uint64_t)t->dims[3],
                               t->offset, t->n_bytes };
    const uint8_t *bytes = qn_file_tensor_bytes(f, i);
    const size_t n = t->n_bytes < SAMPLE_BYTES ? (size_t)t->n_bytes : SAMPLE_BYTES;
    chain(h, t->name.ptr, t->name.len);
    chain(h, facts, sizeof facts);
    for (uint64_t k = 0; k < 3; k++) chain(h, bytes + (t->n_bytes - n) / 2 * k, n);
}

void qn_model_fingerprint(const qn_model *m, char out[33])
{
    qn_hash h = { 0 };
    qn_tensor_info t;
    chain(&h, m->arch, strlen(m->arch));
    hash_keys(&h, m);
    for (int64_t i = 0; qn_file_tensor_at(m->file, i, &t); i++) hash_tensor(&h, m->file, i, &t);
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)h.hi, (unsigned long long)h.lo);
}

typedef struct identity {
    char model[33];
    const char *k, *v;
    uint32_t act_bits;
} identity;

static identity identity_of(const qn_engine *e)
{
    identity id = { .act_bits = e->kernels.a8 ? 8 : 16 };
    id.k = qn_fmt_by_id((int32_t)(e->exec.kv_k - e->kernels.kv))->name;
    id.v = qn_fmt_by_id((int32_t)(e->exec.kv_v - e->kernels.kv))->name;
    qn_model_fingerprint(e->model, id.model);
    return id;
}

static qn_hash checksum_begin(const identity *id, const int32_t *tokens, size_t n_tokens, qn_str note)
{
    qn_hash h = { VERSION, id->act_bits };
    chain(&h, id->model, strlen(id->model));
    chain(&h, id->k, strlen(id->k));
    chain(&h, id->v, strlen(id->v));
    chain(&h, tokens, n_tokens * sizeof *tokens);
    chain(&h, note.ptr, note.len);
    return h;
}

static void group_name(char out[32], int32_t g)
{
    snprintf(out, 32, "blocks.%d", g);
}

/* ---- save ---- */

typedef struct saver {
    qn_writer *w;
    qn_hash sum;
} saver;

static qn_status save_piece(void *user, void *bytes, size_t n)
{
    saver *s = user;
    chain(&s->sum, bytes, n);
    return qn_writer_data(s->w, bytes, n);
}

static void announce(qn_writer *w, const qn_engine *e, const qn_kv *kv, const identity *id, qn_str note)
{
    char name[32];
    int32_t n_blocks;
    size_t block_bytes;
    const int32_t n = qn_kv_position(kv);
    (void)qn_writer_key_str(w, "general.type", QN_LIT("quern-state"));
    (void)qn_writer_key_u32(w, KEY("version"), VERSION);
    (void)qn_writer_key_str(w, KEY("architecture"), (qn_str){ e->model->arch, strlen(e->model->arch) });
    (void)qn_writer_key_str(w, KEY("model"), (qn_str){ id->model, strlen(id->model) });
    (void)qn_writer_key_str(w, KEY("cache_k"), (qn_str){ id->k, strlen(id->k) });
    (void)qn_writer_key_str(w, KEY("cache_v"), (qn_str){ id->v, strlen(id->v) });
    (void)qn_writer_key_u32(w, KEY("act_bits"), id->act_bits);
    (void)qn_writer_key_array(w, KEY("tokens"), QN_V_I32, qn_kv_tokens(kv), (uint64_t)n);
    (void)qn_writer_key_str(w, KEY("note"), note);
    for (int32_t g = 0; n > 0 && qn_kv_layout_seen(e->kv_layout, g, n, &n_blocks, &block_bytes); g++) {
        group_name(name, g);
        (void)qn_writer_tensor(w, name, I8, 2, (int64_t[]){ (int64_t)block_bytes, n_blocks }, NULL);
    }
    (void)qn_writer_tensor(w, "checksum", I8, 1, (int64_t[]){ HASH_BYTES }, NULL);
}

/* Errors stay in the writer, whose close tells them. */
static qn_status write_state(const qn_engine *e, const qn_kv *kv, const char *path, qn_str note, qn_err *err)
{
    saver s = { 0 };
    uint8_t sum[HASH_BYTES];
    const identity id = identity_of(e);
    QN_TRY(qn_writer_open(&s.w, path, 64, err));
    announce(s.w, e, kv, &id, note);
    s.sum = checksum_begin(&id, qn_kv_tokens(kv), (size_t)qn_kv_position(kv), note);
    if (qn_kv_position(kv) > 0) (void)qn_kv_pieces(kv, save_piece, &s);
    memcpy(sum, &s.sum, sizeof sum);
    (void)qn_writer_data(s.w, sum, sizeof sum);
    return qn_writer_close(&s.w, err);
}

/* What is written is a copy that shares the session's blocks, so that others may go on meanwhile. */
qn_status qn_session_save(const qn_session *s, const char *path, qn_str note, qn_err *err)
{
    qn_engine *e = s->engine;
    qn_kv *copy;
    if (!note.ptr) note = QN_LIT("");
    QN_TRY(qn_kv_open(&copy, e->kv_pool, err));
    pthread_mutex_lock(&e->lock);
    qn_kv_fork(copy, s->kv);
    pthread_mutex_unlock(&e->lock);
    const qn_status status = write_state(e, copy, path, note, err);
    pthread_mutex_lock(&e->lock);
    qn_kv_close(&copy);
    pthread_mutex_unlock(&e->lock);
    return status;
}

/* ---- load ---- */

static qn_status check_str(const qn_file *f, const char *key, const char *want, const char *what, qn_err *err)
{
    qn_str have;
    QN_TRY(qn_key_str(f, key, NULL, &have, err));
    if (have.len == strlen(want) && !memcmp(have.ptr, want, have.len)) return QN_OK;
    return qn_fail(err, QN_ERR_ARG, "%s: it has '%.*s', and here it is '%s'", what, QN_STR_ARG(have), want);
}

static qn_status check_identity(const qn_file *f, const qn_engine *e, const identity *id, qn_err *err)
{
    int64_t n;
    qn_str kind = { "", 0 };
    qn_value v;
    if (qn_file_key(f, "general.type", &v)) (void)qn_value_as_str(&v, &kind);
    if (kind.len != 11 || memcmp(kind.ptr, "quern-state", 11) != 0) return qn_fail(err, QN_ERR_FORMAT, "this is a GGUF file, but not a saved session");
    QN_TRY(qn_key_i64(f, KEY("version"), NULL, 0, UINT32_MAX, &n, err));
    if (n != VERSION) return qn_fail(err, QN_ERR_UNSUPPORTED, "the saved session is of version %lld; this library reads version %d", (long long)n, VERSION);
    QN_TRY(check_str(f, KEY("architecture"), e->model->arch, "the saved session is of a model of another architecture", err));
    QN_TRY(check_str(f, KEY("model"), id->model, "the saved session is of another model or another file of it", err));
    QN_TRY(check_str(f, KEY("cache_k"), id->k, "the saved session keeps keys in another format", err));
    QN_TRY(check_str(f, KEY("cache_v"), id->v, "the saved session keeps values in another format", err));
    QN_TRY(qn_key_i64(f, KEY("act_bits"), NULL, 0, UINT32_MAX, &n, err));
    if (n != id->act_bits)
        return qn_fail(err, QN_ERR_ARG, "the saved session was evaluated with %lld bits of activations, and here they have %u", (long long)n, id->act_bits);
    return QN_OK;
}

/* @param out  [*n] for free() */
static qn_status read_tokens(const qn_file *f, const qn_engine *e, int32_t **out, int32_t *n, qn_err *err)
{
    qn_value v;
    QN_TRY(qn_key_array(f, KEY("tokens"), NULL, QN_V_I32, &v, err));
    if (v.count > (uint64_t)e->n_ctx)
        return qn_fail(err, QN_ERR_CTX_FULL, "the saved session has %llu tokens and the context holds %d", (unsigned long long)v.count, e->n_ctx);
    *n = (int32_t)v.count;
    int32_t *t = *out = qn_new((size_t)*n, sizeof *t);
    if (!t) return qn_fail(err, QN_ERR_NOMEM, "no memory for the tokens of a session");
    qn_value_iter it = qn_value_iterate(&v);
    for (int32_t i = 0; i < *n; i++) {
        qn_value elem;
        int64_t id = -1;
        if (qn_value_next(&it, &elem)) (void)qn_value_as_i64(&elem, &id);
        if (id < 0 || id >= e->model->net.n_vocab)
            return qn_fail(err, QN_ERR_FORMAT, "token %d of the saved session is %lld; the vocabulary has %d", i, (long long)id, e->model->net.n_vocab);
        t[i] = (int32_t)id;
    }
    return QN_OK;
}

/* The bytes of a tensor that must have this shape. */
static qn_status find_bytes(const qn_file *f, const char *name, int64_t n0, int64_t n1, const uint8_t **out, qn_err *err)
{
    qn_tensor_info t;
    const int64_t i = qn_file_tensor_find(f, name);
    if (!qn_file_tensor_at(f, i, &t)) return qn_fail(err, QN_ERR_FORMAT, "the saved session has no tensor '%s'", name);
    if (t.type != I8 || t.dims[0] != n0 || t.dims[1] != n1 || t.dims[2] != 1 || t.dims[3] != 1)
        return qn_fail(err, QN_ERR_FORMAT, "tensor '%s' of the saved session is %s [%lld, %lld]; it has to be I8 [%lld, %lld]", name, t.type_name,
                       (long long)t.dims[0], (long long)t.dims[1], (long long)n0, (long long)n1);
    *out = qn_file_tensor_bytes(f, i);
    return QN_OK;
}

/* The pieces of a file, in the order in which they were saved. */
typedef struct loader {
    const qn_file *file;
    const qn_engine *engine;
    int32_t n;               /* tokens                                                       */
    int32_t i_group, n_left; /* blocks of the group after this one                           */
    const uint8_t *at;
} loader;

/* All tensors are there, with the shapes that the engine's layout asks for, and their bytes are those that were saved. */
static qn_status check_blocks(const loader *l, qn_hash sum, qn_err *err)
{
    char name[32];
    int32_t n_blocks;
    size_t block_bytes;
    const uint8_t *bytes;
    for (int32_t g = 0; l->n > 0 && qn_kv_layout_seen(l->engine->kv_layout, g, l->n, &n_blocks, &block_bytes); g++) {
        group_name(name, g);
        QN_TRY(find_bytes(l->file, name, (int64_t)block_bytes, n_blocks, &bytes, err));
        for (int32_t b = 0; b < n_blocks; b++) chain(&sum, bytes + (size_t)b * block_bytes, block_bytes);
    }
    QN_TRY(find_bytes(l->file, "checksum", HASH_BYTES, 1, &bytes, err));
    if (memcmp(bytes, &sum, HASH_BYTES) != 0) return qn_fail(err, QN_ERR_FORMAT, "the saved session is damaged: its checksum is not that of its bytes");
    return QN_OK;
}

static qn_status load_piece(void *user, void *bytes, size_t n)
{
    loader *l = user;
    char name[32];
    size_t block_bytes;
    while (l->n_left == 0) {
        group_name(name, l->i_group);
        (void)qn_kv_layout_seen(l->engine->kv_layout, l->i_group++, l->n, &l->n_left, &block_bytes);
        QN_TRY(find_bytes(l->file, name, (int64_t)block_bytes, l->n_left, &l->at, NULL));
    }
    memcpy(bytes, l->at, n);
    l->at += n;
    l->n_left--;
    return QN_OK;
}

static qn_status restore(qn_session *s, const qn_file *file, const int32_t *tokens, int32_t n, qn_err *err)
{
    qn_engine *e = s->engine;
    loader l = { .file = file, .engine = e, .n = n };
    qn_status status = QN_OK;
    pthread_mutex_lock(&e->lock);
    if (n == 0) (void)qn_kv_rewind(s->kv, 0);
    else status = qn_kv_restore(s->kv, tokens, n, load_piece, &l);
    if (status == QN_ERR_CTX_FULL) status = qn_engine_pool_full(e, err);
    pthread_mutex_unlock(&e->lock);
    return status;
}

static qn_status keep_note(qn_session *s, qn_str text, qn_str *out, qn_err *err)
{
    char *copy = qn_new(text.len + 1, 1);
    if (!copy) return qn_fail(err, QN_ERR_NOMEM, "no memory for the note of a session");
    memcpy(copy, text.ptr, text.len);
    free(s->note);
    s->note = copy;
    *out = (qn_str){ copy, text.len };
    return QN_OK;
}

qn_status qn_session_load_file(qn_session *s, const qn_file *file, qn_str *note, qn_err *err)
{
    const identity id = identity_of(s->engine);
    int32_t *tokens = NULL, n = 0;
    qn_str text = { "", 0 }, kept;
    QN_TRY(check_identity(file, s->engine, &id, err));
    qn_status status = qn_key_str(file, KEY("note"), NULL, &text, err);
    if (status == QN_OK) status = read_tokens(file, s->engine, &tokens, &n, err);
    const loader l = { .file = file, .engine = s->engine, .n = n };
    if (status == QN_OK) status = check_blocks(&l, checksum_begin(&id, tokens, (size_t)n, text), err);
    if (status == QN_OK) status = keep_note(s, text, note ? note : &kept, err);
    if (status == QN_OK) status = restore(s, file, tokens, n, err);
    free(tokens);
    return status;
}

qn_status qn_session_load(qn_session *s, const char *path, qn_str *note, qn_err *err)
{
    qn_file *file;
    if (note) *note = (qn_str){ "", 0 };
    QN_TRY(qn_file_open(&file, path, err));
    qn_status status = qn_session_load_file(s, file, note, err);
    if (status != QN_OK) status = qn_fail_in(err, status, "%.300s", path);
    qn_file_close(&file);
    return status;
}
