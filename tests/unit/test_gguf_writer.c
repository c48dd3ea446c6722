/* What the writer writes, the reader reads; a writer that fails leaves nothing behind. */
#include "src/format/gguf.h"
#include "src/format/keys.h"
#include "src/format/writer.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/quern-writer-XXXXXX";
static char path[64];

static int open_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    return 0;
}

static int close_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir); /* fails when a temporary file was left behind */
}

static void expect_i64(const qn_file *f, const char *key, qn_vtype type, int64_t want)
{
    qn_value v;
    int64_t got;
    assert_true(qn_file_key(f, key, &v));
    assert_int_equal(v.type, type);
    assert_int_equal(qn_value_as_i64(&v, &got), QN_OK);
    assert_int_equal(got, want);
}

static void write_scalars(qn_writer *w)
{
    qn_writer_key_scalar(w, "u8", QN_V_U8, &(uint8_t){ 255 });
    qn_writer_key_scalar(w, "i8", QN_V_I8, &(int8_t){ -128 });
    qn_writer_key_scalar(w, "u16", QN_V_U16, &(uint16_t){ 65535 });
    qn_writer_key_scalar(w, "i16", QN_V_I16, &(int16_t){ -32768 });
    qn_writer_key_u32(w, "u32", UINT32_MAX);
    qn_writer_key_scalar(w, "i32", QN_V_I32, &(int32_t){ INT32_MIN });
    qn_writer_key_f32(w, "f32", 0.1f);
    qn_writer_key_bool(w, "bool", true);
    qn_writer_key_str(w, "string", (qn_str){ "a\0b", 3 });
    qn_writer_key_scalar(w, "u64", QN_V_U64, &(uint64_t){ UINT64_MAX });
    qn_writer_key_scalar(w, "i64", QN_V_I64, &(int64_t){ INT64_MIN });
    qn_writer_key_scalar(w, "f64", QN_V_F64, &(double){ 0.1 });
}

static void every_scalar_comes_back(void **state)
{
    (void)state;
    qn_writer *w;
    qn_file *f;
    qn_value v;
    qn_str s;
    double d;
    bool b;
    int64_t i;
    assert_int_equal(qn_writer_open(&w, path, 32, NULL), QN_OK);
    write_scalars(w);
    assert_int_equal(qn_writer_close(&w, NULL), QN_OK);
    assert_null(w);
    assert_int_equal(qn_file_open(&f, path, NULL), QN_OK);
    assert_int_equal(qn_file_n_keys(f), 12);
    assert_int_equal(qn_file_version(f), 3);
    expect_i64(f, "u8", QN_V_U8, 255);
    expect_i64(f, "i8", QN_V_I8, -128);
    expect_i64(f, "u16", QN_V_U16, 65535);
    expect_i64(f, "i16", QN_V_I16, -32768);
    expect_i64(f, "u32", QN_V_U32, UINT32_MAX);
    expect_i64(f, "i32", QN_V_I32, INT32_MIN);
    expect_i64(f, "i64", QN_V_I64, INT64_MIN);
    assert_true(qn_file_key(f, "u64", &v));
    assert_int_equal(qn_value_as_i64(&v, &i), QN_ERR_TYPE); /* does not fit */
    assert_int_equal(qn_value_as_f64(&v, &d), QN_ERR_TYPE); /* would lose bits */
    assert_true(qn_file_key(f, "f32", &v));
    assert_int_equal(qn_value_as_f64(&v, &d), QN_OK);
    assert_true(d == (double)0.1f);
    assert_true(qn_file_key(f, "f64", &v));
    assert_int_equal(qn_value_as_f64(&v, &d), QN_OK);
    assert_true(d == 0.1);
    assert_int_equal(qn_value_as_i64(&v, &i), QN_ERR_TYPE);
    assert_true(qn_file_key(f, "bool", &v));
    assert_int_equal(qn_value_as_bool(&v, &b), QN_OK);
    assert_true(b);
    assert_int_equal(qn_value_as_i64(&v, &i), QN_ERR_TYPE);
    assert_true(qn_file_key(f, "string", &v));
    assert_int_equal(qn_value_as_str(&v, &s), QN_OK);
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.ptr, "a\0b", 3);
    assert_false(qn_file_key(f, "absent", &v));
    qn_file_close(&f);
    assert_null(f);
}

