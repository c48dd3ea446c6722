/* The chat template of a model. */
#include "src/chat/template.h"
#include "src/run/open_model.h"

#include <string.h>

static bool has_token(const void *user, const char *text)
{
    const qn_model *model = user;
    int32_t id = -1;
    size_t n = 0;
    const qn_status s = qn_tokenize(model, (qn_str){ text, strlen(text) }, QN_TOK_PARSE, NULL, 0, &id, 1, &n, NULL);
    return s == QN_OK && n == 1 && qn_token_is_control(model, id);
}

qn_status qn_template_of_model(qn_template **out, const qn_model *model, qn_err *err)
{
    qn_value v;
    qn_str source;
    const char *from;
    *out = NULL;
    if (qn_file_key(model->file, "tokenizer.chat_template", &v)) {
        if (qn_value_as_str(&v, &source) != QN_OK)
            return qn_fail(err, QN_ERR_TYPE, "tokenizer.chat_template is a value of type %s, not a string", qn_vtype_name(v.type));
        const qn_status status = qn_template_open_from(out, source, NULL, "file", err);
        return status == QN_OK ? status : qn_fail_in(err, status, "tokenizer.chat_template");
    }
    source = qn_template_of_family(model->arch ? model->arch : "", has_token, model, &from);
    return qn_template_open_from(out, source, NULL, from, err);
}
