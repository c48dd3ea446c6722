#include "models/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

qn_status qn_net_open(qn_net *net, const qn_file *file, int32_t n_vocab, qn_err *err)
{
    qn_value v;
    qn_str name;
    *net = (qn_net){ .n_vocab = n_vocab };
    if (!qn_file_key(file, "general.architecture", &v) || qn_value_as_str(&v, &name) != QN_OK)
        return qn_fail(err, QN_ERR_FORMAT, "the file has no general.architecture: it holds no model");
    net->arch = qn_arch_find(name);
    if (!net->arch) {
        char known[256] = "";
        for (int32_t i = 0; i < qn_arch_count(); i++) {
            const size_t n = strlen(known);
            snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", qn_arch_at(i)->name);
        }
        return qn_fail(err, QN_ERR_UNSUPPORTED, "architecture \"%.*s\" is not supported; quern runs %s", QN_STR_ARG(name), known);
    }
    QN_TRY(qn_net_read_hparams(net, file, err));
    return qn_net_bind_tensors(net, file, err);
}

void qn_net_close(qn_net *net)
{
    free(net->layer);
    free(net->used);
    *net = (qn_net){ 0 };
}
