/* Special tokens: the roles that a file names, the ends of an answer, what white space they take, and the trie that finds them. */
#include "src/token/vocab.h"

#include "src/format/keys.h"

#include <string.h>

/* Keys of the roles, the later one counts. "seperator" is how files spell it. */
static const struct {
    qn_role role;
    const char *key;
} role_keys[] = {
    { QN_ROLE_BOS, "tokenizer.ggml.bos_token_id" },       { QN_ROLE_EOS, "tokenizer.ggml.eos_token_id" },
    { QN_ROLE_EOT, "tokenizer.ggml.eot_token_id" },       { QN_ROLE_EOM, "tokenizer.ggml.eom_token_id" },
    { QN_ROLE_UNK, "tokenizer.ggml.unknown_token_id" },   { QN_ROLE_SEP, "tokenizer.ggml.separator_token_id" },
    { QN_ROLE_SEP, "tokenizer.ggml.seperator_token_id" }, { QN_ROLE_PAD, "tokenizer.ggml.padding_token_id" },
    { QN_ROLE_CLS, "tokenizer.ggml.cls_token_id" },       { QN_ROLE_MASK, "tokenizer.ggml.mask_token_id" },
};
static const char *const role_names[QN_N_ROLES] = { "bos", "eos", "eot", "eom", "unk", "sep", "pad", "cls", "mask" };

enum {
    MARK_END = 1,     /* ends an answer                                                          */
    MARK_TURN = 2,    /* ends a turn: the EOT where the file names none                          */
    MARK_MESSAGE = 4, /* ends a message: the EOM where the file names none                       */
    MARK_TYPED = 8,   /* only where the file itself says control (Gemma writes HTML's </s> so)   */
    MARK_KEEP = 16,   /* where user-defined it stays so: other tokenizers find it in every text  */
};

/* Texts that are markers wherever they are control tokens or user-defined ones. The latter are found in every text, so the words of a user
 * could end his turn: they become control tokens, or with MARK_KEEP are guarded (see guard()). A file's ordinary tokens stay as they are. */
static const struct {
    const char *text;
    int flags;
} markers[] = {
    { "<|eot_id|>", MARK_END | MARK_TURN },
    { "<|im_end|>", MARK_END | MARK_TURN },
    { "<|end|>", MARK_END | MARK_TURN },
    { "<end_of_turn>", MARK_END | MARK_TURN },
    { "<|endoftext|>", MARK_END | MARK_TURN },
    { "<|end_of_text|>", MARK_END | MARK_TURN },
    { "<EOT>", MARK_END | MARK_TURN },
    { "_<EOT>", MARK_END | MARK_TURN },
    { "[EOT]", MARK_END | MARK_TURN },
    { "<|EOT|>", MARK_END | MARK_TURN | MARK_KEEP },
    { "<｜end▁of▁sentence｜>", MARK_END | MARK_TURN },
    { "<end_of_utterance>", MARK_END | MARK_TURN },
    { "<|END_OF_TURN_TOKEN|>", MARK_END | MARK_KEEP },
    { "<|eom_id|>", MARK_END | MARK_MESSAGE },
    { "<|return|>", MARK_END },
    { "<|call|>", MARK_END },
    { "<|calls|>", MARK_END },
    { "<|flush|>", MARK_END },
    { "[EOS]", MARK_END },
    { "<eos>", MARK_END },
    { "</s>", MARK_END | MARK_TYPED },
    { "<turn|>", MARK_END },
    { "<|tool_response>", MARK_END },
    { "[e~[", MARK_END },
    { "<|im_start|>", MARK_KEEP },
    { "<start_of_turn>", MARK_KEEP },
    { "<|start_header_id|>", MARK_KEEP },
    { "<|end_header_id|>", MARK_KEEP },
    { "<|fim_prefix|>", 0 },
    { "<fim-prefix>", 0 },
    { "<fim_prefix>", 0 },
    { "<｜fim▁begin｜>", 0 },
    { "<PRE>", 0 },
    { "▁<PRE>", 0 },
    { "<|code_prefix|>", 0 },
    { "<|prefix|>", 0 },
    { "<|fim_suffix|>", 0 },
    { "<fim-suffix>", 0 },
    { "<fim_suffix>", 0 },
    { "<｜fim▁hole｜>", 0 },
    { "<SUF>", 0 },
    { "▁<SUF>", 0 },
    { "<|code_suffix|>", 0 },
    { "<|suffix|>", 0 },
    { "<|fim_middle|>", 0 },
    { "<fim-middle>", 0 },
    { "<fim_middle>", 0 },
    { "<｜fim▁end｜>", 0 },
    { "<MID>", 0 },
    { "▁<MID>", 0 },
    { "<|code_middle|>", 0 },
    { "<|middle|>", 0 },
    { "<|fim_pad|>", MARK_END },
    { "<fim-pad>", MARK_END },
    { "<fim_pad>", MARK_END },
    { "<|fim_repo|>", MARK_END },
    { "<|repo_name|>", MARK_END },
    { "<fim-repo>", MARK_END },
    { "<reponame>", MARK_END },
    { "<|file_sep|>", MARK_END },
};

