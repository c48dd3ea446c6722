/*
 * Recipes. Of the rules for a tensor, the first that holds decides; where none does, the tensor gets the recipe's format. Rules for all recipes
 * of quantised formats come before the recipe's own, those for the output head after.
 *
 * More bits go where an error costs most: into values (V), which attention only averages, into the second matrix of the feed-forward, whose input has
 * the largest outliers, and of these into the first and the last layers.
 */
#include "src/convert/recipe.h"

#include <string.h>
#include <strings.h>

/* Which of a role's tensors, i of n. */
typedef enum span {
    ALL,
    FIRST_2,
    FIRST_4,
    FIRST_8TH,
    FIRST_16TH,
    MORE_BITS, /* the first and the last eighth, and every third between */
} span;

/* What must hold of the model or the tensor. */
typedef enum when {
    ALWAYS = 0,
    GQA_4 = 1 << 0,          /* four query heads or more share a KV head: K and V are small */
    EXPERTS_8 = 1 << 1,
    NOT_EXPERTS_8 = 1 << 2,
    FALCON = 1 << 3,
    NOT_FALCON = 1 << 4,
    SIZE_70B = 1 << 5,
    IMPORTANCE = 1 << 6,
    NO_IMPORTANCE = 1 << 7,
    STACK = 1 << 8,
} when;

typedef struct qn_recipe_rule {
    qn_role role;
    span span;
    unsigned when;
    const char *format;
} rule;

#define ANY QN_ROLE_KEPT /* kept tensors have no rules */
#define V QN_ROLE_ATTN_V
#define K QN_ROLE_ATTN_K
#define O QN_ROLE_ATTN_OUT
#define DOWN QN_ROLE_FFN_DOWN

static const rule q2_k[] = {
    { V, ALL, SIZE_70B, "Q5_K" }, { V, ALL, GQA_4, "Q4_K" }, { V, ALL, ALWAYS, "Q3_K" },
    { DOWN, ALL, ALWAYS, "Q3_K" },
    { O, ALL, EXPERTS_8 | NOT_FALCON, "Q5_K" }, { O, ALL, NOT_FALCON, "Q3_K" },
    { 0 },
};
static const rule q2_k_s[] = {
    { V, ALL, SIZE_70B, "Q5_K" }, { V, ALL, GQA_4, "Q4_K" },
    { DOWN, FIRST_8TH, ALWAYS, "Q4_K" },
    { 0 },
};
static const rule q3_k_s[] = {
    { V, ALL, SIZE_70B, "Q5_K" },
    { O, ALL, EXPERTS_8 | NOT_FALCON, "Q5_K" },
    { 0 },
};
static const rule q3_k_m[] = {
    { V, ALL, SIZE_70B, "Q5_K" }, { V, FIRST_2, ALWAYS, "Q5_K" }, { V, ALL, ALWAYS, "Q4_K" },
    { DOWN, FIRST_16TH, ALWAYS, "Q5_K" }, { DOWN, ALL, NOT_FALCON, "Q4_K" }, { DOWN, MORE_BITS, ALWAYS, "Q4_K" },
    { O, ALL, EXPERTS_8 | NOT_FALCON, "Q5_K" }, { O, ALL, NOT_FALCON, "Q4_K" },
    { 0 },
};
static const rule q3_k_l[] = {
    { V, ALL, ALWAYS, "Q5_K" },
    { DOWN, ALL, FALCON, "Q4_K" }, { DOWN, ALL, ALWAYS, "Q5_K" },
    { O, ALL, FALCON, "Q4_K" }, { O, ALL, NOT_EXPERTS_8, "Q5_K" },
    { 0 },
};
static const rule q4_k_s[] = {
    { V, FIRST_4, ALWAYS, "Q5_K" }, { V, ALL, SIZE_70B, "Q5_K" },
    { DOWN, FIRST_8TH, NOT_FALCON, "Q5_K" },
    { O, ALL, EXPERTS_8 | NOT_FALCON, "Q5_K" },
    { 0 },
};
static const rule q4_k_m[] = {
    { V, MORE_BITS, ALWAYS, "Q6_K" }, { V, ALL, SIZE_70B, "Q5_K" },
    { DOWN, FIRST_16TH, FALCON, "Q6_K" }, { DOWN, MORE_BITS, FALCON, "Q5_K" }, { DOWN, MORE_BITS, NOT_FALCON, "Q6_K" },
    { O, ALL, EXPERTS_8 | NOT_FALCON, "Q5_K" },
    { 0 },
};
static const rule q5_k_m[] = {
    { V, MORE_BITS, ALWAYS, "Q6_K" },
    { DOWN, MORE_BITS, ALWAYS, "Q6_K" },
    { 0 },
};
static const rule iq4[] = {
    { V, ALL, GQA_4, "Q5_K" },
    { DOWN, FIRST_8TH, NO_IMPORTANCE, "Q5_K" },
    { O, ALL, EXPERTS_8 | NOT_FALCON, "Q5_K" },
    { 0 },
};
/* The second matrix of the first layers has outliers on one side; importance data makes the offset of Q4_1 and Q5_1 worth its bits there. */
static const rule q4_0[] = { { DOWN, FIRST_8TH, IMPORTANCE, "Q4_1" }, { 0 } };
static const rule q5_0[] = { { DOWN, FIRST_8TH, IMPORTANCE, "Q5_1" }, { 0 } };
/* The experts alone in four bits: formats of models that were trained so. */
static const rule mxfp4_moe[] = {
    { QN_ROLE_OUTPUT, ALL, ALWAYS, "Q8_0" }, { ANY, ALL, STACK, "MXFP4" }, { ANY, ALL, ALWAYS, "Q8_0" },
    { 0 },
};
static const rule mxfp4[] = { { QN_ROLE_OUTPUT, ALL, ALWAYS, "Q8_0" }, { 0 } };
static const rule q8_0[] = { { QN_ROLE_OUTPUT, ALL, ALWAYS, "Q8_0" }, { 0 } };

