/* Vocabulary and tokenizers behind qn_tokenize. */
#ifndef QN_TOKEN_H
#define QN_TOKEN_H

#include "src/base/err.h"

typedef struct qn_vocab qn_vocab;

/** Build from a file's tokenizer.* keys. Texts are copied or stay in the mapped file: the file must outlive the vocabulary. */
qn_status qn_vocab_open(qn_vocab **out, const qn_file *file, qn_err *err);
void qn_vocab_close(qn_vocab **v);
int32_t qn_vocab_size(const qn_vocab *v);

/* The same contracts as the functions of quern.h with `model` in place of `vocab`. */
qn_status qn_vocab_tokenize(const qn_vocab *v, qn_str text, int flags, const qn_range *plain, size_t n_plain, int32_t *ids, size_t cap,
                            size_t *n, qn_err *err);
/** qn_tokenize_pair. @param form  a text in which {query} and {document} stand for the two; empty: there is none */
qn_status qn_vocab_tokenize_pair(const qn_vocab *v, qn_str form, qn_str query, qn_str document, int32_t *ids, size_t cap, size_t *n, size_t *n_first,
                                 qn_err *err);
qn_status qn_vocab_token_text(const qn_vocab *v, int32_t id, bool special, qn_str *out);
qn_status qn_vocab_detokenize(const qn_vocab *v, const int32_t *ids, size_t n_ids, bool special, char *out, size_t cap, size_t *n,
                              qn_err *err);
int32_t qn_vocab_id(const qn_vocab *v, const char *role);
bool qn_vocab_is_end(const qn_vocab *v, int32_t id);
bool qn_vocab_is_control(const qn_vocab *v, int32_t id);
/** Whether QN_TOK_SPECIAL puts a BOS in front. */
bool qn_vocab_adds_bos(const qn_vocab *v);

#endif
