/* Every architecture's tiny file with one number wrong at a time: a key's value or type, a side, type or place of a tensor. Always a status and a sentence that
 * names the file; nothing is read or written outside of anything (run under the address sanitizer). The bytes are changed where they lie. */
#include "src/base/err.h"
#include "tests/common/tiny_model.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];
static uint8_t *bytes;
static size_t n_bytes;
static int fd;

static qn_status open_and_run(qn_err *err)
{
    static const int32_t ids[] = { 1, 20, 30, 40, 50, 60 };
    static float logits[TINY_VOCAB];
    qn_model *m = NULL;
    qn_engine *e = NULL;
    qn_session *s = NULL;
    qn_model_opts mo = QN_MODEL_OPTS_INIT;
    qn_engine_opts eo = QN_ENGINE_OPTS_INIT;
    mo.n_threads = eo.n_threads = 1;
    eo.n_ctx = 32;
    eo.n_chunk = 6;
    qn_status st = qn_model_open(&m, path, &mo, err);
    if (st != QN_OK && !strstr(err->text, path)) fail_msg("the sentence does not name the file: '%s'", err->text);
    if (st == QN_OK) st = qn_engine_open(&e, m, &eo, err);
    if (st == QN_OK) st = qn_session_open(&s, e, err);
    if (st == QN_OK) st = qn_session_eval(s, ids, 6, logits, err);
    if (st != QN_OK && !err->text[0]) fail_msg("a status without a sentence: %s", qn_status_name(st));
    qn_session_close(&s);
    qn_engine_close(&e);
    qn_model_close(&m);
    return st;
}

static void put(size_t at, const void *value, size_t n)
{
    assert_int_equal(pwrite(fd, value, n, (off_t)at), n);
}

/* Open the file with n bytes changed, and change them back. */
static qn_status with(size_t at, const void *value, size_t n, qn_err *err)
{
    *err = (qn_err){ 0 };
    put(at, value, n);
    const qn_status s = open_and_run(err);
    put(at, bytes + at, n);
    return s;
}

static void read_file(void)
{
    fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    n_bytes = (size_t)lseek(fd, 0, SEEK_END);
    bytes = malloc(n_bytes);
    assert_non_null(bytes);
    assert_int_equal(pread(fd, bytes, n_bytes, 0), n_bytes);
}

/* Where a key's type or a tensor's number of sides stands: behind its name. */
static size_t behind(qn_str name)
{
    for (size_t at = 24; at + 8 + name.len < n_bytes; at++) {
        uint64_t n;
        memcpy(&n, bytes + at, sizeof n);
        if (n == name.len && !memcmp(bytes + at + 8, name.ptr, name.len)) return at + 8 + name.len;
    }
    fail_msg("%.*s is not in the file", QN_STR_ARG(name));
    return 0;
}

/* A key of 4 bytes takes all sorts of values, as the type that it has and as others of the same size. */
static void wrong_key(qn_str name, const qn_value *was)
{
    static const uint32_t values[] = {
        0, 1, 3, 24, 4096, 0x7fffffff, 0xffffffff, 0x7fc00000 /* NaN */, 0xbf800000 /* -1 */, 0x7f7fffff /* the largest float */,
    };
    static const uint32_t types[] = { QN_V_U32, QN_V_I32, QN_V_F32 };
    const size_t at = behind(name);
    qn_err err;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) (void)with(at + 4, &values[i], 4, &err);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i] != (uint32_t)was->type) (void)with(at, &types[i], 4, &err);
    uint8_t letter = '!'; /* the key is missing, and another one is there */
    (void)with(at - 1, &letter, 1, &err);
}

static void wrong_keys(const qn_file *f, const char *arch)
{
    qn_str key;
    qn_value v;
    for (int64_t i = 0; qn_file_key_at(f, i, &key, &v); i++)
        if (key.len > strlen(arch) && !memcmp(key.ptr, arch, strlen(arch)) && key.ptr[strlen(arch)] == '.' &&
            (v.type == QN_V_U32 || v.type == QN_V_I32 || v.type == QN_V_F32))
            wrong_key(key, &v);
}

/* No change of a side is right, and the sentence names the tensor (or the key that it contradicts). */
static void wrong_tensor(const char *arch, const qn_tensor_info *t)
{
    const size_t at = behind(t->name);
    uint32_t n_dims;
    qn_err err;
    memcpy(&n_dims, bytes + at, 4);
    for (uint32_t d = 0; d < n_dims; d++) {
        const uint64_t side = (uint64_t)t->dims[d], others[] = { 0, side - 1, side + 32, UINT64_C(1) << 62, UINT64_MAX };
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            if (others[i] == side) continue;
            if (with(at + 4 + 8 * d, &others[i], 8, &err) == QN_OK)
                fail_msg("%s: %.*s with side %u of %" PRIu64 " for %" PRIu64 " is accepted", arch, QN_STR_ARG(t->name), d, others[i], side);
            char name[128];
            snprintf(name, sizeof name, "%.*s", QN_STR_ARG(t->name));
            if (!strstr(err.text, name)) fail_msg("%s: the sentence does not name %s: %s", arch, name, err.text);
        }
    }
    for (uint32_t type = 0; type < 45; type += 12) (void)with(at + 4 + 8 * n_dims, &type, 4, &err);
    const uint32_t no_type = 12345;
    assert_int_not_equal(with(at + 4 + 8 * n_dims, &no_type, 4, &err), QN_OK);
    static const uint64_t places[] = { 1, 32, UINT64_C(1) << 40, UINT64_MAX - 31 };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) (void)with(at + 8 + 8 * n_dims, &places[i], 8, &err);
}

static void wrong_tensors(const qn_file *f, const char *arch)
{
    qn_tensor_info t;
    for (int64_t i = 0; qn_file_tensor_at(f, i, &t); i++)
        if (memcmp(t.name.ptr, "blk.", 4) || t.name.ptr[4] == '0') wrong_tensor(arch, &t);
}

static void one_wrong_number(void **state)
{
    (void)state;
    char name[64], arch[64];
    for (int32_t a = 0; tiny_model_name(a, name); a++) {
        qn_file *f = NULL;
        qn_value v;
        qn_str s;
        qn_err err = { 0 };
        assert_true(tiny_model_write(path, name, 0, 1));
        read_file();
        if (open_and_run(&err) != QN_OK) fail_msg("%s: %s", name, err.text);
        assert_int_equal(qn_file_open(&f, path, &err), QN_OK);
        assert_true(qn_file_key(f, "general.architecture", &v));
        assert_int_equal(qn_value_as_str(&v, &s), QN_OK);
        snprintf(arch, sizeof arch, "%.*s", QN_STR_ARG(s));
        wrong_keys(f, arch);
        wrong_tensors(f, name);
        qn_file_close(&f);
        free(bytes);
        close(fd);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) tiny_model_choose(argv + 1);
    snprintf(path, sizeof path, "/tmp/quern-wrong-%ld.gguf", (long)getpid());
    const struct CMUnitTest tests[] = { cmocka_unit_test(one_wrong_number) };
    const int code = cmocka_run_group_tests(tests, NULL, NULL);
    remove(path);
    return code;
}
