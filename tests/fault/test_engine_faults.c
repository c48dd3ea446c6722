/* Loading and evaluating when something is wrong: every allocation in turn, a file whose keys or tensors are wrong one at a time. Always a
 * status and a sentence; nothing is left behind (the address sanitizer looks for leaks). */
#include "models/model.h"
#include "quant/quant.h"
#include "src/format/writer.h"
#include "src/run/engine.h"
#include "tests/common/fault.h"
#include "tests/common/tiny_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char path[64], wrong_path[64];
static float logits[TINY_VOCAB];

/* The whole way from file to logits. */
static qn_status open_and_run(const char *file, qn_err *err)
{
    static const int32_t ids[] = { 1, 20, 30, 40, 50, 60 };
    qn_model *m = NULL;
    qn_engine *e = NULL;
    qn_session *s = NULL;
    qn_model_opts mo = QN_MODEL_OPTS_INIT;
    qn_engine_opts eo = QN_ENGINE_OPTS_INIT;
    mo.n_threads = eo.n_threads = 2;
    eo.n_ctx = 64;
    eo.n_chunk = 8;
    qn_status st = qn_model_open(&m, file, &mo, err);
    if (st == QN_OK) st = qn_engine_open(&e, m, &eo, err);
    if (st == QN_OK) st = qn_session_open(&s, e, err);
    if (st == QN_OK) st = qn_session_eval(s, ids, 6, logits, err);
    qn_session_close(&s);
    qn_engine_close(&e);
    qn_model_close(&m);
    return st;
}

static void failing_allocations(void **state)
{
    (void)state;
    assert_true(tiny_model_write(path, "gemma3", 8, 1));
    long n = 1;
    for (;; n++) {
        qn_err err = { 0 };
        test_fail_alloc_at(n);
        const qn_status st = open_and_run(path, &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (!failed && st != QN_OK) fail_msg("nothing failed, and yet: %s", err.text);
        if (!failed) break;
        if (st != QN_OK && !err.text[0]) fail_msg("allocation %ld fails without a sentence (%s)", n, qn_status_name(st));
    }
    assert_true(n > 20);
}

/* One thing that is wrong with a model: a key's value, or a tensor that is left out, of another shape, or one too many. */
typedef struct spoil {
    const char *key;
    uint32_t value;
    bool last_differs;           /* an array: the value for the last layer, for the others what the file has */
    const char *drop, *reshape, *extra;
    const char *unless;          /* not of a model that has this tensor                  */
} spoil;

static bool is(qn_str a, const char *b)
{
    return b && a.len == strlen(b) && !memcmp(a.ptr, b, a.len);
}

static bool ends_in(qn_str a, const char *b)
{
    return b && a.len >= strlen(b) && !memcmp(a.ptr + a.len - strlen(b), b, strlen(b));
}

static void spoil_key(qn_writer *w, const char *name, const qn_value *was, const spoil *how)
{
    enum { N_LAYERS = 6 }; /* of the tiny models */
    uint32_t each[N_LAYERS];
    int64_t n = 0;
    if (!how->last_differs) {
        qn_writer_key_u32(w, name, how->value);
        return;
    }
    assert_int_equal(qn_value_as_i64(was, &n), QN_OK);
    for (int i = 0; i < N_LAYERS; i++) each[i] = i == N_LAYERS - 1 ? how->value : (uint32_t)n;
    qn_writer_key_array(w, name, QN_V_U32, each, N_LAYERS);
}

static void copy_keys(qn_writer *w, const qn_file *f, const spoil *how)
{
    qn_str key;
    qn_value v;
    for (int64_t i = 0; qn_file_key_at(f, i, &key, &v); i++) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)key.len, key.ptr);
        if (ends_in(key, how->key)) spoil_key(w, name, &v, how);
        else qn_writer_key_value(w, key, &v);
    }
}

