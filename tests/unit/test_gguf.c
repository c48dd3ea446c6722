/* The GGUF reader on good files: keys by type, splits, nested arrays, large metadata, allocation failures. */
#include "src/base/mem.h"
#include "src/format/gguf.h"
#include "src/format/keys.h"
#include "src/format/writer.h"
#include "tests/common/fault.h"
#include "tests/common/gguf_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/quern-gguf-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[2][160];
    static int i;
    i = !i;
    snprintf(path[i], sizeof path[i], "%s/%s", dir, name);
    return path[i];
}

static int open_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int close_dir(void **state)
{
    (void)state;
    return rmdir(dir); /* fails when a test left a file */
}

static void typed_keys(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    qn_file *f;
    qn_err err;
    int64_t i = 77;
    float x = 77;
    bool t = true;
    qn_str s;
    qn_value v;
    gguf_header(&b, 3, 0, 8);
    gguf_key(&b, "llama.block_count", QN_V_U32);
    gguf_u32(&b, 30);
    gguf_key(&b, "llama.eps", QN_V_F32);
    gguf_u32(&b, 0x3f000000);
    gguf_key(&b, "llama.nan", QN_V_F32);
    gguf_u32(&b, 0x7fc00000);
    gguf_key(&b, "llama.big", QN_V_F64);
    gguf_u64(&b, 0x7fe0000000000000); /* finite, beyond float32 */
    gguf_key(&b, "name", QN_V_STRING);
    gguf_str(&b, "quern");
    gguf_key(&b, "flag", QN_V_BOOL);
    gguf_bytes(&b, "\0", 1);
    gguf_key(&b, "list", QN_V_ARRAY);
    gguf_u32(&b, QN_V_U8);
    gguf_u64(&b, 2);
    gguf_bytes(&b, "\1\2", 2);
    gguf_key(&b, "llama.negative", QN_V_I32);
    gguf_u32(&b, 0xffffffff);
    assert_int_equal(qn_file_open_memory(&f, b.ptr, b.len, &err), QN_OK);

    assert_int_equal(qn_key_i64(f, "%s.block_count", "llama", 1, 100, &i, &err), QN_OK);
    assert_int_equal(i, 30);
    assert_int_equal(qn_key_i64(f, "%s.block_count", "llama", 1, 29, &i, &err), QN_ERR_FORMAT);
    assert_string_equal(err.text, "key 'llama.block_count' is 30; it has to be 1 to 29");
    assert_int_equal(qn_key_i64(f, "%s.block_count", "qwen2", 1, 100, &i, &err), QN_ERR_NOT_FOUND);
    assert_string_equal(err.text, "key 'qwen2.block_count' is missing");
    assert_int_equal(qn_key_i64(f, "%s.negative", "llama", -5, 5, &i, &err), QN_OK);
    assert_int_equal(i, -1);
    assert_int_equal(qn_key_i64(f, "%s.eps", "llama", 1, 100, &i, &err), QN_ERR_TYPE);
    assert_string_equal(err.text, "key 'llama.eps' has type f32; it has to be a whole number");
    assert_int_equal(qn_key_i64(f, "list", NULL, 1, 100, &i, &err), QN_ERR_TYPE);
    assert_string_equal(err.text, "key 'list' is an array of u8; it has to be a whole number");

    assert_int_equal(qn_key_f32(f, "%s.eps", "llama", &x, &err), QN_OK);
    assert_true(x == 0.5f);
    assert_int_equal(qn_key_f32(f, "%s.block_count", "llama", &x, &err), QN_OK);
    assert_true(x == 30.0f);
    assert_int_equal(qn_key_f32(f, "%s.nan", "llama", &x, &err), QN_ERR_FORMAT);
    assert_int_equal(qn_key_f32(f, "%s.big", "llama", &x, &err), QN_ERR_FORMAT);
    assert_int_equal(qn_key_f32(f, "name", NULL, &x, &err), QN_ERR_TYPE);

    assert_int_equal(qn_key_bool(f, "flag", NULL, &t, &err), QN_OK);
    assert_false(t);
    assert_int_equal(qn_key_bool(f, "name", NULL, &t, &err), QN_ERR_TYPE);
    assert_int_equal(qn_key_str(f, "name", NULL, &s, &err), QN_OK);
    assert_int_equal(s.len, 5);
    assert_memory_equal(s.ptr, "quern", 5);
    assert_int_equal(qn_key_str(f, "flag", NULL, &s, &err), QN_ERR_TYPE);
    assert_int_equal(qn_key_array(f, "list", NULL, QN_V_U8, &v, &err), QN_OK);
    assert_int_equal(v.count, 2);
    assert_int_equal(qn_key_array(f, "list", NULL, QN_V_I32, &v, &err), QN_ERR_TYPE);
    assert_string_equal(err.text, "key 'list' is an array of u8; it has to be an array of i32");

    char arch[600]; /* a name that no key can hold */
    memset(arch, 'x', sizeof arch - 1);
    arch[sizeof arch - 1] = 0;
    assert_int_equal(qn_key_i64(f, "%s.block_count", arch, 1, 100, &i, &err), QN_ERR_NOT_FOUND);
    assert_int_equal(qn_key_i64(f, "%s.block_count", "%s%n", 1, 100, &i, &err), QN_ERR_NOT_FOUND);
    assert_string_equal(err.text, "key '%s%n.block_count' is missing");
    qn_file_close(&f);
    qn_buf_free(&b);
}

