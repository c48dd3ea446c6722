/* docs/formats.md is what the descriptors and the kernel table say. `test_formats_doc --write` writes it anew. */
#include "simd/kernels.h"
#include "src/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char intro[] =
    "# Tensor formats\n"
    "\n"
    "What quern reads, by type number in a GGUF file. The picture of a block is in `quant/fmt_<name>.c`. *Bits* are bits per "
    "weight, scales\n"
    "included. *Product* says how a matrix in this format is multiplied: `16-bit` is an integer dot product with activations of "
    "16 bits,\n"
    "`float` a dot product with float32 activations straight from the stored weights, `decoded` the same after decoding a piece "
    "of a row to\n"
    "float32: correct, and slower.\n"
    "\n"
    "This table is made by `build/tests/test_formats_doc --write` from the formats and kernels of the build; the test fails when "
    "it is old.\n"
    "\n"
    "| Number | Name | Weights in a block | Bytes in a block | Bits | Product |\n"
    "|---:|---|---:|---:|---:|---|\n";

static void make_path(char *path, size_t size)
{
    const char *source = getenv("QUERN_SOURCE");
    snprintf(path, size, "%s/docs/formats.md", source ? source : ".");
}

static const char *product(const qn_kernels *k, const qn_fmt *f)
{
    const qn_matmul_row *row = &k->matmul[f->id], *fallback = &k->matmul[QN_MAX_FMT_ID - 1];
    if (row->run == fallback->run) return "decoded";
    return row->act == QN_ACT_A16 ? "16-bit" : "float";
}

static void add_row(qn_buf *b, const qn_kernels *k, const qn_fmt *f)
{
    char line[160];
    const int n = snprintf(line, sizeof line, "| %d | %s | %d | %d | %g | %s |\n", (int)f->id, f->name, (int)f->block,
                           (int)f->bytes, 8.0 * f->bytes / f->block, product(k, f));
    qn_buf_add(b, line, (size_t)n);
}

/* The whole page, in order of the numbers. */
static qn_buf make_page(void)
{
    static qn_kernels k;
    qn_buf b = { 0 };
    assert_int_equal(qn_kernels_init(&k, "scalar", true, NULL), QN_OK);
    assert_null(qn_fmt_by_id(QN_MAX_FMT_ID - 1)); /* so its row is the fallback's */
    qn_buf_add(&b, intro, sizeof intro - 1);
    for (int32_t id = 0; id < QN_MAX_FMT_ID; id++)
        if (qn_fmt_by_id(id)) add_row(&b, &k, qn_fmt_by_id(id));
    assert_false(b.failed);
    return b;
}

static void test_page_is_current(void **state)
{
    (void)state;
    qn_buf page = make_page();
    char path[512], *have = calloc(1, page.len + 2);
    make_path(path, sizeof path);
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("no %s", path);
    assert_non_null(have);
    const size_t n = fread(have, 1, page.len + 1, f);
    fclose(f);
    if (n != page.len || memcmp(have, page.ptr, n)) fail_msg("docs/formats.md is old: run build/tests/test_formats_doc --write");
    free(have);
    qn_buf_free(&page);
}

static int write_page(void)
{
    char path[512];
    qn_buf page = make_page();
    make_path(path, sizeof path);
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        return 1;
    }
    const bool ok = fwrite(page.ptr, 1, page.len, f) == page.len;
    qn_buf_free(&page);
    return fclose(f) || !ok;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--write")) return write_page();
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_page_is_current) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