static void copy_tensor_heads(qn_writer *w, const qn_file *f, const spoil *how)
{
    qn_tensor_info t;
    for (int64_t i = 0; qn_file_tensor_at(f, i, &t); i++) {
        char name[128];
        int64_t dims[] = { t.dims[0], t.dims[1], t.dims[2] };
        if (is(t.name, how->drop)) continue;
        snprintf(name, sizeof name, "%.*s", (int)t.name.len, t.name.ptr);
        if (is(t.name, how->reshape)) {
            const int halved = dims[0] % 2; /* as many elements, other sides */
            dims[halved] /= 2;
            dims[1 - halved] *= 2;
        }
        qn_writer_tensor(w, name, 0, dims[2] > 1 ? 3 : dims[1] > 1 ? 2 : 1, dims, NULL);
    }
    if (how->extra) qn_writer_tensor(w, how->extra, 0, 1, (int64_t[]){ 64 }, NULL);
}

static void copy_tensor_data(qn_writer *w, const qn_file *f, const spoil *how)
{
    static const float more[64];
    qn_tensor_info t;
    for (int64_t i = 0; qn_file_tensor_at(f, i, &t); i++) {
        const int64_t n_rows = t.dims[1] * t.dims[2];
        const size_t n = (size_t)(t.dims[0] * n_rows);
        if (is(t.name, how->drop)) continue;
        float *rows = malloc(n * sizeof *rows);
        assert_non_null(rows);
        assert_int_equal(qn_file_rows_f32(f, i, 0, n_rows, rows, NULL), QN_OK);
        qn_writer_data(w, rows, n * sizeof *rows);
        free(rows);
    }
    if (how->extra) qn_writer_data(w, more, sizeof more);
}

static void write_spoiled(const spoil *how)
{
    qn_file *f = NULL;
    qn_writer *w = NULL;
    qn_err err = { 0 };
    assert_int_equal(qn_file_open(&f, path, &err), QN_OK);
    assert_int_equal(qn_writer_open(&w, wrong_path, 32, &err), QN_OK);
    copy_keys(w, f, how);
    copy_tensor_heads(w, f, how);
    copy_tensor_data(w, f, how);
    if (qn_writer_close(&w, &err) != QN_OK) fail_msg("%s", err.text);
    qn_file_close(&f);
}

static const spoil spoils[] = {
    { .key = ".block_count", .value = 0 },
    { .key = ".block_count", .value = 5 },
    { .key = ".block_count", .value = 7 },
    { .key = ".block_count", .value = 513 },
    { .key = ".block_count", .value = 0x80000000u },
    { .key = ".embedding_length", .value = 0 },
    { .key = ".embedding_length", .value = 0xffffffffu },
    { .key = ".embedding_length", .value = 128 },
    { .key = ".feed_forward_length", .value = 0 },
    { .key = ".feed_forward_length", .value = 513 },
    { .key = ".attention.head_count", .value = 0 },
    { .key = ".attention.head_count", .value = 3 },
    { .key = ".attention.head_count_kv", .value = 3 },
    { .key = ".attention.head_count_kv", .value = 0x7fffffffu },
    { .key = ".attention.key_length", .value = 7 },
    { .key = ".attention.key_length", .value = 4096 },
    { .key = ".attention.value_length", .value = 24, .unless = "blk.0.attn_k_b.weight" }, /* a latent's values are sized by others */
    { .key = ".context_length", .value = 0 },
    { .key = ".layer_norm_rms_epsilon", .value = 0 },
    { .key = "general.architecture", .value = 1 },
    { .key = "tokenizer.ggml.tokens", .value = 1 },
    { .extra = "blk.0.attn_mystery.weight" },
};

static void expect_refused(const char *arch, const spoil *how)
{
    const char *what = how->key ? how->key : how->drop ? how->drop : how->reshape ? how->reshape : how->extra;
    qn_err err = { 0 };
    write_spoiled(how);
    if (open_and_run(wrong_path, &err) == QN_OK) fail_msg("%s: a file with a wrong %s is accepted", arch, what);
    if (!strstr(err.text, wrong_path)) fail_msg("the sentence does not name the file: %s", err.text);
    const char *tensor = how->drop ? how->drop : how->reshape;
    if (tensor && !strstr(err.text, tensor)) fail_msg("%s: the sentence does not name %s: %s", arch, tensor, err.text);
}

