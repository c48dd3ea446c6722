/*
 * GGUF files that are wrong on purpose: each gets a status and a sentence that says what and where, and takes no more memory than its
 * bytes justify. The cases are those that made other readers crash, hang or read past their buffers.
 */
#include "src/base/mem.h"
#include "src/format/gguf.h"
#include "src/format/keys.h"
#include "tests/common/fault.h"
#include "tests/common/gguf_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { F32 = 0, I8 = 24, N_VTYPES = 13 };
#define D(...) ((const uint64_t[8]){ __VA_ARGS__ })

/* The exact bytes in memory of their own, so that a sanitizer sees the first read past the end. */
static qn_status open_bytes(const qn_buf *b, qn_err *err)
{
    qn_file *f;
    uint8_t *exact = malloc(b->len ? b->len : 1);
    assert_non_null(exact);
    assert_false(b->failed);
    if (b->len) memcpy(exact, b->ptr, b->len);
    err->text[0] = 0;
    const qn_status s = qn_file_open_memory(&f, exact, b->len, err);
    assert_true((s == QN_OK) == (f != NULL));
    qn_file_close(&f);
    free(exact);
    return s;
}

/* Opens, compares and frees the bytes. */
static void expect(qn_buf *b, qn_status want, const char *sentence)
{
    qn_err err;
    const qn_status s = open_bytes(b, &err);
    if (s != want || (sentence && !strstr(err.text, sentence)))
        fail_msg("status %d (%s), not %d: '%s' should hold '%s'", s, qn_status_name(s), want, err.text, sentence ? sentence : "");
    qn_buf_free(b);
}

static qn_buf one_tensor(uint32_t n_dims, const uint64_t *dims, uint32_t type, uint64_t offset, size_t n_data)
{
    qn_buf b = { 0 };
    gguf_header(&b, 3, 1, 0);
    gguf_tensor(&b, "blk.0.attn_q.weight", n_dims, dims, type, offset);
    gguf_data(&b, 32, n_data);
    return b;
}

/* ---- tensors ---- */

static void dimension_of_zero(void **state)
{
    (void)state;
    qn_buf b = one_tensor(2, D(4, 0), F32, 0, 64);
    expect(&b, QN_ERR_FORMAT, "tensor 'blk.0.attn_q.weight' has 0 elements in dimension 1");
    b = one_tensor(2, D(0, 0), F32, 0, 64);
    expect(&b, QN_ERR_FORMAT, "in dimension 0");
    b = one_tensor(1, D(0), F32, 0, 64);
    expect(&b, QN_ERR_FORMAT, "in dimension 0");
    b = one_tensor(4, D(4, 1, 1, 0), F32, 0, 64);
    expect(&b, QN_ERR_FORMAT, "in dimension 3");
}

static void sizes_that_wrap(void **state)
{
    (void)state;
    const uint64_t p = (uint64_t)1 << 40;
    qn_buf b = one_tensor(2, D(p, p >> 16), F32, 0, 4096);
    expect(&b, QN_ERR_FORMAT, "larger than any file");
    b = one_tensor(2, D(4 * p + 1, 4 * p), F32, 0, 4096);
    expect(&b, QN_ERR_FORMAT, "larger than any file");
    b = one_tensor(4, D((uint64_t)1 << 62, 1, 1, 1), F32, 0, 4096); /* the count fits, its bytes wrap to 0 */
    expect(&b, QN_ERR_FORMAT, "larger than any file");
    b = one_tensor(4, D((uint64_t)1 << 16, (uint64_t)1 << 16, (uint64_t)1 << 16, (uint64_t)1 << 16), I8, 0, 4096);
    expect(&b, QN_ERR_FORMAT, "larger than any file");
    b = one_tensor(1, D(UINT64_MAX), I8, 0, 4096);
    expect(&b, QN_ERR_FORMAT, "elements in dimension 0");
    b = one_tensor(1, D((uint64_t)INT64_MAX), I8, 0, 4096);
    expect(&b, QN_ERR_FORMAT, NULL);
    for (uint64_t n = SIZE_MAX / 4 - 8; n <= SIZE_MAX / 4 + 1; n++) { /* rounding this up to the alignment gives 0 */
        b = (qn_buf){ 0 };
        gguf_header(&b, 3, 2, 0);
        gguf_tensor(&b, "huge", 1, D(n), F32, 0);
        gguf_tensor(&b, "tiny", 1, D(1), F32, 0);
        gguf_data(&b, 32, 64);
        expect(&b, QN_ERR_FORMAT, "tensor 'huge'");
    }
}

