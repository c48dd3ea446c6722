/* Compiled chat templates and their renders. */
#include "src/chat/template.h"

#include "src/base/mem.h"
#include "src/base/opts.h"
#include "src/chat/jast.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_DEPTH = 200,
    LEVELS = 8,               /* of the evaluator for one level that a template's author sees: call, body, statement, expression ...   */
    COMPILE_BYTES = 64 << 20, /* of the tree; the largest templates known take 2 MB                                                      */
    MEMORY_FACTOR = 8,        /* memory of a render over the largest string it may make                                                 */
};
#define DEFAULT_STEPS 10000000u
#define DEFAULT_BYTES ((uint64_t)64 << 20)

struct qn_template {
    char *source;             /* the tree's strings point into it */
    const char *from;
    qn_jarena mem;
    qn_jnode *root;
    qn_template_limits limits;
};

static qn_jvm new_vm(const qn_template_limits *l, qn_jarena *mem, qn_err *err)
{
    return (qn_jvm){
        .mem = mem, .err = err, .n_steps = l->max_steps, .max_bytes = l->max_bytes, .max_depth = l->max_depth * LEVELS, .max_calls = l->max_depth,
        .line = 1, .seed = (uint64_t)(uintptr_t)mem,
    };
}

static bool compile(qn_template *t, qn_str source, qn_err *err)
{
    qn_jvm vm = new_vm(&t->limits, &t->mem, err);
    qn_jtokens tokens = { 0 };
    vm.max_depth = t->limits.max_depth;
    if (!qn_jlex(&vm, source, &tokens)) return false;
    for (size_t i = 0; i < tokens.n; i++) /* counted now, so that renders in several threads only read */
        if (tokens.t[i].val.type == QN_J_STR) qn_js_chars(tokens.t[i].val.s);
    return qn_jparse(&vm, &tokens, &t->root) && qn_jscope_resolve(&vm, t->root);
}

static qn_status take_limits(qn_template_limits *l, const qn_template_limits *in, qn_err *err)
{
    QN_TRY(qn_opts_take(l, sizeof *l, in, "template's", err));
    if (!l->max_steps) l->max_steps = DEFAULT_STEPS;
    if (!l->max_bytes) l->max_bytes = DEFAULT_BYTES;
    if (l->max_depth < 1) l->max_depth = DEFAULT_DEPTH;
    if (l->max_depth > 1000) l->max_depth = 1000; /* a level takes up to 8 kB of the caller's stack */
    if (l->max_bytes > SIZE_MAX / 16) l->max_bytes = SIZE_MAX / 16;
    return QN_OK;
}

qn_status qn_template_open_from(qn_template **out, qn_str source, const qn_template_limits *limits, const char *from, qn_err *err)
{
    qn_err own = { 0 };
    qn_template_limits l;
    *out = NULL;
    QN_TRY(take_limits(&l, limits, err));
    qn_template *t = qn_new(1, sizeof *t);
    if (!t) return qn_fail(err, QN_ERR_NOMEM, "no memory for a chat template");
    t->limits = l;
    t->from = from;
    qn_jarena_init(&t->mem, COMPILE_BYTES);
    t->source = qn_new(source.len + 1, 1);
    if (t->source && source.len) memcpy(t->source, source.ptr, source.len);
    if (t->source && compile(t, (qn_str){ t->source, source.len }, &own)) {
        *out = t;
        return QN_OK;
    }
    if (!t->source) qn_fail(&own, QN_ERR_NOMEM, "no memory for a chat template of %zu bytes", source.len);
    qn_template_close(&t);
    return qn_fail(err, own.status, "%s", own.text);
}

qn_status qn_template_open(qn_template **out, qn_str source, const qn_template_limits *limits, qn_err *err)
{
    return qn_template_open_from(out, source, limits, "given", err);
}

void qn_template_close(qn_template **t)
{
    if (!*t) return;
    qn_jarena_free(&(*t)->mem);
    free((*t)->source);
    free(*t);
    *t = NULL;
}

const char *qn_template_source(const qn_template *t)
{
    return t->from;
}

/* What qn_prompt_free gives back: text and ranges of their own, apart from the render's memory. */
static qn_status hand_out(const qn_jbuf *b, qn_prompt *out, qn_err *err)
{
    out->text = qn_new(b->n + 1, 1);
    out->plain = qn_new(b->n_run, sizeof *out->plain);
    if (!out->text || !out->plain) {
        qn_prompt_free(out);
        return qn_fail(err, QN_ERR_NOMEM, "no memory for a prompt of %zu bytes", b->n);
    }
    if (b->n) memcpy(out->text, b->p, b->n);
    if (b->n_run) memcpy(out->plain, b->run, b->n_run * sizeof *out->plain);
    out->len = b->n;
    out->n_plain = b->n_run;
    return QN_OK;
}

static bool run(qn_jvm *vm, const qn_jnode *root, qn_str context_json, qn_jbuf *b)
{
    qn_jval context;
    if (!qn_json_read(vm, context_json, &context)) return false;
    if (context.type != QN_J_DICT) return qn_jvm_stop(vm, QN_ERR_FORMAT, "the context is no JSON object");
    vm->context = context.d;
    vm->vars = qn_jd_new(vm);
    vm->out = b;
    vm->root = root;
    if (!vm->vars) return false;
    qn_jenv *env = qn_jenv_new(vm, root->scope, NULL);
    if (env && root->slot >= 0) env->slot[root->slot] = (qn_jval){ .type = QN_J_BLOCKS }; /* `self` */
    return env && qn_jenv_load(vm, env) && qn_jexec(vm, &root->kid, env) == QN_JRUN_ON;
}

qn_status qn_template_render(const qn_template *t, qn_str context_json, int64_t now, qn_prompt *out, qn_err *err)
{
    qn_err own = { 0 };
    qn_jarena mem;
    *out = (qn_prompt){ 0 };
    qn_jarena_init(&mem, t->limits.max_bytes * MEMORY_FACTOR);
    qn_jvm vm = new_vm(&t->limits, &mem, &own);
    vm.now = now;
    qn_jbuf b = { .vm = &vm };
    qn_status status;
    if (run(&vm, t->root, context_json, &b)) status = hand_out(&b, out, err);
    else status = qn_fail(err, own.status, "%s", own.text);
    qn_jarena_free(&mem);
    return status;
}

void qn_prompt_free(qn_prompt *p)
{
    free(p->text);
    free(p->plain);
    *p = (qn_prompt){ 0 };
}