static bool has_key(const qn_file *f, const char *end)
{
    qn_str key;
    qn_value v;
    for (int64_t i = 0; qn_file_key_at(f, i, &key, &v); i++)
        if (ends_in(key, end)) return true;
    return false;
}

/* Tensors outside the layers, of the first layer and of the last one, each left out and in another shape. */
static void wrong_tensors(const char *arch, const qn_file *f)
{
    qn_tensor_info t;
    for (int64_t i = 0; qn_file_tensor_at(f, i, &t); i++) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)t.name.len, t.name.ptr);
        if (!strcmp(name, "rope_freqs.weight") || strstr(name, "layer_output_scale")) continue; /* a file may be without them */
        if (!strncmp(name, "blk.", 4) && name[4] != '0' && name[4] != '5') continue;
        expect_refused(arch, &(spoil){ .drop = name });
        if (t.dims[1] == 1) continue;
        expect_refused(arch, &(spoil){ .reshape = name });
    }
}

static void wrong_models(void **state)
{
    (void)state;
    for (int32_t a = 0; a < qn_arch_count(); a++) {
        const char *arch = qn_arch_at(a)->name;
        qn_err err = { 0 };
        qn_file *f = NULL;
        assert_true(tiny_model_write(path, arch, 0, 1));
        assert_int_equal(qn_file_open(&f, path, &err), QN_OK);
        write_spoiled(&(spoil){ 0 });
        if (open_and_run(wrong_path, &err) != QN_OK) fail_msg("%s: the unspoiled copy: %s", arch, err.text);
        for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++)
            if ((!spoils[i].key || has_key(f, spoils[i].key)) && !(spoils[i].unless && qn_file_tensor_find(f, spoils[i].unless) >= 0))
                expect_refused(arch, &spoils[i]);
        wrong_tensors(arch, f);
        qn_file_close(&f);
    }
}

/* Angles of the first layer's heads would turn what lies behind the smaller heads of another. */
static void heads_of_two_sizes(void **state)
{
    (void)state;
    for (int32_t a = 0; a < qn_arch_count(); a++) {
        qn_err err = { 0 };
        if (qn_arch_at(a)->mixer != &qn_mix_attention || qn_arch_at(a)->layers) continue; /* layer 5 may have no heads */
        assert_true(tiny_model_write(path, qn_arch_at(a)->name, 0, 1));
        write_spoiled(&(spoil){ .key = ".attention.key_length", .value = 32, .last_differs = true });
        assert_int_equal(open_and_run(wrong_path, &err), QN_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, "layer 5"));
    }
}