static void tensors_past_the_end(void **state)
{
    (void)state;
    qn_buf b = one_tensor(1, D(16), F32, 0, 63);
    expect(&b, QN_ERR_FORMAT, "tensor 'blk.0.attn_q.weight' (64 bytes at offset 0 of the data) ends past the end of the file");
    b = one_tensor(1, D(16), F32, 32, 64);
    expect(&b, QN_ERR_FORMAT, "it is cut short");
    b = one_tensor(1, D(16), F32, UINT64_MAX - 31, 64); /* offset + size wraps */
    expect(&b, QN_ERR_FORMAT, "ends past the end");
    b = one_tensor(1, D(16), F32, (uint64_t)1 << 63, 64);
    expect(&b, QN_ERR_FORMAT, "ends past the end");
    b = one_tensor(1, D(16), F32, 1, 128);
    expect(&b, QN_ERR_FORMAT, "not a multiple of the alignment 32");
    b = one_tensor(1, D(16), F32, 0, 64);
    b.len -= 80; /* the file ends inside the padding */
    expect(&b, QN_ERR_FORMAT, NULL);
    b = one_tensor(1, D(16), F32, 0, 64);
    expect(&b, QN_OK, NULL);
}

static void tensor_entries(void **state)
{
    (void)state;
    qn_buf b = one_tensor(5, D(1, 1, 1, 1, 1), F32, 0, 64);
    expect(&b, QN_ERR_FORMAT, "tensor 'blk.0.attn_q.weight' has 5 dimensions");
    b = one_tensor((uint32_t)1 << 31, D(1), F32, 0, 64);
    expect(&b, QN_ERR_FORMAT, "2147483648 dimensions");
    b = one_tensor(UINT32_MAX, D(1), F32, 0, 64);
    expect(&b, QN_ERR_FORMAT, "4294967295 dimensions");
    b = one_tensor(0, D(0), F32, 0, 4); /* a scalar */
    expect(&b, QN_OK, NULL);
    b = one_tensor(1, D(32), 0xffffffff, 0, 64);
    expect(&b, QN_ERR_UNSUPPORTED, "tensor 'blk.0.attn_q.weight' has type 4294967295");
    b = one_tensor(1, D(32), 0x80000000, 0, 64);
    expect(&b, QN_ERR_UNSUPPORTED, "type 2147483648");
    b = one_tensor(1, D(32), 999, 0, 64);
    expect(&b, QN_ERR_UNSUPPORTED, "type 999");

    b = (qn_buf){ 0 };
    gguf_header(&b, 3, 2, 0);
    gguf_tensor(&b, "twice", 1, D(1), F32, 0);
    gguf_tensor(&b, "twice", 1, D(1), F32, 32);
    gguf_data(&b, 32, 64);
    expect(&b, QN_ERR_FORMAT, "tensor 'twice' is there twice");
    b = (qn_buf){ 0 };
    gguf_header(&b, 3, 2, 0);
    gguf_tensor(&b, "first", 1, D(16), F32, 0);
    gguf_tensor(&b, "second", 1, D(1), F32, 32);
    gguf_data(&b, 32, 64);
    expect(&b, QN_ERR_FORMAT, "tensors 'first' and 'second' lie over each other");
    b = (qn_buf){ 0 };
    gguf_header(&b, 3, 1, 0);
    gguf_tensor(&b, "", 1, D(1), F32, 0);
    gguf_data(&b, 32, 64);
    expect(&b, QN_ERR_FORMAT, "tensor 0 has an empty name");
}

/* A row that ends inside a block, for every format that has blocks. */
static void rows_of_broken_blocks(void **state)
{
    (void)state;
    for (int32_t i = 0; i < qn_fmt_count(); i++) {
        const qn_fmt *fmt = qn_fmt_at(i);
        if (fmt->block == 1) continue;
        qn_buf b = one_tensor(2, D((uint64_t)fmt->block * 2 - 1, 2), (uint32_t)fmt->id, 0, 8192);
        expect(&b, QN_ERR_FORMAT, "is not a multiple of the");
    }
}

/* ---- counts ---- */

