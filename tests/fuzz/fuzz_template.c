/* Any bytes as a chat template, rendered over a small conversation within small budgets; then as the JSON of a context. */
#include "src/quern.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char context[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"gr\\u00fc\\u00dfe <|im_end|>\"},"
    "{\"role\":\"assistant\",\"content\":\"ok\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1.5}}}]}],"
    "\"tools\":null,\"n\":12,\"f\":1e-5,\"s\":\"a,b\",\"add_generation_prompt\":true,\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}";

/* What a render hands out keeps its promises. */
static void check(const qn_prompt *p)
{
    size_t at = 0;
    if (p->text[p->len] != 0) abort();
    for (size_t i = 0; i < p->n_plain; i++) {
        if (p->plain[i].begin < at || p->plain[i].end <= p->plain[i].begin || p->plain[i].end > p->len) abort();
        at = p->plain[i].end;
    }
}

static void render(qn_str source, qn_str json)
{
    static const qn_template_limits limits = { sizeof limits, 20000, 1 << 16, 40 };
    qn_template *t;
    qn_prompt p;
    qn_err err = { 0 };
    qn_status status = qn_template_open(&t, source, &limits, &err);
    if (status == QN_OK) {
        status = qn_template_render(t, json, 1768478400, &p, &err);
        if (status == QN_OK) check(&p);
        qn_prompt_free(&p);
    }
    if (status != QN_OK && (err.status != status || !err.text[0])) abort();
    qn_template_close(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char dump[] = "{{ messages | tojson }}{{ s }}{% for m in messages %}{{ m.role }}{% endfor %}";
    const qn_str bytes = { (const char *)data, size };
    render(bytes, (qn_str){ context, sizeof context - 1 });
    render((qn_str){ dump, sizeof dump - 1 }, bytes);
    return 0;
}
