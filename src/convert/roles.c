/* What a tensor is, from its name: the names that GGUF files use. */
#include "src/convert/recipe.h"

#include <string.h>

/* How a name is compared with a pattern. */
typedef enum place { WHOLE, ANYWHERE } place;

typedef struct role_name {
    place place;
    const char *text;
    qn_role role;
} role_name;

/* The first that is in a name decides. */
static const role_name roles[] = {
    { WHOLE, "output.weight", QN_ROLE_OUTPUT },
    { WHOLE, "token_embd.weight", QN_ROLE_EMBEDDING },
    { WHOLE, "per_layer_token_embd.weight", QN_ROLE_EMBEDDING },
    { ANYWHERE, "attn_qkv.weight", QN_ROLE_ATTN_V },
    { ANYWHERE, "attn_kv_b.weight", QN_ROLE_ATTN_V },
    { ANYWHERE, "attn_v.weight", QN_ROLE_ATTN_V },
    { ANYWHERE, "attn_k.weight", QN_ROLE_ATTN_K },
    { ANYWHERE, "attn_q.weight", QN_ROLE_ATTN_Q },
    { ANYWHERE, "attn_output.weight", QN_ROLE_ATTN_OUT },
    { ANYWHERE, "ffn_up", QN_ROLE_FFN_UP },
    { ANYWHERE, "ffn_gate", QN_ROLE_FFN_GATE },
    { ANYWHERE, "ffn_down", QN_ROLE_FFN_DOWN },
};

/* Matrices that are kept. They steer (expert gates, indexers), hold positions, or are too small for their bytes to matter. */
static const role_name kept[] = {
    { ANYWHERE, "_norm.weight", QN_ROLE_KEPT },
    { ANYWHERE, "ffn_gate_inp.weight", QN_ROLE_KEPT },
    { ANYWHERE, "ffn_gate_tid2eid.weight", QN_ROLE_KEPT },
    { ANYWHERE, "altup", QN_ROLE_KEPT },
    { ANYWHERE, "laurel", QN_ROLE_KEPT },
    { ANYWHERE, "per_layer_model_proj", QN_ROLE_KEPT },
    { WHOLE, "position_embd.weight", QN_ROLE_KEPT },
    { WHOLE, "token_types.weight", QN_ROLE_KEPT },
    { ANYWHERE, "ssm_conv1d", QN_ROLE_KEPT },
    { ANYWHERE, "shortconv.conv.weight", QN_ROLE_KEPT },
    { ANYWHERE, "indexer.k_proj.weight", QN_ROLE_KEPT },
    { ANYWHERE, "indexer.q_proj.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_first.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_w0.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_w1.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_w2.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_v0.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_v1.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_v2.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_a0.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_a1.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_a2.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_g1.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_g2.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_decay_w1.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_decay_w2.weight", QN_ROLE_KEPT },
    { ANYWHERE, "time_mix_lerp_fused.weight", QN_ROLE_KEPT },
    { ANYWHERE, "attn_rel_b.weight", QN_ROLE_KEPT },
    { ANYWHERE, ".position_embd", QN_ROLE_KEPT },
    { ANYWHERE, "sam.pos_embd", QN_ROLE_KEPT },
    { ANYWHERE, "sam.neck.", QN_ROLE_KEPT },
    { ANYWHERE, "sam.net_", QN_ROLE_KEPT },
    { ANYWHERE, ".rel_pos", QN_ROLE_KEPT },
    { ANYWHERE, ".patch_embd", QN_ROLE_KEPT },
    { ANYWHERE, ".patch_merger", QN_ROLE_KEPT },
    { ANYWHERE, "a.rvq.codebook", QN_ROLE_KEPT },
    { ANYWHERE, "mm.a.code_embd", QN_ROLE_KEPT },
};

static bool matches(const role_name *r, qn_str name)
{
    const size_t n = strlen(r->text);
    if (r->place == WHOLE) return name.len == n && !memcmp(name.ptr, r->text, n);
    return name.len >= n && memmem(name.ptr, name.len, r->text, n) != NULL;
}

qn_role qn_role_of(qn_str name, int32_t n_dims)
{
    static const char weight[] = "weight";
    const size_t n = sizeof weight - 1;
    if (n_dims < 2 || name.len < n || memcmp(name.ptr + name.len - n, weight, n) != 0) return QN_ROLE_KEPT;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (matches(&kept[i], name)) return QN_ROLE_KEPT;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (matches(&roles[i], name)) return roles[i].role;
    return QN_ROLE_OTHER;
}

int64_t qn_role_layer(qn_str name)
{
    static const char blk[] = "blk.";
    const size_t n = sizeof blk - 1;
    int64_t layer = 0;
    size_t i = n;
    if (name.len <= n || memcmp(name.ptr, blk, n) != 0) return -1;
    for (; i < name.len && name.ptr[i] >= '0' && name.ptr[i] <= '9' && layer < 1000000; i++) layer = layer * 10 + (name.ptr[i] - '0');
    return i > n && i < name.len && name.ptr[i] == '.' ? layer : -1;
}