static void arrays_come_back_and_are_copied(void **state)
{
    (void)state;
    const qn_str words[] = { QN_LIT("one"), QN_LIT(""), QN_LIT("\xff\xfe") };
    const uint16_t numbers[] = { 1, 2, 65535 };
    qn_writer *w;
    qn_file *f;
    qn_value v, e;
    qn_str key, s;
    assert_int_equal(qn_writer_open(&w, path, 32, NULL), QN_OK);
    qn_writer_key_strings(w, "words", words, 3);
    qn_writer_key_array(w, "numbers", QN_V_U16, numbers, 3);
    qn_writer_key_array(w, "nothing", QN_V_F32, NULL, 0);
    assert_int_equal(qn_writer_close(&w, NULL), QN_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(qn_file_open(&f, path, NULL), QN_OK);
        assert_int_equal(qn_file_n_keys(f), 3);
        assert_true(qn_file_key(f, "words", &v));
        assert_int_equal(v.count, 3);
        qn_value_iter it = qn_value_iterate(&v);
        for (int i = 0; i < 3; i++) {
            assert_true(qn_value_next(&it, &e));
            assert_int_equal(qn_value_as_str(&e, &s), QN_OK);
            assert_int_equal(s.len, words[i].len);
            assert_memory_equal(s.ptr, words[i].ptr, s.len);
        }
        assert_false(qn_value_next(&it, &e));
        assert_true(qn_file_key(f, "nothing", &v));
        assert_int_equal(v.count, 0);
        assert_int_equal(qn_key_array(f, "numbers", NULL, QN_V_U16, &v, NULL), QN_OK);
        assert_memory_equal(v.data, numbers, sizeof numbers);
        assert_int_equal(qn_writer_open(&w, path, 32, NULL), QN_OK); /* over the file that is open */
        for (int64_t i = 0; qn_file_key_at(f, i, &key, &v); i++) assert_int_equal(qn_writer_key_value(w, key, &v), QN_OK);
        assert_int_equal(qn_writer_close(&w, NULL), QN_OK);
        qn_file_close(&f);
    }
}

