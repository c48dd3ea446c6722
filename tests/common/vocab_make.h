/* Vocabularies for tests: made on the spot, or the samples of tests/data/tokenizer. */
#ifndef QN_TEST_VOCAB_MAKE_H
#define QN_TEST_VOCAB_MAKE_H

#include "src/format/writer.h"
#include "src/token/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAKE_MAX = 600 };

/** What goes into a vocabulary-only file. Fields that are zero are left out. */
typedef struct vocab_make {
    const char *model, *pre, *arch;
    qn_str token[MAKE_MAX];
    int32_t type[MAKE_MAX];
    float score[MAKE_MAX];
    int32_t n;
    bool no_types, scores;
    qn_str merge[MAKE_MAX];
    int32_t n_merges;
    bool no_merges;
    struct {
        const char *key; /* behind "tokenizer.ggml." */
        uint32_t value;
        bool is_bool;
    } set[12];
    int32_t n_set;
} vocab_make;

static inline int32_t make_token(vocab_make *m, const char *text, int32_t type, float score)
{
    m->token[m->n] = (qn_str){ text, strlen(text) };
    m->type[m->n] = type;
    m->score[m->n] = score;
    return m->n++;
}

static inline void make_merge(vocab_make *m, const char *text)
{
    m->merge[m->n_merges++] = (qn_str){ text, strlen(text) };
}

static inline void make_set(vocab_make *m, const char *key, uint32_t value, bool is_bool)
{
    m->set[m->n_set].key = key;
    m->set[m->n_set].value = value;
    m->set[m->n_set++].is_bool = is_bool;
}

/** Write the file. @param path  [64] its name, to be unlinked */
static inline void make_write(const vocab_make *m, char *path)
{
    snprintf(path, 64, "/tmp/quern-vocab-%ld-XXXXXX", (long)getpid());
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    qn_writer *w;
    assert_int_equal(qn_writer_open(&w, path, 32, NULL), QN_OK);
    qn_writer_key_str(w, "general.architecture", (qn_str){ m->arch ? m->arch : "llama", strlen(m->arch ? m->arch : "llama") });
    if (m->model) qn_writer_key_str(w, "tokenizer.ggml.model", (qn_str){ m->model, strlen(m->model) });
    if (m->pre) qn_writer_key_str(w, "tokenizer.ggml.pre", (qn_str){ m->pre, strlen(m->pre) });
    if (m->n) qn_writer_key_strings(w, "tokenizer.ggml.tokens", m->token, (uint64_t)m->n);
    if (m->n && !m->no_types) qn_writer_key_array(w, "tokenizer.ggml.token_type", QN_V_I32, m->type, (uint64_t)m->n);
    if (m->n && m->scores) qn_writer_key_array(w, "tokenizer.ggml.scores", QN_V_F32, m->score, (uint64_t)m->n);
    if (!m->no_merges) qn_writer_key_strings(w, "tokenizer.ggml.merges", m->merge, (uint64_t)m->n_merges);
    for (int32_t i = 0; i < m->n_set; i++) {
        char key[100];
        snprintf(key, sizeof key, "tokenizer.ggml.%s", m->set[i].key);
        if (m->set[i].is_bool) qn_writer_key_bool(w, key, m->set[i].value != 0);
        else qn_writer_key_u32(w, key, m->set[i].value);
    }
    assert_int_equal(qn_writer_close(&w, NULL), QN_OK);
}

/** Open it as a vocabulary; *file stays open where that succeeds. */
static inline qn_status make_open(const vocab_make *m, qn_file **file, qn_vocab **v, qn_err *err)
{
    char path[64];
    make_write(m, path);
    qn_status s = qn_file_open(file, path, err);
    unlink(path);
    assert_int_equal(s, QN_OK);
    s = qn_vocab_open(v, *file, err);
    if (s != QN_OK) qn_file_close(file);
    return s;
}

/** A sample: "bpe", "spm", "wordpiece", "unigram". */
static inline void sample_open(const char *name, qn_file **file, qn_vocab **v)
{
    char path[4096];
    qn_err err;
    snprintf(path, sizeof path, "%s/tests/data/tokenizer/%s.gguf", getenv("QUERN_SOURCE") ? getenv("QUERN_SOURCE") : ".", name);
    if (qn_file_open(file, path, &err) != QN_OK || qn_vocab_open(v, *file, &err) != QN_OK) fail_msg("%s: %s", path, err.text);
}

/** 256 byte tokens in GPT-2's alphabet, ids 0 .. 255. */
static inline void make_alphabet(vocab_make *m, char (*texts)[3], uint32_t (*alpha)(unsigned char))
{
    for (int b = 0; b < 256; b++) {
        const uint32_t cp = alpha((unsigned char)b);
        if (cp < 0x80) snprintf(texts[b], 3, "%c", (char)cp);
        else snprintf(texts[b], 3, "%c%c", (char)(0xc0 | cp >> 6), (char)(0x80 | (cp & 0x3f)));
        make_token(m, texts[b], 1, 0);
    }
}

#endif
