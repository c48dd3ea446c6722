/* The chat template of a model. */
#include "src/chat/template.h"
#include "src/run/open_model.h"

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
    source = qn_template_of_family(model->arch ? model->arch : "", &from);
    return qn_template_open_from(out, source, NULL, from, err);
}