/* Before a quantised recipe's own: beside eight experts, these are a hundredth of the model. */
static const rule first_rules[] = { { V, ALL, EXPERTS_8, "Q8_0" }, { K, ALL, EXPERTS_8, "Q8_0" }, { 0 } };
static const rule last_rules[] = { { QN_ROLE_OUTPUT, ALL, FALCON, "Q8_0" }, { QN_ROLE_OUTPUT, ALL, ALWAYS, "Q6_K" }, { 0 } };

#undef ANY
#undef V
#undef K
#undef O
#undef DOWN

static const qn_recipe recipes[] = {
    { "F32", "F32", "every matrix in float32", 0, false, NULL },
    { "F16", "F16", "every matrix in float16", 1, false, NULL },
    { "BF16", "BF16", "every matrix in bfloat16", 32, false, NULL },
    { "Q8_0", "Q8_0", "next to no loss", 7, false, q8_0 },
    { "Q6_K", "Q6_K", "close to Q8_0 at three quarters of its size", 18, false, NULL },
    { "Q5_K_M", "Q5_K", "half of the values and of the down matrices in Q6_K", 17, false, q5_k_m },
    { "Q5_K_S", "Q5_K", "everything but the head in Q5_K", 16, false, NULL },
    { "Q5_1", "Q5_1", "32 weights with a scale and an offset", 9, false, NULL },
    { "Q5_0", "Q5_0", "32 weights with a scale", 8, false, q5_0 },
    { "Q4_K_M", "Q4_K", "half of the values and of the down matrices in Q6_K: a good choice", 15, false, q4_k_m },
    { "Q4_K_S", "Q4_K", "the first layers' values and down matrices in Q5_K", 14, false, q4_k_s },
    { "Q4_1", "Q4_1", "32 weights with a scale and an offset", 3, false, NULL },
    { "Q4_0", "Q4_0", "32 weights with a scale; the fastest to compute with", 2, false, q4_0 },
    { "IQ4_NL", "IQ4_NL", "32 weights on uneven levels", 25, false, iq4 },
    { "IQ4_XS", "IQ4_XS", "256 weights on uneven levels", 30, false, iq4 },
    { "MXFP4", "MXFP4", "every matrix but the head in 4-bit floats", 38, false, mxfp4 },
    { "MXFP4_MOE", "MXFP4", "the experts' matrices in 4-bit floats, the rest in Q8_0", 38, false, mxfp4_moe },
    { "Q3_K_L", "Q3_K", "values, attention's outputs and down matrices in Q5_K", 13, false, q3_k_l },
    { "Q3_K_M", "Q3_K", "values, attention's outputs and down matrices in Q4_K and Q5_K", 12, false, q3_k_m },
    { "Q3_K_S", "Q3_K", "everything but the head in Q3_K", 11, false, q3_k_s },
    { "Q2_K", "Q2_K", "values, attention's outputs and down matrices in Q3_K and Q4_K", 10, false, q2_k },
    { "Q2_K_S", "Q2_K", "nearly everything in Q2_K; needs importance data", 21, true, q2_k_s },
};

