/* Any text, with any flags and plain ranges, over a small vocabulary of each kind and each pre-tokenizer. Byte-level vocabularies must give
 * the text back. Input: kind and flags (1 byte), pre-tokenizer (1), begin and length of a plain range (1 each), the text. */
#include "src/format/writer.h"
#include "src/token/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_PRE = 200, MAX_TOKENS = 1200 };

typedef struct made {
    qn_str token[MAX_TOKENS], merge[MAX_TOKENS];
    int32_t type[MAX_TOKENS];
    float score[MAX_TOKENS];
    uint64_t n, n_merges;
    char bytes[32768], *at;
} made;

static void add(made *m, int32_t type, float score, const char *a, const char *b)
{
    const int n = snprintf(m->at, 100, "%s%s", a, b);
    m->token[m->n] = (qn_str){ m->at, (size_t)n };
    m->type[m->n] = type;
    m->score[m->n++] = score;
    m->at += n + 1;
}

static void add_merge(made *m, const char *a, const char *b)
{
    const int n = snprintf(m->at, 100, "%s %s", a, b);
    m->merge[m->n_merges++] = (qn_str){ m->at, (size_t)n };
    m->at += n + 1;
}

/* Characters that pieces are made of, and all pairs of them. */
static void fill(made *m, bool byte_level)
{
    static const char *const specials[] = { "<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "[CLS]", "[SEP]" };
    static const char *const text[] = { "a", "b", "A", "1", "2", "'", "s", ".", "!", "\xc3\xa9", "\xcc\x81", "\xe4\xb8\xad", QN_BLANK, "\n" };
    static const char *const alpha[] = { "a", "b", "A", "1", "2", "'", "s", ".", "!", "\xc3\x83", "\xc2\xa9", "\xc4\xa0", "\xc4\x8a", "\xc3\xa4" };
    char name[16];
    m->at = m->bytes;
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) add(m, i ? QN_T_CONTROL : QN_T_UNKNOWN, 0, specials[i], "");
    add(m, QN_T_USER, 0, "<tool>", "");
    add(m, QN_T_USER, 0, "  ", "");
    for (uint32_t b = 0; b < 256; b++) {
        char s[5] = { 0 };
        snprintf(name, sizeof name, "<0x%02X>", b);
        if (byte_level) s[qn_utf8_put(qn_byte_to_alpha((unsigned char)b), s)] = 0;
        add(m, byte_level ? QN_T_NORMAL : QN_T_BYTE, 0, byte_level ? s : name, "");
    }
    const char *const *pieces = byte_level ? alpha : text;
    for (size_t i = 0; i < 14; i++) {
        if (!byte_level) add(m, QN_T_NORMAL, -9.0f - (float)i, pieces[i], "");
        for (size_t k = 0; k < 14; k++) {
            add(m, QN_T_NORMAL, -(float)((i * 7 + k * 3) % 11), pieces[i], pieces[k]);
            add_merge(m, pieces[i], pieces[k]);
        }
    }
}

/* Kept until the end of the program, with its file. */
typedef struct kept {
    qn_file *file;
    qn_vocab *vocab;
} kept;

static const qn_vocab *open_vocab(kept *k, const char *model, const char *pre)
{
    static const struct {
        const char *key;
        uint32_t id;
    } roles[] = { { "unknown", 0 }, { "bos", 1 }, { "eos", 2 }, { "cls", 5 }, { "seperator", 6 } };
    made *m = calloc(1, sizeof *m);
    char path[] = "/tmp/quern-fuzz-XXXXXX";
    qn_writer *w;
    qn_err err;
    if (!m) abort();
    fill(m, !strcmp(model, "gpt2"));
    close(mkstemp(path));
    if (qn_writer_open(&w, path, 32, &err) != QN_OK) abort();
    qn_writer_key_str(w, "tokenizer.ggml.model", (qn_str){ model, strlen(model) });
    qn_writer_key_str(w, "tokenizer.ggml.pre", (qn_str){ pre, strlen(pre) });
    qn_writer_key_strings(w, "tokenizer.ggml.tokens", m->token, m->n);
    qn_writer_key_array(w, "tokenizer.ggml.token_type", QN_V_I32, m->type, m->n);
    qn_writer_key_array(w, "tokenizer.ggml.scores", QN_V_F32, m->score, m->n);
    qn_writer_key_strings(w, "tokenizer.ggml.merges", m->merge, m->n_merges);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        char key[64];
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", roles[i].key);
        qn_writer_key_u32(w, key, roles[i].id);
    }
    if (qn_writer_close(&w, &err) != QN_OK || qn_file_open(&k->file, path, &err) != QN_OK ||
        qn_vocab_open(&k->vocab, k->file, &err) != QN_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    unlink(path);
    free(m);
    return k->vocab;
}

static const qn_vocab *vocab_of(int kind, int pre)
{
    static kept bpe[N_PRE], other[5];
    static const char *const models[5] = { "llama", "bert", "t5", "gemma4", "whitespace" };
    if (kind < 5) return other[kind].vocab ? other[kind].vocab : open_vocab(&other[kind], models[kind], "");
    int n = 0;
    while (qn_pre_at(n)) n++;
    pre %= n;
    return bpe[pre].vocab ? bpe[pre].vocab : open_vocab(&bpe[pre], "gpt2", qn_pre_at(pre)->name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) return 0;
    const int kind = data[0] >> 2;
    const qn_vocab *v = vocab_of(kind % 8, data[1]);
    const qn_str text = { (const char *)data + 4, size - 4 };
    const size_t begin = data[2] < text.len ? data[2] : text.len;
    const qn_range plain = { begin, begin + (data[3] < text.len - begin ? data[3] : text.len - begin) };
    const size_t cap = 4 * text.len + 16;
    int32_t *ids = malloc(cap * sizeof *ids);
    char *back = malloc(20 * cap);
    size_t n, n_back;
    qn_err err;
    if (!ids || !back) abort();
    if (qn_vocab_tokenize(v, text, data[0] & 3, &plain, 1, ids, cap, &n, &err) != QN_OK) abort();
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= qn_vocab_size(v)) abort();
    if (qn_vocab_detokenize(v, ids, n, true, back, 20 * cap, &n_back, &err) != QN_OK) abort();
    if (v->kind->byte_level && !v->nfc && !(data[0] & 1) && !(v->pre->flags & QN_PRE_LSTRIP))
        if (n_back != text.len || memcmp(back, text.ptr, n_back)) abort();
    free(ids);
    free(back);
    return 0;
}
