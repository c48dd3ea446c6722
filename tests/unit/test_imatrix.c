/* Importance data: what is collected against the same sums computed here in double, what is written is read again, the older file too. */
#include "src/convert/imatrix.h"
#include "src/format/gguf.h"
#include "src/token/token.h"
#include "tests/common/tiny_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char model_path[64], path[64];
static const char text[] = "the cat of the thin hat: that bat, then the other; abcdefg hijklmn opqrst uvw xyz the end of it all";

/* ---- a llama in double, of windows of one token: attention then passes V through ---- */

enum { WIDEST = 1024 };

typedef struct matrix {
    float *w;                /* [n_rows][n_cols]                                             */
    int64_t n_rows, n_cols;
} matrix;

static matrix read_tensor(const qn_file *f, int layer, const char *name)
{
    char full[96];
    qn_tensor_info t;
    if (layer >= 0) snprintf(full, sizeof full, "blk.%d.%s.weight", layer, name);
    else snprintf(full, sizeof full, "%s.weight", name);
    const int64_t i = qn_file_tensor_find(f, full);
    assert_true(qn_file_tensor_at(f, i, &t));
    const matrix m = { malloc((size_t)(t.dims[0] * t.dims[1]) * sizeof(float)), t.dims[1], t.dims[0] };
    assert_non_null(m.w);
    assert_int_equal(qn_file_rows_f32(f, i, 0, m.n_rows, m.w, NULL), QN_OK);
    return m;
}

static void multiply(const qn_file *f, int layer, const char *name, const double *x, double *out)
{
    const matrix m = read_tensor(f, layer, name);
    for (int64_t r = 0; r < m.n_rows; r++) {
        out[r] = 0;
        for (int64_t i = 0; i < m.n_cols; i++) out[r] += (double)m.w[r * m.n_cols + i] * x[i];
    }
    free(m.w);
}

static void norm(const qn_file *f, int layer, const char *name, double eps, const double *x, double *out)
{
    const matrix m = read_tensor(f, layer, name);
    double sum = 0;
    for (int64_t i = 0; i < m.n_cols; i++) sum += x[i] * x[i];
    for (int64_t i = 0; i < m.n_cols; i++) out[i] = x[i] / sqrt(sum / (double)m.n_cols + eps) * (double)m.w[i];
    free(m.w);
}

typedef struct sums {
    double of[4][WIDEST];    /* of the layer that is looked at: attn_q, attn_output, ffn_up, ffn_down */
} sums;

static void add_squares(double *sum, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) sum[i] += x[i] * x[i];
}

/* One token through layers 0 .. last; what the last one's matrices read is added to `s`. */
static void one_token(const qn_file *f, int32_t id, int last, double eps, int n_head, int n_head_kv, int head_dim, sums *s)
{
    double x[WIDEST], h[WIDEST], v[WIDEST], o[WIDEST], gate[WIDEST], up[WIDEST];
    const matrix embed = read_tensor(f, -1, "token_embd");
    const int64_t n_embd = embed.n_cols;
    for (int64_t i = 0; i < n_embd; i++) x[i] = (double)embed.w[id * n_embd + i];
    free(embed.w);
    for (int l = 0; l <= last; l++) {
        const matrix down = read_tensor(f, l, "ffn_down");
        norm(f, l, "attn_norm", eps, x, h);
        if (l == last) add_squares(s->of[0], h, n_embd);
        multiply(f, l, "attn_v", h, v);
        for (int i = 0; i < n_head * head_dim; i++) o[i] = v[i / head_dim / (n_head / n_head_kv) * head_dim + i % head_dim];
        if (l == last) add_squares(s->of[1], o, n_head * head_dim);
        multiply(f, l, "attn_output", o, h);
        for (int64_t i = 0; i < n_embd; i++) x[i] += h[i];
        norm(f, l, "ffn_norm", eps, x, h);
        if (l == last) add_squares(s->of[2], h, n_embd);
        multiply(f, l, "ffn_gate", h, gate);
        multiply(f, l, "ffn_up", h, up);
        for (int64_t i = 0; i < down.n_cols; i++) gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
        if (l == last) add_squares(s->of[3], gate, down.n_cols);
        multiply(f, l, "ffn_down", gate, h);
        for (int64_t i = 0; i < n_embd; i++) x[i] += h[i];
        free(down.w);
    }
}