/* What people call the middle one of a family. */
static const struct {
    const char *name, *means;
} aliases[] = { { "Q5_K", "Q5_K_M" }, { "Q4_K", "Q4_K_M" }, { "Q3_K", "Q3_K_M" } };

/* 256-weight formats and the 32-weight ones that take their place. */
static const struct {
    const char *format, *fallback;
} fallbacks[] = {
    { "Q2_K", "Q4_0" }, { "Q3_K", "Q4_0" }, { "Q4_K", "Q5_0" }, { "Q5_K", "Q5_1" }, { "Q6_K", "Q8_0" }, { "IQ4_XS", "IQ4_NL" },
    { "IQ3_S", "IQ4_NL" }, { "IQ3_XXS", "IQ4_NL" }, { "IQ2_S", "IQ4_NL" }, { "IQ2_XS", "IQ4_NL" }, { "IQ2_XXS", "IQ4_NL" },
    { "IQ1_S", "IQ4_NL" }, { "IQ1_M", "IQ4_NL" }, { "TQ1_0", "Q4_0" }, { "TQ2_0", "Q4_0" },
};

enum { N_RECIPES = sizeof recipes / sizeof *recipes };

const qn_recipe *qn_recipe_at(int32_t i)
{
    return i >= 0 && i < N_RECIPES ? &recipes[i] : NULL;
}

const qn_recipe *qn_recipe_find(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (!strcasecmp(name, aliases[i].name)) name = aliases[i].means;
    for (int32_t i = 0; i < N_RECIPES; i++)
        if (!strcasecmp(name, recipes[i].name)) return &recipes[i];
    return NULL;
}

const char *qn_recipe_fallback(const char *format)
{
    for (size_t i = 0; i < sizeof fallbacks / sizeof *fallbacks; i++)
        if (!strcmp(format, fallbacks[i].format)) return fallbacks[i].fallback;
    return NULL;
}

static bool in_span(span s, int64_t i, int64_t n)
{
    const int64_t eighth = n / 8;
    switch (s) {
    case ALL: return true;
    case FIRST_2: return i < 2;
    case FIRST_4: return i < 4;
    case FIRST_8TH: return i < eighth;
    case FIRST_16TH: return i < n / 16;
    case MORE_BITS: return i < eighth || i >= 7 * n / 8 || (i - eighth) % 3 == 2;
    }
    return false;
}

static unsigned facts(const qn_recipe_model *m, const qn_recipe_tensor *t)
{
    return (m->n_gqa >= 4 ? GQA_4 : 0u) | (m->n_expert == 8 ? EXPERTS_8 : NOT_EXPERTS_8) | (m->is_falcon ? FALCON : NOT_FALCON) |
           (m->is_70b ? SIZE_70B : 0u) | (m->has_importance ? IMPORTANCE : NO_IMPORTANCE) | (t->is_stack ? STACK : 0u);
}

/* The format of the first rule that holds, or NULL. Experts lie in their layer in any order and number, so there the layer counts. */
static const char *apply(const rule *r, const qn_recipe_model *m, const qn_recipe_tensor *t, qn_role role)
{
    const bool is_v = role == QN_ROLE_ATTN_V;
    const int64_t n = is_v ? m->n_attn_v : m->n_layer, i = m->n_expert > 1 && !is_v ? t->i_layer : t->i_role;
    const unsigned have = facts(m, t);
    for (; r && r->format; r++)
        if ((r->role == role || r->role == QN_ROLE_KEPT) && !(r->when & ~have) && in_span(r->span, i, n)) return r->format;
    return NULL;
}

const char *qn_recipe_choose(const qn_recipe *r, const qn_recipe_model *m, const qn_recipe_tensor *t)
{
    const qn_role role = m->is_tied && t->role == QN_ROLE_EMBEDDING ? QN_ROLE_OUTPUT : t->role;
    const bool quantised = qn_fmt_by_name(r->format) && qn_fmt_by_name(r->format)->block > 1;
    if (!quantised) return r->format;
    const char *f = r->rules == mxfp4_moe ? NULL : apply(first_rules, m, t, role);
    if (!f) f = apply(r->rules, m, t, role);
    if (!f) f = apply(last_rules, m, t, role);
    return f ? f : r->format;
}
