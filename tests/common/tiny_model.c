#include "tests/common/tiny_model.h"

#include "models/model.h"
#include "quant/quant.h"
#include "src/base/half.h"
#include "src/format/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOE "+moe"
enum { N_LAYER = 6, HEAD_DIM = 64 };

/* Where a block keeps its half-float scales, and their size for weights of about 0.05: the rest may be any bytes. */
typedef struct scales {
    int32_t type;
    int32_t at[2];
    int32_t n;
    float size[2];
} scales;
static const scales scale_table[] = {
    { 2, { 0 }, 1, { 0.01f } },           /* Q4_0 */
    { 3, { 0, 2 }, 2, { 0.01f, -0.08f } }, /* Q4_1 */
    { 6, { 0 }, 1, { 0.005f } },          /* Q5_0 */
    { 7, { 0, 2 }, 2, { 0.005f, -0.08f } }, /* Q5_1 */
    { 8, { 0 }, 1, { 0.0007f } },         /* Q8_0 */
    { 12, { 0, 2 }, 2, { 0.0003f, 0.002f } }, /* Q4_K */
    { 13, { 0, 2 }, 2, { 0.00015f, 0.002f } }, /* Q5_K */
    { 14, { 208 }, 1, { 0.00003f } },     /* Q6_K */
};
static const int32_t types[] = { 0, 1, 30, 2, 3, 6, 7, 8, 12, 13, 14 };

int32_t tiny_model_formats(const int32_t **out)
{
    *out = types;
    return (int32_t)(sizeof types / sizeof *types);
}

static uint32_t next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* About normal, with the given deviation: the sum of four uniform numbers. */
static float normal(uint32_t *state, float deviation)
{
    float sum = 0;
    for (int i = 0; i < 4; i++) sum += (float)(next(state) >> 8) * 0x1p-24f - 0.5f;
    return sum * deviation * 1.732f;
}

static void fill_floats(uint8_t *out, int32_t type, int64_t n, float mean, float deviation, uint32_t *state)
{
    for (int64_t i = 0; i < n; i++) {
        const float x = mean + normal(state, deviation);
        const uint32_t bits = qn_f32_bits(x);
        const uint16_t half = type == 1 ? qn_f16_from_f32(x) : (uint16_t)(bits >> 16);
        if (type == 0) memcpy(out + 4 * i, &bits, 4);
        else memcpy(out + 2 * i, &half, 2);
    }
}

static void fill_blocks(uint8_t *out, const qn_fmt *fmt, int64_t n_blocks, uint32_t *state)
{
    const scales *s = scale_table;
    while (s->type != fmt->id) s++;
    for (int64_t b = 0; b < n_blocks; b++) {
        uint8_t *block = out + b * fmt->bytes;
        for (int32_t i = 0; i < fmt->bytes; i++) block[i] = (uint8_t)(next(state) >> 11);
        for (int32_t i = 0; i < s->n; i++) {
            const uint16_t d = qn_f16_from_f32(s->size[i] * (0.5f + (float)(next(state) >> 8) * 0x1p-24f));
            memcpy(block + s->at[i], &d, 2);
        }
    }
}

typedef struct maker {
    qn_writer *w;
    int32_t fmt;
    uint32_t state;
    uint8_t **data; /* kept until the writer has closed */
    size_t n_data;
} maker;

