/* The plan: what every tensor becomes, from the header alone. */
#include "src/base/mem.h"
#include "src/convert/quantize_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the model ---- */

/* A whole number of the architecture, or the first of an array of one a layer; `unset` where it is not there. */
static int64_t arch_number(const qn_file *f, qn_str arch, const char *what, int64_t unset)
{
    char key[300];
    qn_value v, first;
    int64_t n;
    snprintf(key, sizeof key, "%.*s.%s", QN_STR_ARG(arch), what);
    if (!qn_file_key(f, key, &v)) return unset;
    qn_value_iter it = qn_value_iterate(&v);
    if (v.type == QN_V_ARRAY && qn_value_next(&it, &first)) v = first;
    return qn_value_as_i64(&v, &n) == QN_OK && n >= 0 ? n : unset;
}

static bool is_arch(qn_str arch, const char *name)
{
    return arch.len == strlen(name) && !memcmp(arch.ptr, name, arch.len);
}

/* Models of 70 billion weights, in which eight query heads share a KV head. */
static bool is_70b(qn_str arch, int64_t n_layer, int64_t n_gqa)
{
    static const struct {
        const char *arch;
        int64_t n_layer;
    } sizes[] = { { "llama", 80 }, { "qwen2", 80 }, { "deci", 80 }, { "olmo", 80 }, { "jais2", 68 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (is_arch(arch, sizes[i].arch) && n_layer == sizes[i].n_layer) return n_gqa > 1;
    return false;
}

static void read_model(qn_quantize *q)
{
    qn_value v;
    qn_str arch = { "", 0 };
    if (qn_file_key(q->file, "general.architecture", &v)) (void)qn_value_as_str(&v, &arch);
    const int64_t n_head = arch_number(q->file, arch, "attention.head_count", 1);
    const int64_t n_head_kv = arch_number(q->file, arch, "attention.head_count_kv", n_head);
    qn_recipe_model *m = &q->model;
    *m = (qn_recipe_model){
        .n_expert = arch_number(q->file, arch, "expert_count", 0), .n_gqa = n_head_kv ? n_head / n_head_kv : 0,
        .is_falcon = is_arch(arch, "falcon"), .is_tied = true, .has_importance = q->imatrix != NULL,
    };
    int64_t n_named = 0;
    for (int64_t i = 0; i < q->n_jobs; i++) {
        const qn_recipe_tensor *t = &q->job[i].facts;
        m->n_attn_v += t->role == QN_ROLE_ATTN_V;
        m->is_tied = m->is_tied && t->role != QN_ROLE_OUTPUT;
        if (t->i_layer >= n_named) n_named = t->i_layer + 1;
    }
    m->n_layer = arch_number(q->file, arch, "block_count", n_named);
    m->is_70b = is_70b(arch, m->n_layer, m->n_gqa);
}

/* ---- the tensors ---- */

/* Whole numbers are not weights. */
static bool is_integer(const qn_fmt *f)
{
    return f->block == 1 && f->name[0] == 'I';
}

static void read_tensors(qn_quantize *q)
{
    for (int64_t i = 0; i < q->n_jobs; i++) {
        const qn_gguf_tensor *t = qn_quantize_source(q, i);
        int32_t n_dims = 4;
        while (n_dims > 1 && t->info.dims[n_dims - 1] == 1) n_dims--;
        q->job[i].facts = (qn_recipe_tensor){
            .role = is_integer(t->fmt) ? QN_ROLE_KEPT : qn_role_of(t->info.name, n_dims), .i_layer = qn_role_layer(t->info.name),
            .is_stack = t->info.dims[2] > 1,
        };
    }
}

typedef struct place {
    int64_t group, i_tensor; /* group: before the layers, a layer, after them */
    qn_str name;
} place;

static int by_layer_and_name(const void *pa, const void *pb)
{
    const place *a = pa, *b = pb;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    const int d = memcmp(a->name.ptr, b->name.ptr, a->name.len < b->name.len ? a->name.len : b->name.len);
    return d ? d : a->name.len < b->name.len ? -1 : a->name.len > b->name.len;
}

static int by_layer_and_index(const void *pa, const void *pb)
{
    const place *a = pa, *b = pb;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    return a->i_tensor < b->i_tensor ? -1 : a->i_tensor > b->i_tensor;
}

/* Number the tensors of each role in the order of layers, and set the order of the work. */
static qn_status put_in_order(qn_quantize *q, qn_err *err)
{
    int64_t n_of_role[QN_ROLE_FFN_DOWN + 1] = { 0 };
    place *p = qn_new((size_t)q->n_jobs, sizeof *p);
    q->order = qn_new((size_t)q->n_jobs, sizeof *q->order);
    if (!p || !q->order) {
        free(p);
        return qn_fail(err, QN_ERR_NOMEM, "no memory for %lld tensors", (long long)q->n_jobs);
    }
    for (int64_t i = 0; i < q->n_jobs; i++)
        p[i] = (place){ q->job[i].facts.role == QN_ROLE_OUTPUT ? INT64_MAX : q->job[i].facts.i_layer, i, qn_quantize_source(q, i)->info.name };
    qsort(p, (size_t)q->n_jobs, sizeof *p, by_layer_and_name);
    for (int64_t i = 0; i < q->n_jobs; i++) {
        qn_recipe_tensor *t = &q->job[p[i].i_tensor].facts;
        t->i_role = n_of_role[t->role]++;
    }
    qsort(p, (size_t)q->n_jobs, sizeof *p, by_layer_and_index);
    for (int64_t i = 0; i < q->n_jobs; i++) q->order[i] = p[i].i_tensor;
    free(p);
    return QN_OK;
}

/* ---- formats ---- */

/* Name of the format that a tensor is meant to get. */
static const char *wanted_format(const qn_quantize *q, const qn_quantize_opts *o, const qn_gguf_tensor *t, const qn_job *j)
{
    const bool is_embedding = j->facts.role == QN_ROLE_EMBEDDING;
    if (is_embedding && o->embedding_type) return o->embedding_type;
    const char *own = o->tensor_type ? o->tensor_type(o->tensor_type_user, &t->info) : NULL;
    if (j->facts.role == QN_ROLE_OUTPUT && o->output_type) return o->output_type;
    if (own) return own;
    if (o->pure) return q->recipe->format;
    if (is_embedding && q->model.is_tied && o->output_type) return o->output_type;
    return qn_recipe_choose(q->recipe, &q->model, &j->facts);
}

static qn_status find_format(const qn_gguf_tensor *t, const char *name, const qn_fmt **out, qn_err *err)
{
    const qn_fmt *f = qn_fmt_by_name(name);
    if (!f || is_integer(f)) return qn_fail(err, QN_ERR_ARG, "tensor '%.*s': there is no format '%.40s'", QN_STR_ARG(t->info.name), name);
    if (!f->encode && f != t->fmt)
        return qn_fail(err, QN_ERR_ARG, "tensor '%.*s': %s can be read, but not written", QN_STR_ARG(t->info.name), f->name);
    *out = f;
    return QN_OK;
}

/* A format whose block divides the rows. With none of the quantised ones, floats stay what they are, and the rest becomes F16. */
static const qn_fmt *fit_format(const qn_gguf_tensor *t, const qn_fmt *wanted)
{
    const qn_fmt *f = wanted;
    while (f && t->info.dims[0] % f->block) {
        const char *next = qn_recipe_fallback(f->name);
        f = next ? qn_fmt_by_name(next) : NULL;
    }
    const qn_fmt *half = qn_fmt_by_name("F16");
    return f ? f : t->fmt->block == 1 && t->fmt->bytes == half->bytes ? t->fmt : half;
}

static qn_status choose_format(const qn_quantize *q, const qn_quantize_opts *o, const qn_gguf_tensor *t, qn_job *j, qn_err *err)
{
    j->to = j->wanted = t->fmt;
    if (j->facts.role == QN_ROLE_KEPT) return QN_OK;
    QN_TRY(find_format(t, wanted_format(q, o, t, j), &j->wanted, err));
    j->to = fit_format(t, j->wanted);
    if (j->to != j->wanted && o->no_fallback)
        return qn_fail(err, QN_ERR_ARG, "tensor '%.*s' has rows of %lld weights, which is no multiple of the %d in a block of %s; the next best is %s",
                       QN_STR_ARG(t->info.name), (long long)t->info.dims[0], j->wanted->block, j->wanted->name, j->to->name);
    if (t->fmt->block > 1 && j->to->block > 1 && j->to != t->fmt && !o->allow_requantize)
        return qn_fail(err, QN_ERR_UNSUPPORTED, "tensor '%.*s' is %s already; quantising it again adds the new error to the old one, and has to be "
                       "asked for (allow-requantize)", QN_STR_ARG(t->info.name), t->fmt->name);
    return QN_OK;
}

/* Embeddings are looked up, not multiplied: importance data has nothing on them, or something that means another thing. */
static bool can_lack_importance(qn_role role)
{
    return role == QN_ROLE_EMBEDDING || role == QN_ROLE_OUTPUT;
}

static qn_status choose_importance(const qn_quantize *q, const qn_gguf_tensor *t, qn_job *j, qn_err *err)
{
    if (j->to == t->fmt || j->to->block == 1) return QN_OK;
    const qn_status s = qn_importance_check(q->imatrix, &t->info, err);
    j->has_importance = s == QN_OK;
    if (s == QN_OK) return QN_OK;
    if (s == QN_ERR_FORMAT) return j->facts.role == QN_ROLE_EMBEDDING ? QN_OK : s;
    if (q->recipe->needs_importance && j->to == qn_fmt_by_name(q->recipe->format) && !can_lack_importance(j->facts.role))
        return qn_fail(err, QN_ERR_ARG, "tensor '%.*s': %s is of use only with importance data (imatrix), and there is none for it", QN_STR_ARG(t->info.name),
                       q->recipe->name);
    return QN_OK;
}

static qn_status size_tensor(const qn_gguf_tensor *t, qn_job *j, qn_err *err)
{
    size_t row, n;
    if (!qn_fmt_row_bytes(j->to, t->info.dims[0], &row) || !qn_size_mul(row, (size_t)t->n_rows, &n))
        return qn_fail(err, QN_ERR_ARG, "tensor '%.*s' as %s is larger than any file", QN_STR_ARG(t->info.name), j->to->name);
    j->n_bytes = n;
    return QN_OK;
}

qn_status qn_quantize_plan(qn_quantize *q, const qn_quantize_opts *opts, qn_err *err)
{
    q->recipe = qn_recipe_find(opts->type ? opts->type : "");
    if (!q->recipe) return qn_fail(err, QN_ERR_ARG, "there is no type '%.40s'", opts->type ? opts->type : "");
    q->n_jobs = qn_file_n_tensors(q->file);
    q->n_files = opts->keep_split ? qn_file_n_shards(q->file) : 1;
    q->job = qn_new((size_t)q->n_jobs, sizeof *q->job);
    size_t *n_in_file = qn_new((size_t)q->n_files, sizeof *n_in_file);
    qn_status s = q->job && n_in_file ? QN_OK : qn_fail(err, QN_ERR_NOMEM, "no memory for %lld tensors", (long long)q->n_jobs);
    if (s == QN_OK) {
        read_tensors(q);
        s = put_in_order(q, err);
    }
    if (s == QN_OK) read_model(q);
    for (int64_t i = 0; i < q->n_jobs && s == QN_OK; i++) {
        const qn_gguf_tensor *t = qn_quantize_source(q, i);
        qn_job *j = &q->job[i];
        j->i_file = opts->keep_split ? t->info.i_shard : 0;
        j->i_out = n_in_file[j->i_file]++;
        s = choose_format(q, opts, t, j, err);
        if (s == QN_OK) s = choose_importance(q, t, j, err);
        if (s == QN_OK) s = size_tensor(t, j, err);
    }
    free(n_in_file);
    return s;
}
