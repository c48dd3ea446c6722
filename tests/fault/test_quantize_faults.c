/* Quantising when memory runs short, when the caller stops it and when the hook fails: a status, no leak, and no file that was not there. */
#include "src/convert/encode_hook.h"
#include "src/convert/imatrix.h"
#include "src/format/gguf.h"
#include "tests/common/fault.h"
#include "tests/common/tiny_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { F16 = 1 };
static char dir[] = "/tmp/quern-quantize-XXXXXX";
static char in[64], out[64];

static int open_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir)) return -1;
    snprintf(in, sizeof in, "%s/in.gguf", dir);
    snprintf(out, sizeof out, "%s/out.gguf", dir);
    return tiny_model_write(in, "llama", F16, 1) ? 0 : -1;
}

static int close_dir(void **state)
{
    (void)state;
    unlink(in);
    return rmdir(dir); /* fails when a file was left behind */
}

/* Importance data for the first tensor with two dimensions. */
static qn_imatrix *make_imatrix(void)
{
    qn_file *f;
    qn_imatrix *m;
    qn_tensor_info t;
    assert_int_equal(qn_file_open(&f, in, NULL), QN_OK);
    assert_int_equal(qn_imatrix_new(&m, NULL), QN_OK);
    for (int64_t i = 0; qn_file_tensor_at(f, i, &t); i++) {
        if (t.n_dims != 2) continue;
        qn_imatrix_entry *e = qn_imatrix_add(m, t.name, t.dims[0], 1);
        assert_non_null(e);
        for (int64_t k = 0; k < t.dims[0]; k++) e->sum[k] = (float)(k % 7);
        e->count[0] = 1;
    }
    assert_int_equal(qn_imatrix_finish(m, NULL), QN_OK);
    qn_file_close(&f);
    return m;
}

static qn_status quantize(const qn_quantize_opts *o, const qn_encode_hook *hook, qn_err *err)
{
    qn_quantize *q;
    QN_TRY(qn_quantize_open(&q, in, o, err));
    qn_quantize_set_hook(q, hook);
    const qn_status s = qn_quantize_run(q, out, err);
    qn_quantize_close(&q);
    assert_null(q);
    return s;
}

static void every_allocation(void **state)
{
    (void)state;
    qn_imatrix *m = make_imatrix();
    qn_quantize_opts o = QN_QUANTIZE_OPTS_INIT;
    o.type = "Q4_K_M";
    o.n_threads = 2;
    o.imatrix = m;
    o.imatrix_name = "i.gguf";
    long n = 1;
    for (;; n++) {
        qn_err err = { 0 };
        test_fail_alloc_at(n);
        const qn_status s = quantize(&o, NULL, &err);
        const bool failed = test_alloc_has_failed();
        test_fail_alloc_at(0);
        if (!failed) {
            assert_int_equal(s, QN_OK);
            break;
        }
        if (s == QN_OK && unlink(out) == 0) continue; /* where the machine's threads are counted, there is an answer without memory */
        if (s != QN_ERR_NOMEM || !err.text[0] || access(out, F_OK) == 0) fail_msg("allocation %ld: status %d, '%s'", n, s, err.text);
    }
    assert_true(n > 20);
    assert_int_equal(unlink(out), 0);
    qn_imatrix_close(&m);
}

/* ---- progress ---- */

static bool stop_after(void *left, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return --*(int *)left > 0;
}

static void stopped_by_progress(void **state)
{
    (void)state;
    qn_err err;
    qn_quantize_opts o = QN_QUANTIZE_OPTS_INIT;
    int left;
    o.type = "Q8_0";
    o.n_threads = 1;
    o.progress = stop_after;
    o.progress_user = &left;
    int n_calls = 1;
    for (;; n_calls++) {
        left = n_calls;
        const qn_status s = quantize(&o, NULL, &err);
        if (s == QN_OK) break;
        assert_int_equal(s, QN_ERR_CANCELLED);
        assert_int_not_equal(access(out, F_OK), 0);
    }
    assert_true(n_calls > 10); /* once a tensor at least */
    assert_int_equal(unlink(out), 0);
}

/* ---- the hook ---- */

typedef struct watch {
    int n_begun, n_rows;
    bool take, fail;
} watch;

static qn_status hook_begin(void *user, int64_t i, const qn_tensor_info *t, const qn_fmt *fmt, bool *take, qn_err *err)
{
    watch *w = user;
    (void)i;
    (void)t;
    (void)err;
    assert_int_equal(fmt->block, 32);
    w->n_begun++;
    *take = w->take;
    return QN_OK;
}

static qn_status hook_rows(void *user, const float *w, int64_t row, int64_t n_rows, uint8_t *bytes, qn_err *err)
{
    watch *h = user;
    (void)w;
    (void)row;
    h->n_rows += (int)n_rows;
    bytes[0] = 1;
    return h->fail ? qn_fail(err, QN_ERR_LIMIT, "no more") : QN_OK;
}

static void the_hook_encodes(void **state)
{
    (void)state;
    qn_err err;
    watch w = { 0 };
    const qn_encode_hook hook = { &w, hook_begin, hook_rows };
    qn_quantize_opts o = QN_QUANTIZE_OPTS_INIT;
    o.type = "Q8_0";
    o.n_threads = 1;
    assert_int_equal(quantize(&o, &hook, &err), QN_OK);
    assert_true(w.n_begun > 4 && w.n_rows == 0);
    w.fail = w.take = true;
    assert_int_equal(quantize(&o, &hook, &err), QN_ERR_LIMIT);
    assert_string_equal(err.text, "no more");
    assert_true(w.n_rows > 0);
    assert_int_equal(unlink(out), 0); /* of the first run */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation),
        cmocka_unit_test(stopped_by_progress),
        cmocka_unit_test(the_hook_encodes),
    };
    return cmocka_run_group_tests(tests, open_dir, close_dir);
}