static qn_status read_roles(qn_vocab *v, const qn_file *file, qn_err *err)
{
    for (int r = 0; r < QN_N_ROLES; r++) v->role[r] = v->kind->role[r] < v->n ? v->kind->role[r] : -1;
    if (v->pre->flags & QN_PRE_NO_BOS) v->role[QN_ROLE_BOS] = -1;
    bool bos_named = false;
    for (size_t i = 0; i < sizeof role_keys / sizeof *role_keys; i++) {
        int64_t id;
        const qn_status s = qn_key_i64(file, role_keys[i].key, "", INT64_MIN, INT64_MAX, &id, err);
        if (s == QN_ERR_NOT_FOUND) continue;
        QN_TRY(s);
        if (id < 0 || id >= v->n) continue; /* files pad with 0xFFFFFFFF and the like: as if it were not there */
        v->role[role_keys[i].role] = (int32_t)id;
        if (role_keys[i].role == QN_ROLE_BOS) bos_named = true;
    }
    if (v->kind->always_sep) { /* CLS opens the text; files name it under either key */
        if (bos_named) v->role[QN_ROLE_CLS] = v->role[QN_ROLE_BOS];
        else v->role[QN_ROLE_BOS] = v->role[QN_ROLE_CLS];
    }
    return QN_OK;
}

static qn_status read_switches(qn_vocab *v, const qn_file *file, qn_err *err)
{
    const struct {
        const char *key;
        bool *value, fallback;
    } switches[] = {
        { "tokenizer.ggml.add_bos_token", &v->add_bos, v->kind->add_bos || (v->pre->flags & QN_PRE_BOS) },
        { "tokenizer.ggml.add_eos_token", &v->add_eos, v->kind->add_eos },
        { "tokenizer.ggml.add_space_prefix", &v->add_space, v->kind->add_space },
        { "tokenizer.ggml.add_sep_token", &v->add_sep, v->kind == &qn_kind_unigram && v->role[QN_ROLE_SEP] >= 0 }, /* as XLM-RoBERTa */
    };
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        *switches[i].value = switches[i].fallback;
        const qn_status s = qn_key_bool(file, switches[i].key, "", switches[i].value, err);
        if (s != QN_OK && s != QN_ERR_NOT_FOUND) return s;
    }
    if (v->raw && (v->pre->flags & QN_PRE_BOS)) v->add_bos = true; /* Gemma 4 is trained with it, whatever its files say */
    return QN_OK;
}

static void mark(qn_vocab *v)
{
    for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
        const int32_t id = qn_vocab_find_any(v, markers[i].text, strlen(markers[i].text));
        const int flags = markers[i].flags;
        if (id < 0 || (v->type[id] != QN_T_CONTROL && v->type[id] != QN_T_USER)) continue;
        const bool was_control = v->type[id] == QN_T_CONTROL;
        if (flags & MARK_KEEP) v->flags[id] |= QN_TOK_GUARD;
        else v->type[id] = QN_T_CONTROL;
        if (!(flags & MARK_TYPED) || was_control) v->flags[id] |= flags & MARK_END ? QN_TOK_END : 0;
        if ((flags & MARK_TURN) && v->role[QN_ROLE_EOT] < 0) v->role[QN_ROLE_EOT] = id;
        if ((flags & MARK_MESSAGE) && v->role[QN_ROLE_EOM] < 0) v->role[QN_ROLE_EOM] = id;
    }
    static const qn_role ends[] = { QN_ROLE_EOS, QN_ROLE_EOT, QN_ROLE_EOM };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (v->role[ends[i]] >= 0) v->flags[v->role[ends[i]]] |= QN_TOK_END;
}

static bool begins(qn_str s, const char *start)
{
    return s.len >= strlen(start) && memcmp(s.ptr, start, strlen(start)) == 0;
}

/* Some files call all of a template's tokens user-defined (Command R: <|START_OF_TURN_TOKEN|>, <|USER_TOKEN|> ...). In what users wrote no
 * token is found whose text looks like one of these, whatever its type. */
static void guard(qn_vocab *v)
{
    for (int32_t id = 0; id < v->n; id++)
        if (v->type[id] == QN_T_USER && (begins(v->text[id], "<|") || begins(v->text[id], "<｜"))) v->flags[id] |= QN_TOK_GUARD;
}

static bool ends(const qn_vocab *v, const char *text)
{
    const int32_t id = qn_vocab_find_any(v, text, strlen(text));
    return id >= 0 && (v->flags[id] & QN_TOK_END);
}

