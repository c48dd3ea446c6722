/* Chat templates for files that carry none, by family. */
#include "src/chat/template.h"

#include <string.h>

/* A system turn is put in front of the first user turn: these models were trained without one. */
static const char gemma[] =
    "{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}"
    "{% if m['role'] == 'system' %}{% set ns.system = m['content'] | trim + '\\n\\n' %}"
    "{% else %}<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
    "{{ ns.system }}{{ m['content'] | trim }}<end_of_turn>\n{{ '' }}{% set ns.system = '' %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{{ '' }}{% endif %}";

static const char chatml[] =
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{{ '' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{{ '' }}{% endif %}";

typedef struct family {
    const char *arch, *from, *source;
} family;
static const family families[] = {
    { "gemma", "family gemma", gemma },
    { "gemma2", "family gemma", gemma },
    { "gemma3", "family gemma", gemma },
    { "qwen2", "family qwen", chatml },
    { "qwen3", "family qwen", chatml },
};

qn_str qn_template_of_family(const char *arch, const char **from)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strcmp(arch, families[i].arch)) continue;
        *from = families[i].from;
        return (qn_str){ families[i].source, strlen(families[i].source) };
    }
    *from = "default chatml";
    return (qn_str){ chatml, sizeof chatml - 1 };
}