static int64_t key(const qn_file *f, const char *name)
{
    qn_value v;
    int64_t n = 0;
    assert_true(qn_file_key(f, name, &v));
    assert_int_equal(qn_value_as_i64(&v, &n), QN_OK);
    return n;
}

static qn_imatrix *collect(const qn_model *model, int32_t n_ctx, int32_t n_threads)
{
    qn_imatrix *m = NULL;
    qn_err err = { 0 };
    const qn_imatrix_opts o = { .size = sizeof o, .n_ctx = n_ctx, .n_threads = n_threads, .text_name = "here" };
    if (qn_imatrix_collect(&m, model, (qn_str){ text, sizeof text - 1 }, &o, &err) != QN_OK) fail_msg("%s", err.text);
    return m;
}

static void sums_are_right(void **state)
{
    (void)state;
    enum { LAST = 3 };
    static const char *const name[4] = { "blk.3.attn_q.weight", "blk.3.attn_output.weight", "blk.3.ffn_up.weight", "blk.3.ffn_down.weight" };
    static sums want;
    int32_t ids[256];
    size_t n = 0;
    qn_value v;
    double eps;
    qn_model *model = NULL;
    assert_true(tiny_model_write(model_path, "llama", 0, 7));
    assert_int_equal(qn_model_open(&model, model_path, NULL, NULL), QN_OK);
    const qn_file *f = qn_model_file(model);
    assert_true(qn_file_key(f, "llama.attention.layer_norm_rms_epsilon", &v));
    assert_int_equal(qn_value_as_f64(&v, &eps), QN_OK);
    assert_int_equal(qn_tokenize(model, (qn_str){ text, sizeof text - 1 }, QN_TOK_SPECIAL, NULL, 0, ids, 256, &n, NULL), QN_OK);

    const int head_dim = (int)key(f, "llama.attention.key_length");
    for (size_t i = 0; i < n; i++)
        one_token(f, ids[0], LAST, eps, (int)key(f, "llama.attention.head_count"), (int)key(f, "llama.attention.head_count_kv"), head_dim, &want);
    qn_imatrix *m = collect(model, 1, 2);
    qn_imatrix_info info;
    qn_imatrix_get_info(m, &info);
    assert_int_equal(info.n_chunks, n);
    assert_int_equal(info.chunk_tokens, 1);
    for (int i = 0; i < 4; i++) {
        const float *got;
        const int64_t i_tensor = qn_file_tensor_find(f, name[i]);
        qn_tensor_info t;
        assert_true(qn_file_tensor_at(f, i_tensor, &t));
        assert_int_equal(qn_imatrix_find(m, t.name, t.dims[0], &got), QN_OK);
        double sum = 0, error = 0;
        for (int64_t c = 0; c < t.dims[0]; c++) {
            sum += want.of[i][c] / (double)n;
            error += fabs((double)got[c] - want.of[i][c] / (double)n);
        }
        if (!(error < 3e-3 * sum)) fail_msg("%s: the sums are off by %g of %g", name[i], error, sum);
    }
    qn_imatrix_close(&m);
    qn_model_close(&model);
}

/* ---- files ---- */

static void expect_same(const qn_imatrix *a, const qn_imatrix *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_chunks, b->n_chunks);
    assert_int_equal(a->chunk_tokens, b->chunk_tokens);
    for (size_t i = 0; i < a->n; i++) {
        const qn_imatrix_entry *e = &a->entry[i];
        const float *v;
        assert_int_equal(qn_imatrix_find(b, e->name, e->n_cols, &v), QN_OK);
        assert_memory_equal(v, e->mean, (size_t)e->n_cols * sizeof *v);
    }
}

