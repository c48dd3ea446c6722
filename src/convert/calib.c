#include "src/convert/calib.h"

#include "src/base/mem.h"
#include "src/run/open_model.h"

#include <stdlib.h>

/* Rarely more tokens than bytes; when there are, the second round has the room that the first one told. */
static qn_status tokenize(qn_calib *c, const qn_model *model, qn_str text, size_t *n, qn_err *err)
{
    size_t cap;
    if (!qn_size_add(text.len, 8, &cap)) return qn_fail(err, QN_ERR_NOMEM, "the text is larger than memory can address");
    for (;;) {
        free(c->token);
        c->token = qn_new(cap, sizeof *c->token);
        if (!c->token) return qn_fail(err, QN_ERR_NOMEM, "no memory for %zu tokens", cap);
        const qn_status s = qn_vocab_tokenize(model->vocab, text, QN_TOK_SPECIAL, NULL, 0, c->token, cap, n, err);
        if (s != QN_ERR_LIMIT || *n <= cap) return s;
        cap = *n;
    }
}

qn_status qn_calib_open(qn_calib *c, const qn_model *model, qn_str text, int32_t n_ctx, int64_t n_chunks, qn_err *err)
{
    size_t n = 0;
    *c = (qn_calib){ .n_ctx = n_ctx ? n_ctx : QN_CALIB_CTX };
    const qn_status s = tokenize(c, model, text, &n, err);
    if (s != QN_OK) {
        qn_calib_close(c);
        return s;
    }
    c->n_chunks = (int64_t)(n / (size_t)c->n_ctx);
    if (n_chunks && n_chunks < c->n_chunks) c->n_chunks = n_chunks;
    if (c->n_chunks == 0) {
        qn_fail(err, QN_ERR_ARG, "the text has %zu tokens; at least one window of %d is needed", n, c->n_ctx);
        qn_calib_close(c);
        return QN_ERR_ARG;
    }
    const int32_t bos = qn_vocab_adds_bos(model->vocab) ? qn_vocab_id(model->vocab, "bos") : -1;
    for (int64_t i = 0; i < c->n_chunks && bos >= 0; i++) c->token[i * c->n_ctx] = bos;
    return QN_OK;
}

void qn_calib_close(qn_calib *c)
{
    free(c->token);
    *c = (qn_calib){ 0 };
}
