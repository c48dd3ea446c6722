/* Joins the sampler, which knows no models, to a model's vocabulary. */
#include "src/sample/sampler.h"

static qn_status text_of(const void *user, int32_t id, qn_str *out)
{
    return qn_token_text(user, id, true, out);
}

qn_status qn_sampler_open(qn_sampler **out, const qn_model *model, const qn_sample_opts *opts, qn_err *err)
{
    qn_model_info info;
    qn_model_get_info(model, &info);
    return qn_sampler_open_vocab(out, &(qn_sample_vocab){ info.n_vocab, text_of, model }, opts, err);
}