static qn_status add_tensor(void *user, const qn_tensor_due *t)
{
    maker *m = user;
    if (t->is_optional && strcmp(t->name, "rope_freqs.weight") && !strstr(t->name, "layer_output_scale")) return QN_OK;
    const qn_fmt *fmt = qn_fmt_by_id(t->is_vector ? 0 : m->fmt);
    if (!t->is_vector && t->cols % fmt->block) fmt = qn_fmt_by_id(t->cols % 32 ? 1 : 8); /* as files of wide blocks have it: Q8_0 or F16 */
    const int64_t n = t->cols * t->rows * t->slices;
    uint8_t *bytes = malloc((size_t)(n / fmt->block * fmt->bytes));
    if (!bytes) return QN_ERR_NOMEM;
    m->data[m->n_data++] = bytes;
    if (t->is_vector) fill_floats(bytes, 0, n, strstr(t->name, ".ssm_a") ? -1 : 1, 0.1f, &m->state); /* states decay */
    else if (fmt->block == 1) fill_floats(bytes, fmt->id, n, 0, 0.08f, &m->state);
    else fill_blocks(bytes, fmt, n / fmt->block, &m->state);
    const int64_t dims[] = { t->cols, t->is_vector ? t->slices : t->in_one ? t->rows * t->slices : t->rows, t->slices };
    return qn_writer_tensor(m->w, t->name, fmt->id, (t->is_vector ? 1 : 2) + (t->slices > 1 && !t->in_one), dims, bytes);
}

static void add_vocabulary(qn_writer *w)
{
    static char text[TINY_VOCAB][8];
    static qn_str token[TINY_VOCAB];
    static float score[TINY_VOCAB];
    static int32_t kind[TINY_VOCAB];
    for (int i = 0; i < TINY_VOCAB; i++) {
        if (i < 3) snprintf(text[i], sizeof text[i], "%s", (const char *[]){ "<unk>", "<s>", "</s>" }[i]);
        else if (i < 259) snprintf(text[i], sizeof text[i], "<0x%02X>", (unsigned)(i - 3));
        else if (i < 285) snprintf(text[i], sizeof text[i], "%c", 'a' + i - 259);
        else snprintf(text[i], sizeof text[i], "%s", (const char *[]){ "\xe2\x96\x81", "th", "the" }[i - 285]);
        token[i] = (qn_str){ text[i], strlen(text[i]) };
        score[i] = (float)-i;
        kind[i] = i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1;
    }
    qn_writer_key_str(w, "tokenizer.ggml.model", QN_LIT("llama"));
    qn_writer_key_strings(w, "tokenizer.ggml.tokens", token, TINY_VOCAB);
    qn_writer_key_array(w, "tokenizer.ggml.scores", QN_V_F32, score, TINY_VOCAB);
    qn_writer_key_array(w, "tokenizer.ggml.token_type", QN_V_I32, kind, TINY_VOCAB);
    qn_writer_key_u32(w, "tokenizer.ggml.bos_token_id", 1);
    qn_writer_key_u32(w, "tokenizer.ggml.eos_token_id", 2);
    qn_writer_key_u32(w, "tokenizer.ggml.unknown_token_id", 0);
}

