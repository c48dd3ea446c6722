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

static const char llama3[] =
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n{{ m['content'] | trim }}<|eot_id|>"
    "{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{{ '' }}{% endif %}";

static const char phi3[] =
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}<|end|>\n{{ '' }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{{ '' }}{% endif %}";

static const char zephyr[] =
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}{{ eos_token }}\n{{ '' }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{{ '' }}{% endif %}";

/* The system turn is put in front of the first user turn here too. */
static const char mistral[] =
    "{{ bos_token }}{% set ns = namespace(system='') %}{% for m in messages %}"
    "{% if m['role'] == 'system' %}{% set ns.system = m['content'] + '\\n\\n' %}"
    "{% elif m['role'] == 'assistant' %} {{ m['content'] | trim }}{{ eos_token }}"
    "{% else %}[INST] {{ ns.system }}{{ m['content'] }}[/INST]{% set ns.system = '' %}{% endif %}{% endfor %}";

/* By architecture, or by control tokens that only this family's vocabularies have. The first row that fits counts. */
typedef struct family {
    const char *arch;            /* or NULL: any                                               */
    const char *token[2];        /* that the vocabulary must have; NULL: none                  */
    const char *from, *source;
} family;
static const family families[] = {
    { "gemma", { NULL }, "family gemma", gemma },
    { "gemma2", { NULL }, "family gemma", gemma },
    { "gemma3", { NULL }, "family gemma", gemma },
    { "qwen2", { NULL }, "family qwen", chatml },
    { "qwen3", { NULL }, "family qwen", chatml },
    { NULL, { "<|start_header_id|>", "<|eot_id|>" }, "family llama3", llama3 },
    { NULL, { "<|im_start|>", "<|im_end|>" }, "family chatml", chatml },
    { NULL, { "<|assistant|>", "<|end|>" }, "family phi3", phi3 },
    { NULL, { "<|assistant|>", "<|user|>" }, "family zephyr", zephyr },
    { NULL, { "[INST]", "[/INST]" }, "family mistral", mistral },
};

static bool fits(const family *f, const char *arch, qn_has_token_fn *has, const void *user)
{
    if (f->arch && strcmp(arch, f->arch)) return false;
    for (int i = 0; i < 2; i++)
        if (f->token[i] && !has(user, f->token[i])) return false;
    return true;
}

qn_str qn_template_of_family(const char *arch, qn_has_token_fn *has, const void *user, const char **from)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (!fits(&families[i], arch, has, user)) continue;
        *from = families[i].from;
        return (qn_str){ families[i].source, strlen(families[i].source) };
    }
    *from = "default chatml";
    return (qn_str){ chatml, sizeof chatml - 1 };
}