static void written_and_read(void **state)
{
    (void)state;
    qn_model *model = NULL;
    qn_imatrix *again = NULL;
    qn_file *f = NULL;
    qn_err err = { 0 };
    assert_true(tiny_model_write(model_path, "gemma3", 8, 3));
    assert_int_equal(qn_model_open(&model, model_path, NULL, NULL), QN_OK);
    qn_imatrix *one = collect(model, 16, 1), *two = collect(model, 16, 2);
    expect_same(one, two); /* whatever the number of threads */
    if (qn_imatrix_save(one, path, &err) != QN_OK || qn_imatrix_load(&again, path, &err) != QN_OK) fail_msg("%s", err.text);
    expect_same(one, again);
    assert_int_equal(again->n_datasets, 1);
    assert_memory_equal(again->dataset[0].ptr, "here", 4);
    assert_int_equal(qn_file_open(&f, path, &err), QN_OK);
    assert_int_equal(qn_file_n_tensors(f), 2 * (int64_t)one->n);
    assert_true(qn_file_tensor_find(f, "blk.5.ffn_down.weight.in_sum2") >= 0); /* the last layer, all of whose tokens count */
    assert_true(qn_file_tensor_find(f, "token_embd.weight.in_sum2") < 0);
    qn_file_close(&f);
    qn_imatrix_close(&one);
    qn_imatrix_close(&two);
    qn_imatrix_close(&again);
    qn_model_close(&model);
}

static void put(uint8_t **p, const void *bytes, size_t n)
{
    memcpy(*p, bytes, n);
    *p += n;
}

static void put_i32(uint8_t **p, int32_t v)
{
    put(p, &v, 4);
}

static void older_file(void **state)
{
    (void)state;
    uint8_t bytes[256], *p = bytes;
    const float values[3] = { 6, 0, 1.5f }, *got;
    qn_imatrix *m = NULL;
    put_i32(&p, 1);
    put_i32(&p, 4);
    put(&p, "some", 4);
    put_i32(&p, 3); /* chunks: the values are means times 3 */
    put_i32(&p, 3);
    put(&p, values, sizeof values);
    const size_t bare = (size_t)(p - bytes);
    put_i32(&p, 3);
    put_i32(&p, 4);
    put(&p, "text", 4);
    for (int tail = 0; tail < 2; tail++) {
        assert_int_equal(qn_imatrix_load_memory(&m, bytes, tail ? (size_t)(p - bytes) : bare, NULL), QN_OK);
        assert_int_equal(qn_imatrix_find(m, QN_LIT("some"), 3, &got), QN_OK);
        assert_true(got[0] == 2 && got[1] == 0 && got[2] == 0.5f);
        assert_int_equal(qn_imatrix_find(m, QN_LIT("some"), 2, &got), QN_ERR_FORMAT);
        assert_int_equal(qn_imatrix_find(m, QN_LIT("none"), 3, &got), QN_ERR_NOT_FOUND);
        assert_null(got);
        qn_imatrix_close(&m);
    }
    for (size_t n = 0; n < bare; n++) {
        qn_err err = { 0 };
        assert_int_equal(qn_imatrix_load_memory(&m, bytes, n, &err), QN_ERR_FORMAT);
        assert_true(strlen(err.text) > 10 && !m);
    }
}

/* Tensors that several matrices share, layers with a state, experts, encoders: every architecture has importance data. */
static void every_architecture(void **state)
{
    char arch[64];
    (void)state;
    for (int32_t a = 0; tiny_model_name(a, arch); a++) {
        qn_model *m = NULL;
        qn_imatrix *im = NULL;
        qn_imatrix_info info;
        qn_err err = { 0 };
        const qn_imatrix_opts o = { .size = sizeof o, .n_ctx = 16, .n_threads = 1, .head = true };
        assert_true(tiny_model_write(model_path, arch, 1, 3));
        if (qn_model_open(&m, model_path, NULL, &err) || qn_imatrix_collect(&im, m, (qn_str){ text, sizeof text - 1 }, &o, &err))
            fail_msg("%s: %s", arch, err.text);
        qn_imatrix_get_info(im, &info);
        assert_true(info.n_tensors > 1);
        qn_imatrix_close(&im);
        qn_model_close(&m);
        unlink(model_path);
    }
}

int main(void)
{
    snprintf(model_path, sizeof model_path, "/tmp/quern-imatrix-%ld.gguf", (long)getpid());
    snprintf(path, sizeof path, "/tmp/quern-imatrix-%ld.dat.gguf", (long)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_right),
        cmocka_unit_test(written_and_read),
        cmocka_unit_test(older_file),
        cmocka_unit_test(every_architecture),
    };
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    remove(model_path);
    remove(path);
    return code;
}