/* Counts that no file can hold must cost no memory before they are refused: not one allocation. */
static void absurd_counts(void **state)
{
    (void)state;
    const uint64_t counts[] = { (uint64_t)1 << 60, (uint64_t)1 << 63, UINT64_MAX - 15, UINT64_MAX, 3 };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int tensors = 0; tensors < 2; tensors++) {
            qn_buf b = { 0 };
            qn_file *f;
            gguf_header(&b, 3, tensors ? counts[i] : 0, tensors ? 0 : counts[i]);
            test_fail_alloc_at(0);
            assert_int_equal(qn_file_open_memory(&f, b.ptr, b.len, NULL), QN_ERR_FORMAT);
            assert_int_equal(test_alloc_count(), 0);
            expect(&b, QN_ERR_FORMAT, tensors ? "tensors, for which" : "metadata keys, for which");
        }
    }
    for (uint32_t elem = 0; elem < N_VTYPES; elem++) {
        qn_buf b = { 0 };
        gguf_header(&b, 3, 0, 1);
        gguf_key(&b, "k", QN_V_ARRAY);
        gguf_array(&b, elem, (uint64_t)1 << 61);
        gguf_data(&b, 32, 64);
        expect(&b, QN_ERR_FORMAT, "key 'k': an array of 2305843009213693952 elements");
    }
    for (int i = 0; i < 2; i++) {
        qn_buf b = { 0 };
        gguf_header(&b, 3, 0, 1);
        gguf_key(&b, "k", QN_V_STRING);
        gguf_u64(&b, i ? UINT64_MAX : (uint64_t)1 << 63);
        gguf_data(&b, 32, 64);
        expect(&b, QN_ERR_FORMAT, "key 'k': a string of");
        gguf_header(&b, 3, 0, 1);
        gguf_u64(&b, i ? UINT64_MAX : (uint64_t)1 << 63); /* length of a key */
        gguf_data(&b, 32, 64);
        expect(&b, QN_ERR_FORMAT, "the name of metadata key 0");
    }
}

/* ---- metadata ---- */

static void empty_keys(void **state)
{
    (void)state;
    for (uint32_t type = 0; type < N_VTYPES; type++) {
        qn_buf b = { 0 };
        gguf_header(&b, 3, 0, 1);
        gguf_key(&b, "", type);
        gguf_data(&b, 1, 16);
        expect(&b, QN_ERR_FORMAT, "metadata key 0 has an empty name");
    }
}

static void keys_and_values(void **state)
{
    (void)state;
    qn_buf b = { 0 };
    gguf_header(&b, 3, 0, 1);
    gguf_key(&b, "k", 99);
    gguf_u64(&b, 0);
    expect(&b, QN_ERR_FORMAT, "key 'k': a value of type 99");
    gguf_header(&b, 3, 0, 1);
    gguf_key(&b, "k", QN_V_ARRAY);
    gguf_array(&b, 13, 0);
    expect(&b, QN_ERR_FORMAT, "key 'k': an array of elements of type 13");
    gguf_header(&b, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        gguf_key(&b, "twice", QN_V_U32);
        gguf_u32(&b, 7);
    }
    expect(&b, QN_ERR_FORMAT, "key 'twice' is there twice");
    gguf_header(&b, 3, 0, 1);
    gguf_key(&b, "k", QN_V_BOOL);
    gguf_bytes(&b, "\2", 1);
    expect(&b, QN_ERR_FORMAT, "key 'k': a bool is stored as 2");
    gguf_header(&b, 3, 0, 1);
    gguf_key(&b, "k", QN_V_ARRAY);
    gguf_array(&b, QN_V_BOOL, 3);
    gguf_bytes(&b, "\0\1\xff", 3);
    expect(&b, QN_ERR_FORMAT, "key 'k': a bool is stored as 255");
    for (int depth = 8; depth <= 10000; depth += depth == 8 ? 1 : 9991) {
        gguf_header(&b, 3, 0, 1);
        gguf_key(&b, "deep", QN_V_ARRAY);
        for (int i = 1; i < depth; i++) gguf_array(&b, QN_V_ARRAY, 1);
        gguf_array(&b, QN_V_U8, 0);
        if (depth == 8) expect(&b, QN_OK, NULL);
        else expect(&b, QN_ERR_FORMAT, "key 'deep': arrays are nested deeper than 8");
    }
    char *name = calloc(1, 65537);
    assert_non_null(name);
    memset(name, 'n', 65536);
    gguf_header(&b, 3, 0, 1);
    gguf_key(&b, name, QN_V_U8);
    gguf_bytes(&b, "", 1);
    expect(&b, QN_ERR_FORMAT, "65535 are allowed");
    free(name);
    gguf_header(&b, 3, 0, 1);
    gguf_key(&b, "a\033[31m", QN_V_BOOL);
    gguf_bytes(&b, "\2", 1);
    expect(&b, QN_ERR_FORMAT, "key 'a?[31m'"); /* a terminal must not obey a file */
}

