#include "models/near.h"

#include <stdlib.h>
#include <string.h>

/* Architectures that are no decoders, and why. */
static const struct {
    const char *name, *why;
} not_decoders[] = {
    { "dream", "it fills in masked tokens (diffusion) and predicts no next one" },
    { "llada", "it fills in masked tokens (diffusion) and predicts no next one" },
    { "llada-moe", "it fills in masked tokens (diffusion) and predicts no next one" },
    { "rnd1", "it fills in masked tokens (diffusion) and predicts no next one" },
    { "t5", "an encoder stands before its decoder" },
    { "clip", "it is the part of a model that sees images" },
    { "wavtokenizer-dec", "it makes sound of tokens" },
};

static const char *why_not(qn_str name)
{
    for (size_t i = 0; i < sizeof not_decoders / sizeof *not_decoders; i++)
        if (name.len == strlen(not_decoders[i].name) && !memcmp(name.ptr, not_decoders[i].name, name.len)) return not_decoders[i].why;
    return NULL;
}

static qn_status refuse(qn_str name, qn_err *err)
{
    const char *why = why_not(name);
    static const char still[] = "quern inspect shows the file's keys and tensors all the same";
    char near[256];
    if (why) return qn_fail(err, QN_ERR_UNSUPPORTED, "architecture \"%.*s\" is not supported: %s; %s", QN_STR_ARG(name), why, still);
    if (qn_arch_near(name, near, sizeof near))
        return qn_fail(err, QN_ERR_UNSUPPORTED, "architecture \"%.*s\" is not supported; quern has %s; %s", QN_STR_ARG(name), near, still);
    return qn_fail(err, QN_ERR_UNSUPPORTED, "architecture \"%.*s\" is not supported, nor one with a name like it; %s", QN_STR_ARG(name), still);
}

qn_status qn_net_open(qn_net *net, const qn_file *file, int32_t n_vocab, qn_err *err)
{
    qn_value v;
    qn_str name;
    *net = (qn_net){ .n_vocab = n_vocab };
    if (!qn_file_key(file, "general.architecture", &v) || qn_value_as_str(&v, &name) != QN_OK)
        return qn_fail(err, QN_ERR_FORMAT, "the file has no general.architecture: it holds no model");
    net->arch = qn_arch_find(name);
    if (!net->arch) return refuse(name, err);
    QN_TRY(qn_net_read_hparams(net, file, err));
    return qn_net_bind_tensors(net, file, err);
}

void qn_net_close(qn_net *net)
{
    free(net->layer);
    free(net->used);
    *net = (qn_net){ 0 };
}