static void nested_arrays(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    qn_file *f;
    qn_value v, row, e;
    qn_str s;
    gguf_header(&b, 2, 0, 1);
    gguf_key(&b, "nested", QN_V_ARRAY); /* [["a", "bc"], [], [true]] */
    gguf_array(&b, QN_V_ARRAY, 3);
    gguf_array(&b, QN_V_STRING, 2);
    gguf_str(&b, "a");
    gguf_str(&b, "bc");
    gguf_array(&b, QN_V_I16, 0);
    gguf_array(&b, QN_V_BOOL, 1);
    gguf_bytes(&b, "\1", 1);
    assert_int_equal(qn_file_open_memory(&f, b.ptr, b.len, NULL), QN_OK);
    assert_int_equal(qn_file_version(f), 2);
    assert_true(qn_file_key(f, "nested", &v));
    assert_int_equal(v.elem, QN_V_ARRAY);
    assert_int_equal(v.count, 3);
    qn_value_iter it = qn_value_iterate(&v);
    assert_true(qn_value_next(&it, &row));
    qn_value_iter in = qn_value_iterate(&row);
    assert_true(qn_value_next(&in, &e));
    assert_true(qn_value_next(&in, &e));
    assert_int_equal(qn_value_as_str(&e, &s), QN_OK);
    assert_int_equal(s.len, 2);
    assert_memory_equal(s.ptr, "bc", 2);
    assert_false(qn_value_next(&in, &e));
    assert_true(qn_value_next(&it, &row));
    assert_int_equal(row.elem, QN_V_I16);
    assert_int_equal(row.count, 0);
    assert_true(qn_value_next(&it, &row));
    assert_int_equal(row.elem, QN_V_BOOL);
    assert_false(qn_value_next(&it, &row));
    qn_file_close(&f);
    qn_buf_free(&b);
}

/* ---- splits ---- */

typedef struct shard_spec {
    const char *file;
    int no, count, n_total;
    const char *tensor;
} shard_spec;

static void write_shard(const shard_spec *s)
{
    const float x[2] = { (float)s->no, 0.5f };
    qn_writer *w;
    assert_int_equal(qn_writer_open(&w, in_dir(s->file), 32, NULL), QN_OK);
    qn_writer_key_scalar(w, "split.no", QN_V_U16, &(uint16_t){ (uint16_t)s->no });
    qn_writer_key_scalar(w, "split.count", QN_V_U16, &(uint16_t){ (uint16_t)s->count });
    qn_writer_key_scalar(w, "split.tensors.count", QN_V_I32, &(int32_t){ s->n_total });
    if (s->no == 0) qn_writer_key_str(w, "general.name", QN_LIT("in three"));
    if (s->tensor) qn_writer_tensor(w, s->tensor, 0, 1, (int64_t[]){ 2 }, x);
    assert_int_equal(qn_writer_close(&w, NULL), QN_OK);
}

