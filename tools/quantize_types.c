#include "quantize.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

typedef struct rule {
    const char *arg;         /* as it was given                                                      */
    const char *type;        /* in it                                                                */
    regex_t regex;
    bool used;
} rule;

struct quantize_types {
    int32_t n;
    rule rule[CLI_LIST_MAX];
};

/* "REGEX=TYPE"; the type has no '=', the expression may. */
static bool read_rule(rule *r, const char *arg)
{
    char why[200];
    const char *eq = strrchr(arg, '=');
    if (!eq || eq == arg || !eq[1]) {
        cli_usage("quantize: --tensor-type takes REGEX=TYPE, not '%s'", arg);
        return false;
    }
    char *text = strndup(arg, (size_t)(eq - arg));
    if (!text) {
        cli_fault("no memory for a regular expression");
        return false;
    }
    const int code = regcomp(&r->regex, text, REG_EXTENDED | REG_NOSUB);
    if (code) {
        regerror(code, &r->regex, why, sizeof why);
        cli_usage("quantize: --tensor-type '%s': %s", text, why);
    }
    free(text);
    r->arg = arg;
    r->type = eq + 1;
    return code == 0;
}

quantize_types *quantize_types_open(const cli_list *args)
{
    quantize_types *t = calloc(1, sizeof *t);
    if (!t) cli_fault("no memory for the types of tensors");
    for (int32_t i = 0; t && i < args->n; i++) {
        if (read_rule(&t->rule[t->n], args->item[i])) t->n++;
        else quantize_types_close(&t);
    }
    return t;
}

void quantize_types_close(quantize_types **types)
{
    quantize_types *t = *types;
    *types = NULL;
    if (!t) return;
    for (int32_t i = 0; i < t->n; i++) regfree(&t->rule[i].regex);
    free(t);
}

const char *quantize_types_choose(void *types, const qn_tensor_info *tensor)
{
    quantize_types *t = types;
    char *name = strndup(tensor->name.ptr, tensor->name.len);
    const char *type = NULL;
    for (int32_t i = 0; name && i < t->n && !type; i++) {
        if (regexec(&t->rule[i].regex, name, 0, NULL, 0) != 0) continue;
        t->rule[i].used = true;
        type = t->rule[i].type;
    }
    free(name);
    return type;
}

const char *quantize_types_unused(const quantize_types *t)
{
    for (int32_t i = 0; i < t->n; i++)
        if (!t->rule[i].used) return t->rule[i].arg;
    return NULL;
}
