#include "quantize.h"
#include "cli_prompt.h"

#include <string.h>

static json_t *path_of(const char *path)
{
    return path ? cli_json_text(path, strlen(path)) : json_null();
}

static json_t *tensor_of(const qn_quantize_tensor *t, bool done)
{
    json_t *dims = json_array();
    uint64_t n_weights = 1;
    for (int32_t d = 0; d < t->source.n_dims; d++) {
        n_weights *= (uint64_t)t->source.dims[d];
        json_array_append_new(dims, json_integer(t->source.dims[d]));
    }
    return json_pack("{s:o, s:o, s:s, s:s, s:s, s:I, s:f, s:b, s:o}", "name", cli_json_text(t->source.name.ptr, t->source.name.len), "dims", dims,
                     "from", t->source.type_name, "to", t->type_name, "wanted", t->wanted, "bytes", (json_int_t)t->n_bytes,
                     "bits", 8 * (double)t->n_bytes / (double)n_weights,
                     "importance", t->has_importance, "error", done ? json_real(t->error) : json_null());
}

int quantize_json(const quantize_report *r)
{
    qn_quantize_totals all;
    qn_quantize_tensor t;
    qn_quantize_get_totals(r->quantize, &all);
    const bool done = r->seconds > 0;
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int64_t i = 0; ok && qn_quantize_tensor_at(r->quantize, i, &t); i++) ok = json_array_append_new(list, tensor_of(&t, done)) == 0;
    const double n = all.n_weights ? (double)all.n_weights : 1;
    json_t *j = json_pack("{s:o, s:o, s:s, s:I, s:I, s:I, s:f, s:f, s:I, s:i, s:i, s:i, s:i, s:o, s:o}", "input", path_of(r->in), "output",
                          path_of(r->out), "type", r->type, "weights", (json_int_t)all.n_weights, "source_bytes", (json_int_t)all.source_bytes,
                          "tensor_bytes", (json_int_t)all.tensor_bytes, "source_bits_per_weight", 8 * (double)all.source_bytes / n,
                          "bits_per_weight", 8 * (double)all.tensor_bytes / n, "file_bytes", (json_int_t)all.file_bytes, "files", (int)all.n_files,
                          "quantized", (int)all.n_quantized, "substituted", (int)all.n_substituted, "without_importance",
                          (int)all.n_without_importance, "seconds", done ? json_real(r->seconds) : json_null(), "tensors", list);
    ok = ok && j && json_dumpf(j, stdout, JSON_INDENT(1)) == 0;
    json_decref(j);
    if (!ok) return cli_fault("no memory for the report, or it could not be written");
    putchar('\n');
    return CLI_OK;
}