static const shard_spec three[] = {
    { "m-00001-of-00003.gguf", 0, 3, 2, NULL },
    { "m-00002-of-00003.gguf", 1, 3, 2, "b" },
    { "m-00003-of-00003.gguf", 2, 3, 2, "c" },
};

static void write_three(void)
{
    for (int i = 0; i < 3; i++) write_shard(&three[i]);
}

static void remove_three(void)
{
    for (int i = 0; i < 3; i++) unlink(in_dir(three[i].file));
}

static void any_shard_opens_the_set(void **state)
{
    (void)state;
    qn_file *f;
    qn_value v;
    qn_tensor_info info;
    float x[2];
    write_three();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(qn_file_open(&f, in_dir(three[i].file), NULL), QN_OK);
        assert_int_equal(qn_file_n_shards(f), 3);
        assert_int_equal(qn_file_n_tensors(f), 2);
        assert_true(qn_file_key(f, "general.name", &v)); /* of the first shard */
        const int64_t c = qn_file_tensor_find(f, "c");
        assert_true(qn_file_tensor_at(f, c, &info));
        assert_int_equal(info.i_shard, 2);
        assert_int_equal(qn_file_rows_f32(f, c, 0, 1, x, NULL), QN_OK);
        assert_true(x[0] == 2 && x[1] == 0.5f);
        qn_file_tensor_drop(f, c, 0, SIZE_MAX);
        qn_file_close(&f);
    }
    remove_three();
}

static void expect_split_fault(const char *file, const char *sentence)
{
    qn_file *f;
    qn_err err;
    assert_int_not_equal(qn_file_open(&f, in_dir(file), &err), QN_OK);
    assert_null(f);
    if (!strstr(err.text, sentence)) print_message("%s\n", err.text);
    assert_non_null(strstr(err.text, sentence));
}

static void broken_sets_are_refused(void **state)
{
    (void)state;
    write_three();
    unlink(in_dir(three[2].file));
    expect_split_fault(three[1].file, "m-00003-of-00003.gguf: cannot be opened");
    write_shard(&(shard_spec){ three[2].file, 2, 4, 2, "c" });
    expect_split_fault(three[0].file, "this shard is one of 4, the one that was opened is one of 3");
    write_shard(&(shard_spec){ three[2].file, 1, 3, 2, "c" });
    expect_split_fault(three[0].file, "this is shard 2 of its set by key 'split.no', where shard 3 was expected");
    write_shard(&(shard_spec){ three[2].file, 2, 3, 7, "c" });
    expect_split_fault(three[0].file, "key 'split.tensors.count' is 7, in the shard that was opened 2");
    write_shard(&(shard_spec){ three[2].file, 2, 3, 2, NULL });
    expect_split_fault(three[0].file, "the 3 shards hold 1 tensors; key 'split.tensors.count' promises 2");
    write_shard(&(shard_spec){ three[2].file, 2, 3, 2, "b" });
    expect_split_fault(three[0].file, "tensor 'b' is there twice");
    remove_three();
}

static void the_name_does_not_decide(void **state)
{
    (void)state;
    qn_file *f;
    qn_writer *w;
    const char *names[] = { "x-00001-of-00002.gguf", "x-00001-of-00001.gguf", "x-00002-of-00013.gguf" };
    for (int i = 0; i < 3; i++) { /* whole models under the names of shards */
        assert_int_equal(qn_writer_open(&w, in_dir(names[i]), 32, NULL), QN_OK);
        if (i == 1) qn_writer_key_scalar(w, "split.count", QN_V_U16, &(uint16_t){ 1 });
        assert_int_equal(qn_writer_close(&w, NULL), QN_OK);
        assert_int_equal(qn_file_open(&f, in_dir(names[i]), NULL), QN_OK);
        assert_int_equal(qn_file_n_shards(f), 1);
        qn_file_close(&f);
        unlink(in_dir(names[i]));
    }
    write_shard(&(shard_spec){ "renamed.gguf", 1, 3, 2, "b" });
    expect_split_fault("renamed.gguf", "this is shard 2 of 3, but its name does not end in '-00002-of-00003.gguf'");
    unlink(in_dir("renamed.gguf"));
    write_shard(&(shard_spec){ "r-00001-of-00003.gguf", 1, 3, 2, "b" }); /* the second shard under the first one's name */
    expect_split_fault("r-00001-of-00003.gguf", "where shard 1 was expected");
    unlink(in_dir("r-00001-of-00003.gguf"));
}