/* Where an answer has channels, "<|end|>" closes one of them and not the answer: Harmony, Solar. */
static void unmark_channels(qn_vocab *v)
{
    const bool call = ends(v, "<|call|>") || ends(v, "<|calls|>");
    if (!call || !(ends(v, "<|return|>") || ends(v, "<|flush|>"))) return;
    const int32_t id = qn_vocab_find_any(v, "<|end|>", 7);
    if (id < 0 || v->role[QN_ROLE_EOS] == id) return;
    v->flags[id] &= (uint8_t)~QN_TOK_END;
    if (v->role[QN_ROLE_EOT] == id) v->role[QN_ROLE_EOT] = -1;
}

/* @param part  in small letters */
static bool contains(qn_str s, const char *part)
{
    const size_t n = strlen(part);
    for (size_t i = 0, k = 0; i + n <= s.len; i++, k = 0) {
        for (char c; k < n; k++) {
            c = s.ptr[i + k];
            if ((c >= 'A' && c <= 'Z' ? c + 0x20 : c) != part[k]) break;
        }
        if (k == n) return true;
    }
    return false;
}

/* White space that belongs to a special token. Files do not say; the originals of these models do. */
static void set_strips(qn_vocab *v, const qn_file *file)
{
    qn_str name = QN_LIT(""), arch = QN_LIT("");
    (void)qn_key_str(file, "general.name", "", &name, NULL);
    (void)qn_key_str(file, "general.architecture", "", &arch, NULL);
    const bool named = contains(arch, "phi3") || contains(name, "phi-3") || contains(name, "phi3");
    const bool phi3 = named && v->kind == &qn_kind_spm;
    for (int32_t id = 0; phi3 && id < v->n; id++)
        if (v->type[id] == QN_T_CONTROL || v->type[id] == QN_T_USER || v->type[id] == QN_T_UNKNOWN) v->flags[id] |= QN_TOK_RSTRIP;
    static const char *const not_stripped[] = { "<unk>", "<s>", "<|endoftext|>" };
    for (size_t i = 0; phi3 && i < sizeof not_stripped / sizeof *not_stripped; i++) {
        const int32_t id = qn_vocab_find_any(v, not_stripped[i], strlen(not_stripped[i]));
        if (id >= 0) v->flags[id] &= (uint8_t)~QN_TOK_RSTRIP;
    }
    const bool lstrip = (v->pre->flags & QN_PRE_LSTRIP) || contains(arch, "nomic-bert-moe") || contains(arch, "jina-bert-v3");
    static const char *const masks[] = { "<mask>", "[MASK]" };
    for (size_t i = 0; lstrip && i < sizeof masks / sizeof *masks; i++) {
        const int32_t id = qn_vocab_find_any(v, masks[i], strlen(masks[i]));
        if (id >= 0) v->flags[id] |= QN_TOK_LSTRIP;
    }
}

/* User-defined blanks of SentencePiece are written as blanks in files; the originals also find them written with U+2581. */
static bool add_escaped(qn_vocab *v, qn_str text, int32_t id)
{
    qn_buf b = { 0 };
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == ' ') qn_buf_add(&b, QN_BLANK, 3);
        else qn_buf_add(&b, text.ptr + i, 1);
    }
    const bool ok = !b.failed && (b.len > QN_SPECIAL_MAX || qn_trie_add(&v->special, (qn_str){ b.ptr, b.len }, id));
    qn_buf_free(&b);
    return ok;
}

static qn_status build_trie(qn_vocab *v, qn_err *err)
{
    for (int32_t id = 0; id < v->n; id++) {
        const qn_str t = v->text[id];
        const bool user = v->type[id] == QN_T_USER;
        if (!user && v->type[id] != QN_T_CONTROL && v->type[id] != QN_T_UNKNOWN) continue;
        if (t.len == 0 || t.len > QN_SPECIAL_MAX) continue;
        bool ok = qn_trie_add(&v->special, t, id);
        if (ok && user && v->kind == &qn_kind_spm && memchr(t.ptr, ' ', t.len)) ok = add_escaped(v, t, id);
        if (!ok) return qn_fail(err, QN_ERR_NOMEM, "no memory for the special tokens");
    }
    return QN_OK;
}

qn_status qn_vocab_specials(qn_vocab *v, const qn_file *file, qn_err *err)
{
    QN_TRY(read_roles(v, file, err));
    QN_TRY(read_switches(v, file, err));
    mark(v);
    guard(v);
    unmark_channels(v);
    set_strips(v, file);
    return build_trie(v, err);
}

int32_t qn_vocab_id(const qn_vocab *v, const char *role)
{
    for (int r = 0; r < QN_N_ROLES; r++)
        if (strcmp(role, role_names[r]) == 0) return v->role[r];
    return -1;
}

bool qn_vocab_is_end(const qn_vocab *v, int32_t id)
{
    return id >= 0 && id < v->n && (v->flags[id] & QN_TOK_END);
}

bool qn_vocab_is_control(const qn_vocab *v, int32_t id)
{
    return id >= 0 && id < v->n && (v->type[id] == QN_T_CONTROL || v->type[id] == QN_T_UNKNOWN);
}

bool qn_vocab_adds_bos(const qn_vocab *v)
{
    return v->add_bos && v->role[QN_ROLE_BOS] >= 0;
}