/* What a tiny model has of each key that an architecture reads: no architecture is named here. */
typedef enum value_kind {
    IS_INT, IS_FLOAT, IS_BOOL,
    IS_GLOBAL, /* a float, of a key without the architecture before it */
    IS_EVERY_2ND, IS_EVERY_3RD, /* of keys that a hook reads: an integer in so many layers, 0 in the others */
} value_kind;
typedef struct tiny_key {
    const char *name;
    value_kind kind;
    double value;
} tiny_key;
static const tiny_key tiny_keys[] = {
    { "context_length", IS_INT, TINY_CTX },
    { "embedding_length", IS_INT, 256 },
    { "attention.head_count", IS_EVERY_2ND, 4 },
    { "attention.head_count", IS_INT, 4 },
    { "attention.head_count_kv", IS_EVERY_2ND, 2 },
    { "feed_forward_length", IS_EVERY_3RD, 512 },
    { "feed_forward_length", IS_INT, 512 },
    { "attention.head_count_kv", IS_INT, 2 },
    { "attention.key_length", IS_INT, HEAD_DIM },
    { "attention.value_length", IS_INT, HEAD_DIM },
    { "attention.sliding_window", IS_INT, TINY_WINDOW },
    { "attention.layer_norm_rms_epsilon", IS_FLOAT, 1e-5 },
    { "attention.layer_norm_epsilon", IS_FLOAT, 1e-5 },
    { "attention.scale", IS_FLOAT, 0.1 },
    { "attention.clamp_kqv", IS_FLOAT, 1.5 },
    { "attention.max_alibi_bias", IS_FLOAT, 8 },
    { "attention.temperature_scale", IS_FLOAT, 0.1 },
    { "xielu.alpha_p", IS_GLOBAL, 0.9 },
    { "xielu.alpha_n", IS_GLOBAL, 1.3 },
    { "xielu.beta", IS_GLOBAL, 0.5 },
    { "xielu.eps", IS_GLOBAL, -1e-6 },
    { "attention.temperature_length", IS_INT, 16 },
    { "attn_logit_softcapping", IS_FLOAT, 50 },
    { "final_logit_softcapping", IS_FLOAT, 30 },
    { "logit_scale", IS_FLOAT, 0.5 },
    { "residual_scale", IS_FLOAT, 0.75 },
    { "embedding_scale", IS_FLOAT, 2 },
    { "use_parallel_residual", IS_BOOL, 1 },
    { "expert_count", IS_INT, 8 },
    { "expert_used_count", IS_INT, 3 },
    { "expert_feed_forward_length", IS_INT, 256 },
    { "expert_shared_count", IS_INT, 1 },
    { "expert_group_count", IS_INT, 4 },
    { "expert_group_used_count", IS_INT, 2 },
    { "expert_gating_func", IS_INT, 2 },
    { "expert_weights_norm", IS_BOOL, 1 },
    { "expert_weights_scale", IS_FLOAT, 1.5 },
    { "leading_dense_block_count", IS_INT, 2 },
    { "moe_every_n_layers", IS_INT, 2 },
    { "ssm.conv_kernel", IS_INT, 4 },
    { "ssm.inner_size", IS_INT, 256 },
    { "ssm.state_size", IS_INT, 32 },
    { "ssm.time_step_rank", IS_INT, 8 },
    { "ssm.group_count", IS_INT, 2 },
    { "shortconv.l_cache", IS_INT, 3 },
    { "full_attention_interval", IS_INT, 3 },
    { "rope.dimension_count", IS_INT, HEAD_DIM / 2 },
    { "attention.kv_lora_rank", IS_INT, HEAD_DIM / 2 },
    { "attention.q_lora_rank", IS_INT, 256 },
    { "attention.key_length_mla", IS_INT, HEAD_DIM },
    { "attention.value_length_mla", IS_INT, HEAD_DIM / 2 },
    { "attention.sliding_window_pattern", IS_INT, 2 },
    { "attention.shared_kv_layers", IS_INT, 2 },
    { "altup.num_inputs", IS_INT, 4 },
    { "altup.active_idx", IS_INT, 1 },
    { "embedding_length_per_layer_input", IS_INT, 64 },
    { "swiglu_clamp_exp", IS_FLOAT, 0.3 },
    { "swiglu_clamp_shexp", IS_FLOAT, 0.25 },
    { "activation_sparsity_scale", IS_FLOAT, 0.5 },
};

enum { N_TINY_KEYS = sizeof tiny_keys / sizeof *tiny_keys };

typedef struct key_writer {
    qn_writer *w;
    const char *arch;
    bool dense;
} key_writer;

static bool is_for(const tiny_key *k, const qn_key_row *row)
{
    return !strcmp(k->name, row->name) && (k->kind < IS_EVERY_2ND || row->kind == QN_KEY_HOOK);
}

static void write_switch(qn_writer *w, const char *name, const tiny_key *k)
{
    uint32_t v[N_LAYER];
    for (int i = 0; i < N_LAYER; i++) v[i] = (i + 1) % (k->kind == IS_EVERY_2ND ? 2 : 3) ? 0 : (uint32_t)k->value;
    qn_writer_key_array(w, name, QN_V_U32, v, N_LAYER);
}

