/*
 * Every block format decodes to the reference's floats, bit for bit: tests/data/blocks is a part of what QUERN_REFS has in full.
 * A .qblk file: "QBLK", u32 version 1, type, weights of a block, bytes of a block, number of blocks, char[8] name; blocks;
 * floats.
 */
#include "quant/quant.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEADER = 32, N_TYPES = 25 };

typedef struct qblk {
    uint8_t *bytes;
    uint32_t type, n_weights, n_bytes, n_blocks;
    char name[9];
    const uint8_t *blocks;
    const uint8_t *floats;
} qblk;

static qblk read_qblk(const char *path)
{
    qblk q = { 0 };
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    assert_true(size > HEADER);
    q.bytes = malloc((size_t)size);
    assert_non_null(q.bytes);
    assert_int_equal(fread(q.bytes, 1, (size_t)size, f), size);
    fclose(f);
    assert_memory_equal(q.bytes, "QBLK\1\0\0\0", 8);
    memcpy(&q.type, q.bytes + 8, 4);
    memcpy(&q.n_weights, q.bytes + 12, 4);
    memcpy(&q.n_bytes, q.bytes + 16, 4);
    memcpy(&q.n_blocks, q.bytes + 20, 4);
    memcpy(q.name, q.bytes + 24, 8);
    q.blocks = q.bytes + HEADER;
    q.floats = q.blocks + (size_t)q.n_blocks * q.n_bytes;
    assert_int_equal(size, HEADER + (long)q.n_blocks * (q.n_bytes + 4 * q.n_weights));
    return q;
}

/* Decode each block from a copy of exactly its size, so that a sanitizer sees reads past it; then all at once. */
static void check_qblk(const char *path)
{
    const qblk q = read_qblk(path);
    const qn_fmt *fmt = qn_fmt_by_id((int32_t)q.type);
    if (!fmt) fail_msg("no format with number %u (%s)", q.type, q.name);
    assert_string_equal(fmt->name, q.name);
    assert_int_equal(fmt->block, q.n_weights);
    assert_int_equal(fmt->bytes, q.n_bytes);
    const size_t out_bytes = 4 * (size_t)q.n_weights;
    uint8_t *in = malloc(q.n_bytes);
    float *out = malloc(out_bytes), *all = malloc(q.n_blocks * out_bytes);
    assert_true(in && out && all);
    for (uint32_t i = 0; i < q.n_blocks; i++) {
        memcpy(in, q.blocks + (size_t)i * q.n_bytes, q.n_bytes);
        memset(out, 0xa5, out_bytes);
        fmt->decode(in, 1, out);
        const uint8_t *want = q.floats + i * out_bytes;
        for (uint32_t j = 0; j < q.n_weights; j++) {
            float w;
            memcpy(&w, want + 4 * j, 4);
            if (memcmp(&w, &out[j], 4))
                fail_msg("%s: block %u, weight %u is %a, should be %a", q.name, i, j, (double)out[j], (double)w);
        }
    }
    fmt->decode(q.blocks, q.n_blocks, all);
    assert_memory_equal(all, q.floats, q.n_blocks * out_bytes);
    free(in);
    free(out);
    free(all);
    free(q.bytes);
}

static int check_folder(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    if (!d) return 0;
    for (struct dirent *e; (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        char path[512];
        if (!dot || strcmp(dot, ".qblk")) continue;
        assert_true((size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < sizeof path);
        check_qblk(path);
        n++;
    }
    closedir(d);
    return n;
}

static void test_sample(void **state)
{
    (void)state;
    const char *source = getenv("QUERN_SOURCE");
    char path[512];
    snprintf(path, sizeof path, "%s/tests/data/blocks", source ? source : ".");
    assert_int_equal(check_folder(path), N_TYPES);
}

static void test_all(void **state)
{
    (void)state;
    const char *refs = getenv("QUERN_REFS");
    char path[512];
    snprintf(path, sizeof path, "%s/refs/blocks", refs ? refs : "");
    const int n = check_folder(path);
    if (n == 0) {
        print_message("QUERN_REFS has no refs/blocks: only the sample was checked\n");
        skip();
    }
    assert_true(n >= N_TYPES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