static void tensors_come_back(uint32_t alignment)
{
    const float a[6] = { 1, 2, 3, 4, 5, 6 };
    const int8_t b[3] = { -1, 0, 127 };
    float out[6];
    qn_writer *w;
    qn_file *f;
    qn_tensor_info info;
    assert_int_equal(qn_writer_open(&w, path, alignment, NULL), QN_OK);
    qn_writer_tensor(w, "streamed", 0, 2, (int64_t[]){ 3, 2 }, NULL);
    qn_writer_tensor(w, "lent", 24, 1, (int64_t[]){ 3 }, b);
    qn_writer_tensor(w, "last", 0, 4, (int64_t[]){ 1, 1, 2, 3 }, NULL);
    for (int i = 0; i < 6; i++) qn_writer_data(w, (const uint8_t *)a + 4 * i, 4);
    qn_writer_data(w, a, 5); /* pieces end anywhere */
    qn_writer_data(w, (const uint8_t *)a + 5, 19);
    assert_int_equal(qn_writer_close(&w, NULL), QN_OK);
    assert_int_equal(qn_file_open(&f, path, NULL), QN_OK);
    assert_int_equal(qn_file_n_tensors(f), 3);
    assert_int_equal(qn_file_tensor_find(f, "lent"), 1);
    assert_int_equal(qn_file_tensor_find(f, "len"), -1);
    assert_true(qn_file_tensor_at(f, 2, &info));
    assert_int_equal(info.n_dims, 4);
    assert_int_equal(info.dims[3], 3);
    assert_int_equal(info.offset % alignment, 0);
    assert_string_equal(info.type_name, "F32");
    assert_int_equal(qn_file_rows_f32(f, 2, 0, 6, out, NULL), QN_OK);
    assert_memory_equal(out, a, sizeof a);
    assert_int_equal(qn_file_rows_f32(f, 0, 1, 1, out, NULL), QN_OK);
    assert_memory_equal(out, a + 3, 3 * sizeof *a);
    assert_int_equal(qn_file_rows_f32(f, 1, 0, 1, out, NULL), QN_OK);
    assert_true(out[0] == -1 && out[1] == 0 && out[2] == 127);
    assert_int_equal(qn_file_rows_f32(f, 0, 1, 2, out, NULL), QN_ERR_ARG);
    assert_int_equal(qn_file_rows_f32(f, 0, -1, 1, out, NULL), QN_ERR_ARG);
    assert_int_equal(qn_file_rows_f32(f, 3, 0, 1, out, NULL), QN_ERR_ARG);
    assert_int_equal(qn_file_rows_f32(f, 0, INT64_MAX, INT64_MAX, out, NULL), QN_ERR_ARG);
    qn_file_tensor_expect(f, 0);
    qn_file_tensor_drop(f, 0, 0, SIZE_MAX);
    assert_memory_equal(qn_file_tensor_bytes(f, 0), a, sizeof a);
    qn_file_close(&f);
}

static void any_alignment(void **state)
{
    (void)state;
    for (uint32_t a = 1; a <= 65536; a *= 2) tensors_come_back(a);
}

static void mistakes_are_told(void **state)
{
    (void)state;
    const float x[4] = { 0 };
    qn_writer *w;
    qn_err err;
    struct stat st;
    unlink(path);
    assert_int_equal(qn_writer_open(&w, path, 3, &err), QN_ERR_ARG);
    assert_int_equal(qn_writer_open(&w, "/nonexistent/x.gguf", 32, &err), QN_ERR_IO);
    assert_int_equal(qn_writer_open(&w, "/dev/null", 32, &err), QN_ERR_IO);

    assert_int_equal(qn_writer_open(&w, path, 32, &err), QN_OK);
    qn_writer_key_u32(w, "a", 1);
    qn_writer_key_u32(w, "a", 1);
    assert_int_equal(qn_writer_close(&w, &err), QN_ERR_ARG);
    assert_string_equal(err.text, "key 'a' is given twice");

    assert_int_equal(qn_writer_open(&w, path, 32, &err), QN_OK);
    assert_int_equal(qn_writer_tensor(w, "t", 9999, 1, (int64_t[]){ 4 }, x), QN_ERR_ARG);
    assert_int_equal(qn_writer_key_u32(w, "a", 1), QN_ERR_ARG); /* the first failure stays */
    assert_int_equal(qn_writer_close(&w, &err), QN_ERR_ARG);
    assert_string_equal(err.text, "tensor 't': no format has number 9999");

    assert_int_equal(qn_writer_open(&w, path, 32, &err), QN_OK);
    qn_writer_tensor(w, "t", 0, 1, (int64_t[]){ 4 }, NULL);
    qn_writer_data(w, x, 15);
    assert_int_equal(qn_writer_close(&w, &err), QN_ERR_ARG);
    assert_string_equal(err.text, "tensor 't' got 15 of its 16 bytes");

    assert_int_equal(qn_writer_open(&w, path, 32, &err), QN_OK);
    qn_writer_tensor(w, "t", 0, 1, (int64_t[]){ 4 }, NULL);
    assert_int_equal(qn_writer_data(w, x, 16), QN_OK);
    assert_int_equal(qn_writer_data(w, x, 1), QN_ERR_ARG);
    qn_writer_abandon(&w);
    assert_int_not_equal(stat(path, &st), 0); /* nothing appeared under the name */
}