static qn_status add_key(void *user, const qn_key_row *row)
{
    const key_writer *kw = user;
    char name[96];
    size_t i = 0;
    while (i < N_TINY_KEYS && !is_for(&tiny_keys[i], row)) i++;
    if (i == N_TINY_KEYS) {
        if (row->required) fprintf(stderr, "tiny models have no value for the key %s\n", row->name);
        return row->required ? QN_ERR_NOT_FOUND : QN_OK;
    }
    const tiny_key *k = &tiny_keys[i];
    if (kw->dense && !strcmp(k->name, "expert_count")) return QN_OK;
    snprintf(name, sizeof name, "%s.%s", kw->arch, k->name);
    if (k->kind == IS_INT) qn_writer_key_u32(kw->w, name, (uint32_t)k->value);
    else if (k->kind >= IS_EVERY_2ND) write_switch(kw->w, name, k);
    else if (k->kind == IS_GLOBAL) qn_writer_key_f32(kw->w, k->name, (float)k->value);
    else if (k->kind == IS_FLOAT) qn_writer_key_f32(kw->w, name, (float)k->value);
    else qn_writer_key_bool(kw->w, name, k->value != 0);
    return QN_OK;
}

static bool has_two_forms(const qn_arch *a)
{
    return a->experts && a->ff == &qn_ff_dense;
}

static char *const *chosen;

void tiny_model_choose(char *const *names)
{
    chosen = *names ? names : NULL;
}

static bool is_chosen(const char *name)
{
    char *const *c = chosen;
    while (c && *c && strcmp(*c, name)) c++;
    return !c || *c;
}

bool tiny_model_name(int32_t i, char name[64])
{
    for (int32_t a = 0; a < qn_arch_count(); a++) {
        const qn_arch *arch = qn_arch_at(a);
        for (int form = 0; form < (has_two_forms(arch) ? 2 : 1); form++) {
            snprintf(name, 64, "%s%s", arch->name, form ? MOE : "");
            if (is_chosen(name) && i-- == 0) return true;
        }
    }
    return false;
}

static qn_status add_keys(qn_writer *w, const qn_arch *arch, bool moe)
{
    char name[96];
    qn_writer_key_str(w, "general.architecture", (qn_str){ arch->name, strlen(arch->name) });
    qn_writer_key_str(w, "general.name", QN_LIT("tiny"));
    snprintf(name, sizeof name, "%s.block_count", arch->name);
    qn_writer_key_u32(w, name, N_LAYER);
    add_vocabulary(w);
    return qn_arch_each_key(arch, add_key, &(key_writer){ w, arch->name, has_two_forms(arch) && !moe });
}

/* Which tensors are due is the model code's knowledge: the keys are written to a file of their own, and the network reads them there. */
static qn_status write_model(const char *path, const char *name, maker *m, qn_err *err)
{
    const char *moe = strstr(name, MOE);
    qn_file *keys = NULL;
    qn_net net = { .n_vocab = TINY_VOCAB, .arch = qn_arch_find((qn_str){ name, moe ? (size_t)(moe - name) : strlen(name) }) };
    QN_TRY(qn_writer_open(&m->w, path, 32, err));
    const qn_status known = add_keys(m->w, net.arch, moe);
    QN_TRY(qn_writer_close(&m->w, err));
    QN_TRY(known);
    QN_TRY(qn_file_open(&keys, path, err));
    qn_status s = qn_net_read_hparams(&net, keys, err);
    qn_file_close(&keys);
    if (s == QN_OK) s = qn_writer_open(&m->w, path, 32, err);
    if (s == QN_OK) {
        (void)add_keys(m->w, net.arch, moe);
        s = qn_net_each_tensor(&net, add_tensor, m);
    }
    const qn_status closed = qn_writer_close(&m->w, err); /* knows the first failure's sentence */
    qn_net_close(&net);
    return s == QN_OK ? closed : s;
}

bool tiny_model_write(const char *path, const char *name, int32_t fmt, uint32_t seed)
{
    qn_err err = { 0 };
    uint8_t *data[512];
    maker m = { .fmt = fmt, .state = seed * 2654435761u + 1, .data = data };
    const qn_status s = write_model(path, name, &m, &err);
    for (size_t i = 0; i < m.n_data; i++) free(data[i]);
    if (s != QN_OK) fprintf(stderr, "%s: %s\n", path, err.text);
    return s == QN_OK;
}