static qn_buf with_alignment(uint32_t type, uint64_t value, size_t n_value)
{
    qn_buf b = { 0 };
    gguf_header(&b, 3, 1, 1);
    gguf_key(&b, "general.alignment", type);
    if (type == QN_V_STRING) gguf_u64(&b, 2);
    if (type == QN_V_ARRAY) gguf_array(&b, QN_V_U32, 1);
    gguf_bytes(&b, &value, n_value);
    gguf_tensor(&b, "t", 1, D(1), F32, 0);
    const bool is_small = type == QN_V_U32 && value && value <= 65536; /* else the data is not looked for: no need to pad up to it */
    gguf_data(&b, is_small ? (size_t)value : 32, 4);
    return b;
}

static void alignment(void **state)
{
    (void)state;
    const uint32_t wrong[][2] = { { QN_V_I32, 4 }, { QN_V_U64, 8 }, { QN_V_I64, 8 }, { QN_V_U16, 2 }, { QN_V_U8, 1 }, { QN_V_F32, 4 },
                                  { QN_V_STRING, 2 }, { QN_V_ARRAY, 4 } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        qn_buf b = with_alignment(wrong[i][0], 32, wrong[i][1]);
        expect(&b, QN_ERR_FORMAT, "it has to be u32");
    }
    const uint32_t bad[] = { 0, 3, 24, 33, 100, 0x80000001, 0xffffffff };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qn_buf b = with_alignment(QN_V_U32, bad[i], 4);
        expect(&b, QN_ERR_FORMAT, "it has to be a power of two");
    }
    for (uint32_t a = 1; a <= 65536; a *= 2) {
        qn_buf b = with_alignment(QN_V_U32, a, 4);
        expect(&b, QN_OK, NULL);
    }
    qn_buf b = { 0 };
    gguf_header(&b, 3, 1, 1);
    gguf_key(&b, "general.alignment", QN_V_U32);
    gguf_u32(&b, 0x80000000); /* a power of two, and the data begins far behind the end */
    gguf_tensor(&b, "t", 1, D(1), F32, 0);
    expect(&b, QN_ERR_FORMAT, "ends past the end");
}

static void array_of_another_type(void **state)
{
    (void)state;
    const uint32_t types[] = { QN_V_U8, QN_V_F64, QN_V_STRING, QN_V_ARRAY };
    for (size_t i = 0; i < 4; i++) {
        qn_buf b = { 0 };
        qn_file *f;
        qn_value v;
        qn_err err;
        gguf_header(&b, 3, 0, 1);
        gguf_key(&b, "tokenizer.ggml.scores", QN_V_ARRAY);
        gguf_array(&b, types[i], 3);
        for (int k = 0; k < 5; k++) gguf_u64(&b, 0); /* three elements of any type; more is not looked at */
        assert_int_equal(qn_file_open_memory(&f, b.ptr, b.len, &err), QN_OK);
        assert_int_equal(qn_key_array(f, "tokenizer.ggml.scores", NULL, QN_V_F32, &v, &err), QN_ERR_TYPE);
        assert_non_null(strstr(err.text, "key 'tokenizer.ggml.scores' is an array of "));
        qn_file_close(&f);
        qn_buf_free(&b);
    }
}

/* ---- what a wrong file looks like ---- */

