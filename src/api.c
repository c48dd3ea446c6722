/* Functions of quern.h that only forward to the part of a model that does the work. */
#include "src/run/open_model.h"

#define STR_(x) #x
#define STR(x) STR_(x)

const char *qn_version(void)
{
    return STR(QN_VERSION_MAJOR) "." STR(QN_VERSION_MINOR) "." STR(QN_VERSION_PATCH);
}

qn_status qn_tokenize(const qn_model *m, qn_str text, int flags, const qn_range *plain, size_t n_plain, int32_t *ids, size_t cap, size_t *n,
                      qn_err *err)
{
    return qn_vocab_tokenize(m->vocab, text, flags, plain, n_plain, ids, cap, n, err);
}

qn_status qn_tokenize_pair(const qn_model *m, qn_str query, qn_str document, int32_t *ids, size_t cap, size_t *n, size_t *n_first, qn_err *err)
{
    qn_value form;
    qn_str text = { "", 0 };
    if (qn_file_key(m->file, "tokenizer.chat_template.rerank", &form)) QN_TRY(qn_value_as_str(&form, &text));
    return qn_vocab_tokenize_pair(m->vocab, text, query, document, ids, cap, n, n_first, err);
}

qn_status qn_token_text(const qn_model *m, int32_t id, bool special, qn_str *out)
{
    return qn_vocab_token_text(m->vocab, id, special, out);
}

qn_status qn_detokenize(const qn_model *m, const int32_t *ids, size_t n_ids, bool special, char *out, size_t cap, size_t *n, qn_err *err)
{
    return qn_vocab_detokenize(m->vocab, ids, n_ids, special, out, cap, n, err);
}

int32_t qn_token_id(const qn_model *m, const char *role)
{
    return qn_vocab_id(m->vocab, role);
}

bool qn_token_is_end(const qn_model *m, int32_t id)
{
    return qn_vocab_is_end(m->vocab, id);
}

bool qn_token_is_control(const qn_model *m, int32_t id)
{
    return qn_vocab_is_control(m->vocab, id);
}
