/* Recipes: roles by name, and the formats of shapes of model that no file of the tests has. What llama.cpp chooses is the reference. */
#include "src/convert/recipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static qn_str str_of(const char *s)
{
    return (qn_str){ s, strlen(s) };
}

static void roles(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t n_dims;
        qn_role role;
        int64_t layer;
    } rows[] = {
        { "token_embd.weight", 2, QN_ROLE_EMBEDDING, -1 },
        { "output.weight", 2, QN_ROLE_OUTPUT, -1 },
        { "output_norm.weight", 1, QN_ROLE_KEPT, -1 },
        { "blk.0.attn_norm.weight", 1, QN_ROLE_KEPT, 0 },
        { "blk.7.attn_q_norm.weight", 2, QN_ROLE_KEPT, 7 },
        { "blk.31.attn_v.weight", 2, QN_ROLE_ATTN_V, 31 },
        { "blk.3.attn_qkv.weight", 2, QN_ROLE_ATTN_V, 3 },
        { "blk.3.attn_v.bias", 1, QN_ROLE_KEPT, 3 },
        { "blk.3.attn_k.weight", 2, QN_ROLE_ATTN_K, 3 },
        { "blk.3.attn_q.weight", 2, QN_ROLE_ATTN_Q, 3 },
        { "blk.3.attn_output.weight", 2, QN_ROLE_ATTN_OUT, 3 },
        { "blk.12.ffn_down_exps.weight", 3, QN_ROLE_FFN_DOWN, 12 },
        { "blk.12.ffn_down_exps.bias", 2, QN_ROLE_KEPT, 12 },
        { "blk.12.ffn_gate_inp.weight", 2, QN_ROLE_KEPT, 12 },
        { "blk.12.ffn_gate.weight", 2, QN_ROLE_FFN_GATE, 12 },
        { "blk.12.ssm_in.weight", 2, QN_ROLE_OTHER, 12 },
        { "blk.12.ssm_conv1d.weight", 2, QN_ROLE_KEPT, 12 },
        { "blk..ffn_up.weight", 2, QN_ROLE_FFN_UP, -1 },
        { "blk.99999999999999999999.ffn_up.weight", 2, QN_ROLE_FFN_UP, -1 },
        { "blk.1", 2, QN_ROLE_KEPT, -1 },
        { "", 2, QN_ROLE_KEPT, -1 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(qn_role_of(str_of(rows[i].name), rows[i].n_dims), rows[i].role);
        assert_int_equal(qn_role_layer(str_of(rows[i].name)), rows[i].layer);
    }
}

static void every_format_is_one(void **state)
{
    (void)state;
    const qn_recipe *r;
    for (int32_t i = 0; (r = qn_recipe_at(i)); i++) {
        assert_ptr_equal(qn_recipe_find(r->name), r);
        for (int role = QN_ROLE_OTHER; role <= QN_ROLE_FFN_DOWN; role++)
            for (unsigned bits = 0; bits < 256; bits++) {
                const qn_recipe_model m = { 32, bits & 1 ? 8 : 0, bits & 2 ? 8 : 1, 32, bits & 4, bits & 8, bits & 16, bits & 32 };
                const qn_recipe_tensor t = { (qn_role)role, bits & 64 ? 1 : 30, bits & 64 ? 1 : 30, bits & 128 };
                const qn_fmt *f = qn_fmt_by_name(qn_recipe_choose(r, &m, &t));
                assert_non_null(f);
                assert_true(f->encode != NULL);
                for (const char *name = f->name; name; name = qn_recipe_fallback(name)) assert_non_null(qn_fmt_by_name(name));
            }
    }
    assert_null(qn_recipe_find("Q9"));
    assert_ptr_equal(qn_recipe_find("q4_k"), qn_recipe_find("Q4_K_M"));
}

/* One letter a layer, 0 to 31, of a role. */
static void expect(const char *recipe, const qn_recipe_model *m, qn_role role, const char *want)
{
    char got[65] = "";
    for (int64_t i = 0; want[i]; i++) {
        const qn_recipe_tensor t = { role, i, i, false };
        const char *f = qn_recipe_choose(qn_recipe_find(recipe), m, &t);
        got[i] = f[1]; /* the digit of "Q4_K" */
    }
    if (strcmp(got, want) != 0) fail_msg("%s, role %d: %s, not %s", recipe, role, got, want);
}

static void layers_of_mixes(void **state)
{
    (void)state;
    const qn_recipe_model plain = { .n_layer = 32, .n_attn_v = 32, .n_gqa = 1 };
    const qn_recipe_model gqa = { .n_layer = 32, .n_attn_v = 32, .n_gqa = 4 };
    const qn_recipe_model moe = { .n_layer = 32, .n_attn_v = 32, .n_gqa = 4, .n_expert = 8 };
    const qn_recipe_model big = { .n_layer = 80, .n_attn_v = 80, .n_gqa = 8, .is_70b = true };
    const qn_recipe_model falcon = { .n_layer = 32, .n_attn_v = 32, .n_gqa = 71, .is_falcon = true };
    expect("Q4_K_M", &plain, QN_ROLE_ATTN_V, "66664464464464464464464464466666");
    expect("Q4_K_M", &plain, QN_ROLE_FFN_DOWN, "66664464464464464464464464466666");
    expect("Q4_K_M", &falcon, QN_ROLE_FFN_DOWN, "66554454454454454454454454455555");
    expect("Q4_K_S", &plain, QN_ROLE_ATTN_V, "55554444444444444444444444444444");
    expect("Q4_K_S", &plain, QN_ROLE_FFN_DOWN, "55554444444444444444444444444444");
    expect("Q3_K_M", &plain, QN_ROLE_ATTN_V, "55444444444444444444444444444444");
    expect("Q3_K_M", &plain, QN_ROLE_FFN_DOWN, "55444444444444444444444444444444");
    expect("Q2_K", &plain, QN_ROLE_ATTN_V, "33333333");
    expect("Q2_K", &gqa, QN_ROLE_ATTN_V, "44444444");
    expect("Q4_K_M", &moe, QN_ROLE_ATTN_V, "88888888");
    expect("Q4_K_M", &moe, QN_ROLE_ATTN_K, "88888888");
    expect("Q4_K_M", &moe, QN_ROLE_ATTN_OUT, "55555555");
    expect("Q3_K_L", &moe, QN_ROLE_ATTN_OUT, "33333333");
    expect("Q4_K_M", &big, QN_ROLE_ATTN_V, "66666666665565565565");
    expect("Q5_K_M", &gqa, QN_ROLE_ATTN_Q, "55555555");
    expect("Q4_K_M", &falcon, QN_ROLE_OUTPUT, "8");
    expect("Q4_K_M", &plain, QN_ROLE_OUTPUT, "6");
    expect("Q8_0", &plain, QN_ROLE_OUTPUT, "8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles),
        cmocka_unit_test(every_format_is_one),
        cmocka_unit_test(layers_of_mixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