/* ---- size and memory ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double time_open(const qn_buf *b)
{
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        qn_file *f;
        const double t0 = seconds();
        assert_int_equal(qn_file_open_memory(&f, b->ptr, b->len, NULL), QN_OK);
        const double t = seconds() - t0;
        qn_file_close(&f);
        if (t < best) best = t;
    }
    return best;
}

static void large_metadata_loads_fast(void **state)
{
    (void)state;
    enum { N = 262144 };
    char text[64];
    qn_buf pieces = { 0 }, keys = { 0 };
    gguf_header(&pieces, 3, 0, 3);
    gguf_key(&pieces, "tokenizer.ggml.tokens", QN_V_ARRAY);
    gguf_array(&pieces, QN_V_STRING, N);
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "piece %d", i);
        gguf_str(&pieces, text);
    }
    gguf_key(&pieces, "tokenizer.ggml.scores", QN_V_ARRAY);
    gguf_array(&pieces, QN_V_F32, N);
    for (int i = 0; i < N; i++) gguf_u32(&pieces, 0);
    gguf_key(&pieces, "nested", QN_V_ARRAY);
    gguf_array(&pieces, QN_V_ARRAY, N);
    for (int i = 0; i < N; i++) gguf_array(&pieces, QN_V_U8, 0);
    gguf_header(&keys, 3, 0, N);
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "some.metadata.key.%d", i);
        gguf_key(&keys, text, QN_V_U32);
        gguf_u32(&keys, (uint32_t)i);
    }
    assert_false(pieces.failed || keys.failed);
    const double t_pieces = time_open(&pieces), t_keys = time_open(&keys);
    print_message("%d pieces in arrays: %.4f s; as single keys: %.4f s\n", N, t_pieces, t_keys);
    assert_true(t_pieces < 0.3 * TEST_SLOWNESS);
    assert_true(t_keys < 0.3 * TEST_SLOWNESS);
    qn_buf_free(&pieces);
    qn_buf_free(&keys);
}

static void every_failed_allocation_is_a_status(void **state)
{
    (void)state;
    qn_file *f;
    qn_writer *w;
    qn_err err;
    long n;
    write_three();
    for (n = 1;; n++) {
        test_fail_alloc_at(n);
        const qn_status s = qn_file_open(&f, in_dir(three[1].file), &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (!failed) break;
        assert_int_equal(s, QN_ERR_NOMEM);
        assert_null(f);
    }
    assert_true(n > 10);
    qn_file_close(&f);
    remove_three();
    for (n = 1;; n++) {
        test_fail_alloc_at(n);
        qn_status s = qn_writer_open(&w, in_dir("out.gguf"), 64, &err);
        if (s == QN_OK) {
            qn_writer_key_strings(w, "words", (qn_str[]){ QN_LIT("a"), QN_LIT("b") }, 2);
            qn_writer_tensor(w, "t", 0, 1, (int64_t[]){ 1 }, "\0\0\0");
            s = qn_writer_close(&w, &err);
        }
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (!failed) break;
        assert_int_equal(s, QN_ERR_NOMEM);
        assert_int_not_equal(access(in_dir("out.gguf"), F_OK), 0);
    }
    assert_true(n > 5);
    unlink(in_dir("out.gguf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typed_keys),
        cmocka_unit_test(nested_arrays),
        cmocka_unit_test(any_shard_opens_the_set),
        cmocka_unit_test(broken_sets_are_refused),
        cmocka_unit_test(the_name_does_not_decide),
        cmocka_unit_test(large_metadata_loads_fast),
        cmocka_unit_test(every_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, open_dir, close_dir);
}
