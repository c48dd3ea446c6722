/* Which format each tensor of a file gets. The choices for a type's name are those that llama.cpp makes, so that files have the same size. */
#ifndef QN_CONVERT_RECIPE_H
#define QN_CONVERT_RECIPE_H

#include "quant/quant.h"

/** What a tensor is in its network, from its name. */
typedef enum qn_role {
    QN_ROLE_KEPT,       /* copied as it is: norms, biases, tables too small or too delicate */
    QN_ROLE_OTHER,
    QN_ROLE_OUTPUT,
    QN_ROLE_EMBEDDING,
    QN_ROLE_ATTN_V,     /* also where V is part of a larger matrix                          */
    QN_ROLE_ATTN_K,
    QN_ROLE_ATTN_Q,
    QN_ROLE_ATTN_OUT,
    QN_ROLE_FFN_UP,
    QN_ROLE_FFN_GATE,
    QN_ROLE_FFN_DOWN,
} qn_role;

/** What recipes ask of the model. */
typedef struct qn_recipe_model {
    int64_t n_layer, n_expert;
    int64_t n_gqa;        /* query heads a KV head                                          */
    int64_t n_attn_v;     /* tensors with that role                                         */
    bool is_falcon, is_70b; /* architectures and sizes with choices of their own            */
    bool is_tied;         /* no output head: the embeddings are it                          */
    bool has_importance;
} qn_recipe_model;

/** What recipes ask of a tensor. */
typedef struct qn_recipe_tensor {
    qn_role role;
    int64_t i_layer;      /* from its name; -1: outside the layers                          */
    int64_t i_role;       /* how many of its role come before it, in the order of layers    */
    bool is_stack;        /* one matrix an expert                                           */
} qn_recipe_tensor;

struct qn_recipe_rule;
typedef struct qn_recipe {
    const char *name;     /* "Q4_K_M"                                                       */
    const char *format;   /* of tensors that no rule is about                               */
    const char *about;
    int32_t file_type;    /* general.file_type                                              */
    bool needs_importance;
    const struct qn_recipe_rule *rules; /* up to one that names no format; NULL: none       */
} qn_recipe;

/** NULL outside the table. */
const qn_recipe *qn_recipe_at(int32_t i);
/** Case-insensitive; also "Q4_K" for "Q4_K_M" and its like. NULL: unknown. */
const qn_recipe *qn_recipe_find(const char *name);

/** @param n_dims  of the tensor, trailing ones left out */
qn_role qn_role_of(qn_str name, int32_t n_dims);
/** "blk.<n>." in front of the name, else -1. */
int64_t qn_role_layer(qn_str name);

/** Name of the format that the recipe has for a tensor. Not for QN_ROLE_KEPT. */
const char *qn_recipe_choose(const qn_recipe *r, const qn_recipe_model *m, const qn_recipe_tensor *t);
/** The next best format where rows are no multiple of `format`'s block: nearly its size, with a smaller block. NULL: there is none. */
const char *qn_recipe_fallback(const char *format);

#endif