/* One sentence: its name, what is near, what can still be done. */
static void unknown_architecture(void **state)
{
    (void)state;
    static const struct {
        const char *name, *near;
    } cases[] = { { "perceptron", "nor one with" }, { "lama", "quern has llama" }, { "qwen2x", "quern has qwen2" }, { "olmo9", "quern has olmo" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_writer *w = NULL;
        qn_file *f = NULL;
        qn_memory_plan plan;
        qn_err err = { 0 };
        assert_int_equal(qn_writer_open(&w, wrong_path, 32, &err), QN_OK);
        qn_writer_key_str(w, "general.architecture", (qn_str){ cases[i].name, strlen(cases[i].name) });
        assert_int_equal(qn_writer_close(&w, &err), QN_OK);
        assert_int_equal(qn_file_open(&f, wrong_path, &err), QN_OK);
        assert_int_equal(qn_memory_estimate(f, NULL, &plan, &err), QN_ERR_UNSUPPORTED);
        assert_non_null(strstr(err.text, cases[i].name));
        if (!strstr(err.text, cases[i].near)) fail_msg("%s", err.text);
        assert_non_null(strstr(err.text, "inspect"));
        qn_file_close(&f);
    }
}

/* The estimate from the header is what the engine then takes, in every cache format. */
static void check_estimate(const qn_model *m, const qn_engine_opts *o)
{
    qn_memory_plan plan;
    qn_engine *e = NULL;
    qn_model_info mi;
    qn_engine_info ei;
    qn_kv_pool_info pool;
    assert_int_equal(qn_engine_open(&e, m, o, NULL), QN_OK);
    assert_int_equal(qn_memory_estimate(qn_model_file(m), o, &plan, NULL), QN_OK);
    qn_model_get_info(m, &mi);
    qn_engine_get_info(e, &ei);
    qn_kv_pool_get_info(e->kv_pool, &pool);
    assert_int_equal(plan.weight_bytes, mi.weight_bytes);
    assert_int_equal(plan.kv_bytes, ei.kv_bytes);
    assert_int_equal(plan.scratch_bytes, ei.scratch_bytes);
    assert_int_equal(plan.kv_bytes, pool.bytes + (uint64_t)e->n_sessions * pool.state_bytes);
    assert_string_equal(ei.cache_type_k, o->cache_type_k);
    assert_string_equal(ei.cache_type_v, o->cache_type_v);
    qn_engine_close(&e);
}

static void estimate_is_exact(void **state)
{
    (void)state;
    const char *types[16];
    const int32_t n = qn_cache_types(types, 16);
    for (int32_t a = 0; a < qn_arch_count(); a++) {
        qn_model *m = NULL;
        assert_true(tiny_model_write(path, qn_arch_at(a)->name, 12, 1));
        assert_int_equal(qn_model_open(&m, path, NULL, NULL), QN_OK);
        for (int32_t i = 0; i < n * n; i++) {
            qn_engine_opts o = QN_ENGINE_OPTS_INIT;
            o.n_ctx = 300;
            o.n_sessions = 1 + i % 3;
            o.n_threads = i % 3;
            o.cache_type_k = types[i % n];
            o.cache_type_v = types[i / n];
            check_estimate(m, &o);
        }
        qn_model_close(&m);
    }
}

/* Keys and values of 4096 positions in the shape of a 7B model, 32 layers of 32 heads of 128: 16, 8.5 and 4.5 bits each. */
static void seven_billion(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        uint64_t bits;
    } want[] = { { "F32", 64 }, { "F16", 32 }, { "BF16", 32 }, { "Q8_0", 17 }, { "Q4_0", 9 } }; /* in half bits */
    qn_kernels k;
    qn_kv_layer layer[32];
    assert_int_equal(qn_kernels_init(&k, "scalar", true, NULL), QN_OK);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const qn_kv_row *row;
        qn_kv_layout *l = NULL;
        qn_kv_pool *pool = NULL;
        qn_kv_pool_info info;
        assert_int_equal(qn_kv_row_find(&k, want[i].type, &row, NULL), QN_OK);
        for (int32_t n = 0; n < 32; n++)
            layer[n] = (qn_kv_layer){ .n_head_kv = 32, .k_bytes = qn_kv_block_bytes(row, 128), .v_bytes = qn_kv_block_bytes(row, 128) };
        assert_int_equal(qn_kv_layout_open(&l, layer, 32, 4096, 512, NULL), QN_OK);
        assert_int_equal(qn_kv_layout_bytes(l), 32ull * 32 * 128 * 2 * 4096 * want[i].bits / 16);
        assert_int_equal(qn_kv_pool_open(&pool, l, 1, NULL), QN_OK);
        qn_kv_pool_get_info(pool, &info);
        assert_int_equal(info.bytes, qn_kv_layout_bytes(l));
        qn_kv_pool_close(&pool);
        qn_kv_layout_close(&l);
    }
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/quern-fault-%ld.gguf", (long)getpid());
    snprintf(wrong_path, sizeof wrong_path, "/tmp/quern-wrong-%ld.gguf", (long)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(wrong_models),
        cmocka_unit_test(heads_of_two_sizes),
        cmocka_unit_test(unknown_architecture),
        cmocka_unit_test(estimate_is_exact),
        cmocka_unit_test(seven_billion),
    };
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    remove(path);
    remove(wrong_path);
    return code;
}