static void wrong_files(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        qn_status status;
        const char *sentence;
    } cases[] = {
#define FILE_OF(s) s, sizeof(s) - 1
        { FILE_OF(""), QN_ERR_FORMAT, "the file is empty" },
        { FILE_OF("<!DOCTYPE html><html>"), QN_ERR_FORMAT, "an HTML page" },
        { FILE_OF("\xef\xbb\xbf \r\n<HTML><body>"), QN_ERR_FORMAT, "an HTML page" },
        { FILE_OF("<?xml version=\"1.0\"?><Error>"), QN_ERR_FORMAT, "an XML or HTML text" },
        { FILE_OF("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"), QN_ERR_FORMAT, "a Git LFS pointer" },
        { FILE_OF("{\"error\":\"Repository not found\"}"), QN_ERR_FORMAT, "a JSON text" },
        { FILE_OF("Not Found"), QN_ERR_FORMAT, "a text file" },
        { FILE_OF("PK\3\4rest"), QN_ERR_FORMAT, "a ZIP archive" },
        { FILE_OF("\x1f\x8b\x08\0\0\0"), QN_ERR_FORMAT, "packed by gzip" },
        { FILE_OF("\x28\xb5\x2f\xfd\0\0"), QN_ERR_FORMAT, "packed by zstd" },
        { FILE_OF("\x38\x01\0\0\0\0\0\0{\"__metadata__\":{}}"), QN_ERR_FORMAT, "a safetensors file" },
        { FILE_OF("lmgg\1\0\0\0"), QN_ERR_FORMAT, "GGML format from before GGUF" },
        { FILE_OF("fmgg\1\0\0\0"), QN_ERR_FORMAT, "GGMF format from before GGUF" },
        { FILE_OF("tjgg\3\0\0\0"), QN_ERR_FORMAT, "GGJT format from before GGUF" },
        { FILE_OF("algg\1\0\0\0"), QN_ERR_FORMAT, "a LoRA adapter" },
        { FILE_OF("\x80\x02}q\0"), QN_ERR_FORMAT, "a Python pickle" },
        { FILE_OF("\x7f" "ELF\2\1\1"), QN_ERR_FORMAT, "a program" },
        { FILE_OF("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), QN_ERR_FORMAT, "zeros" },
        { FILE_OF("\1\2\3\4\5\6\7"), QN_ERR_FORMAT, "begins with the bytes 01 02 03 04" },
        { FILE_OF("GG"), QN_ERR_FORMAT, "not a GGUF file" },
        { FILE_OF("GGUF"), QN_ERR_FORMAT, "cut short inside its header" },
        { FILE_OF("GGUF\3\0\0"), QN_ERR_FORMAT, "cut short inside its header" },
        { FILE_OF("GGUF\3\0\0\0\0\0\0\0\0\0\0\0"), QN_ERR_FORMAT, "cut short inside its header" },
        { FILE_OF("GGUF\1\0\0\0\0\0\0\0\0\0\0\0"), QN_ERR_UNSUPPORTED, "GGUF version 1" },
        { FILE_OF("GGUF\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), QN_ERR_UNSUPPORTED, "big-endian" },
        { FILE_OF("FUGG\0\0\0\3\0\0\0\0"), QN_ERR_FORMAT, "big-endian" },
        { FILE_OF("GGUF\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), QN_ERR_UNSUPPORTED, "GGUF version 4" },
        { FILE_OF("GGUF\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), QN_ERR_UNSUPPORTED, "GGUF version 0" },
        { FILE_OF("GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), QN_OK, NULL }, /* no key, no tensor: empty, and right */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qn_buf b = { 0 };
        qn_buf_add(&b, cases[i].bytes, cases[i].n);
        expect(&b, cases[i].status, cases[i].sentence);
    }
}

static void paths_that_are_no_files(void **state)
{
    (void)state;
    char fifo[] = "/tmp/quern-fifo-XXXXXX";
    qn_file *f;
    qn_err err;
    assert_non_null(mkdtemp(fifo));
    assert_int_equal(qn_file_open(&f, fifo, &err), QN_ERR_IO);
    assert_non_null(strstr(err.text, "this is a folder"));
    assert_int_equal(rmdir(fifo), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0); /* opening it for reading would wait for a writer */
    assert_int_equal(qn_file_open(&f, fifo, &err), QN_ERR_IO);
    assert_non_null(strstr(err.text, "a pipe or a device"));
    unlink(fifo);
    assert_int_equal(qn_file_open(&f, fifo, &err), QN_ERR_IO);
    assert_non_null(strstr(err.text, fifo));
    assert_non_null(strstr(err.text, "No such file"));
    char path[4096];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = 0;
    assert_int_equal(qn_file_open(&f, path, &err), QN_ERR_IO);
    assert_non_null(strstr(err.text, "cannot be opened")); /* the reason is not pushed out by the path */
}

/* ---- cuts and flips ---- */

static qn_buf small_model(void)
{
    qn_buf b = { 0 };
    gguf_header(&b, 3, 2, 5);
    gguf_key(&b, "general.architecture", QN_V_STRING);
    gguf_str(&b, "llama");
    gguf_key(&b, "llama.block_count", QN_V_U32);
    gguf_u32(&b, 1);
    gguf_key(&b, "tokens", QN_V_ARRAY);
    gguf_array(&b, QN_V_STRING, 2);
    gguf_str(&b, "a");
    gguf_str(&b, "b");
    gguf_key(&b, "nested", QN_V_ARRAY);
    gguf_array(&b, QN_V_ARRAY, 1);
    gguf_array(&b, QN_V_U16, 1);
    gguf_bytes(&b, "\1\2", 2);
    gguf_key(&b, "flag", QN_V_BOOL);
    gguf_bytes(&b, "\1", 1);
    gguf_tensor(&b, "one", 2, D(4, 2), F32, 0);
    gguf_tensor(&b, "two", 1, D(8), I8, 32);
    gguf_data(&b, 32, 40);
    return b;
}

static void cut_at_every_byte(void **state)
{
    (void)state;
    qn_buf b = small_model();
    qn_err err;
    assert_int_equal(open_bytes(&b, &err), QN_OK);
    for (const size_t n = b.len; b.len-- > 0;) {
        const qn_status s = open_bytes(&b, &err);
        assert_int_equal(s, QN_ERR_FORMAT);
        assert_true(strlen(err.text) > 10);
        assert_true(b.len < n);
    }
    qn_buf_free(&b);
}

/* Every byte of the header, set to values that hurt: any status will do, but it has to come, with a sentence when it is not QN_OK. */
static void every_byte_changed(void **state)
{
    (void)state;
    const uint8_t values[] = { 0, 1, 2, 9, 12, 0x7f, 0x80, 0xff };
    qn_buf b = small_model();
    qn_err err;
    for (size_t i = 0; i < b.len; i++) {
        const char old = b.ptr[i];
        for (size_t k = 0; k < sizeof values; k++) {
            b.ptr[i] = (char)values[k];
            if (open_bytes(&b, &err) != QN_OK) assert_true(strlen(err.text) > 10);
        }
        b.ptr[i] = old;
    }
    assert_int_equal(open_bytes(&b, &err), QN_OK);
    qn_buf_free(&b);
}

static void far_tensor_in_a_sparse_file(void **state)
{
    (void)state;
    char path[] = "/tmp/quern-sparse-XXXXXX";
    const uint64_t far = (uint64_t)5 << 30;
    const float x = 0.25f;
    qn_buf b = { 0 };
    qn_file *f;
    qn_err err;
    float out = 0;
    gguf_header(&b, 3, 2, 0);
    gguf_tensor(&b, "near", 1, D(1), F32, 0);
    gguf_tensor(&b, "far", 1, D(1), F32, far);
    gguf_data(&b, 32, 0);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, b.ptr, b.len), (ssize_t)b.len);
    const bool written = pwrite(fd, &x, sizeof x, (off_t)(b.len + far)) == sizeof x;
    close(fd);
    if (written) {
        assert_int_equal(qn_file_open(&f, path, &err), QN_OK);
        assert_true(qn_file_bytes(f) > far);
        assert_int_equal(qn_file_rows_f32(f, qn_file_tensor_find(f, "far"), 0, 1, &out, &err), QN_OK);
        assert_true(out == x);
        qn_file_close(&f);
    }
    unlink(path);
    qn_buf_free(&b);
    if (!written) skip(); /* a file system without sparse files of this size */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dimension_of_zero),     cmocka_unit_test(sizes_that_wrap),
        cmocka_unit_test(tensors_past_the_end),  cmocka_unit_test(tensor_entries),
        cmocka_unit_test(rows_of_broken_blocks), cmocka_unit_test(absurd_counts),
        cmocka_unit_test(empty_keys),            cmocka_unit_test(keys_and_values),
        cmocka_unit_test(alignment),             cmocka_unit_test(array_of_another_type),
        cmocka_unit_test(wrong_files),           cmocka_unit_test(paths_that_are_no_files),
        cmocka_unit_test(cut_at_every_byte),     cmocka_unit_test(every_byte_changed),
        cmocka_unit_test(far_tensor_in_a_sparse_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