static void pieces_in_any_order(void **state)
{
    (void)state;
    const float a[6] = { 1, 2, 3, 4, 5, 6 };
    float got[6];
    qn_writer *w;
    qn_file *f;
    qn_err err;
    for (int announced = 0; announced < 2; announced++) { /* first for the size alone */
        assert_int_equal(qn_writer_open(&w, announced ? path : NULL, 64, &err), QN_OK);
        qn_writer_key_str(w, "general.architecture", QN_LIT("none"));
        qn_writer_tensor(w, "a", 0, 2, (int64_t[]){ 3, 2 }, NULL);
        qn_writer_tensor(w, "b", 0, 1, (int64_t[]){ 6 }, NULL);
        if (announced) break;
        assert_int_equal(qn_writer_check(w, &err), QN_OK);
        assert_true(qn_writer_file_bytes(w) % 64 == 0);
        qn_writer_abandon(&w);
    }
    assert_int_equal(qn_writer_place(w, 0, 0, a, 4, &err), QN_ERR_ARG); /* not reserved */
    const uint64_t n = qn_writer_file_bytes(w);
    assert_int_equal(qn_writer_reserve(w, &err), QN_OK);
    assert_int_equal(qn_writer_place(w, 1, 0, a, sizeof a, &err), QN_OK);
    assert_int_equal(qn_writer_place(w, 0, 8, a + 2, 16, &err), QN_OK);
    assert_int_equal(qn_writer_place(w, 0, 0, a, 8, &err), QN_OK);
    assert_int_equal(qn_writer_place(w, 0, 20, a, 5, &err), QN_ERR_ARG);
    assert_int_equal(qn_writer_place(w, 0, UINT64_MAX, a, 4, &err), QN_ERR_ARG);
    assert_int_equal(qn_writer_place(w, 2, 0, a, 4, &err), QN_ERR_ARG);
    assert_int_equal(qn_writer_flush(w, &err), QN_OK);
    assert_int_equal(qn_writer_close(&w, &err), QN_OK);
    assert_int_equal(qn_file_open(&f, path, NULL), QN_OK);
    assert_true(qn_file_bytes(f) == n);
    assert_memory_equal(qn_file_tensor_bytes(f, 1), a, sizeof a);
    assert_int_equal(qn_file_rows_f32(f, 0, 0, 2, got, NULL), QN_OK);
    assert_memory_equal(got, a, sizeof a);
    qn_file_close(&f);
}

/* The limit on the size of a file stands for a full disk. */
static void full_disk(void **state)
{
    (void)state;
    static const float x[65536];
    struct rlimit old, small;
    qn_writer *w;
    qn_err err;
    struct stat st;
    unlink(path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    small = old;
    small.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(qn_writer_open(&w, path, 32, &err), QN_OK);
    qn_writer_tensor(w, "t", 0, 1, (int64_t[]){ 65536 }, x);
    assert_int_equal(qn_writer_close(&w, &err), QN_ERR_IO);
    assert_non_null(strstr(err.text, "cannot write"));
    assert_int_equal(qn_writer_open(&w, path, 32, &err), QN_OK);
    qn_writer_tensor(w, "t", 0, 1, (int64_t[]){ 65536 }, NULL);
    assert_int_equal(qn_writer_reserve(w, &err), QN_ERR_IO); /* before any work */
    assert_non_null(strstr(err.text, "the file needs 262208 bytes, and "));
    qn_writer_abandon(&w);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_not_equal(stat(path, &st), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scalar_comes_back), cmocka_unit_test(arrays_come_back_and_are_copied),
        cmocka_unit_test(any_alignment),           cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(pieces_in_any_order),     cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, open_dir, close_dir);
}
