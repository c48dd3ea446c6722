#include "src/chat/jvm.h"

#include "src/base/mem.h"

#include <stdarg.h>
#include <stdio.h>

bool qn_jvm_stop(qn_jvm *vm, qn_status status, const char *fmt, ...)
{
    if (vm->status != QN_OK) return false;
    char text[sizeof vm->err->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    vm->status = qn_fail(vm->err, status, "%s", text);
    return false;
}

bool qn_jvm_fail(qn_jvm *vm, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return qn_jvm_stop(vm, QN_ERR_TEMPLATE, "template line %d: %s", (int)vm->line, text);
}

bool qn_jvm_no_memory(qn_jvm *vm)
{
    if (vm->mem->fail == QN_ERR_NOMEM) return qn_jvm_stop(vm, QN_ERR_NOMEM, "template line %d: no memory", (int)vm->line);
    return qn_jvm_stop(vm, QN_ERR_LIMIT, "template line %d: takes more than its %zu MiB of memory", (int)vm->line, vm->mem->max_total >> 20);
}

bool qn_jvm_charge(qn_jvm *vm, uint64_t n)
{
    if (n > vm->n_steps) {
        vm->n_steps = 0;
        return qn_jvm_stop(vm, QN_ERR_LIMIT, "template line %d: takes more steps than its budget allows", (int)vm->line);
    }
    vm->n_steps -= n;
    return true;
}

bool qn_jvm_enter(qn_jvm *vm)
{
    if (vm->depth >= vm->max_depth)
        return qn_jvm_stop(vm, QN_ERR_LIMIT, "template line %d: nested too deeply", (int)vm->line);
    vm->depth++;
    return true;
}

enum { DATA_LEVELS = 4 }; /* 400 bytes of stack for one list in another, against 100 to 200 for one expression in another */

bool qn_jvm_enter_data(qn_jvm *vm)
{
    vm->depth += DATA_LEVELS - 1;
    return qn_jvm_enter(vm);
}

void qn_jvm_leave_data(qn_jvm *vm)
{
    vm->depth -= DATA_LEVELS;
}

void *qn_jvm_new(qn_jvm *vm, size_t n, size_t size)
{
    size_t bytes;
    if (!qn_size_mul(n, size, &bytes)) bytes = SIZE_MAX;
    void *p = qn_jarena_new(vm->mem, bytes);
    if (!p) qn_jvm_no_memory(vm);
    return p;
}

static bool new_undef(qn_jvm *vm, qn_jundef u, qn_jval *out)
{
    qn_jundef *p = qn_jvm_new(vm, 1, sizeof *p);
    if (!p) return false;
    *p = u;
    *out = QN_JV(QN_J_UNDEF, undef, p);
    return true;
}

bool qn_jv_undef_name(qn_jvm *vm, const qn_jstr *name, qn_jval *out)
{
    return new_undef(vm, (qn_jundef){ .why = QN_JU_NAME, .key = qn_jv_str(name) }, out);
}

bool qn_jv_undef_attr(qn_jvm *vm, int why, qn_jval obj, qn_jval key, qn_jval *out)
{
    return new_undef(vm, (qn_jundef){ .why = (uint8_t)why, .obj = obj, .key = key }, out);
}

bool qn_jv_undef_hint(qn_jvm *vm, const char *hint, qn_jval *out)
{
    return new_undef(vm, (qn_jundef){ .why = QN_JU_HINT, .hint = hint }, out);
}

bool qn_jv_undef_fail(qn_jvm *vm, qn_jval v)
{
    const qn_jundef *u = v.undef;
    const char *of = qn_jv_type_name(u->obj), *object = u->obj.type == QN_J_NONE ? "" : " object";
    if (u->obj.type == QN_J_NONE) of = "None";
    switch (u->why) {
    case QN_JU_NAME: return qn_jvm_fail(vm, "'%.*s' is undefined", QN_STR_ARG(((qn_str){ u->key.s->p, u->key.s->n })));
    case QN_JU_HINT: return qn_jvm_fail(vm, "%s", u->hint);
    default: break;
    }
    if (u->key.type == QN_J_STR) {
        const qn_str key = { u->key.s->p, u->key.s->n };
        if (u->why == QN_JU_UNSAFE)
            return qn_jvm_fail(vm, "access to attribute '%.*s' of '%s' object is unsafe.", QN_STR_ARG(key), of);
        return qn_jvm_fail(vm, "'%s%s' has no attribute '%.*s'", of, object, QN_STR_ARG(key));
    }
    qn_jbuf b = { .vm = vm };
    if (!qn_jbuf_repr(&b, u->key)) return false;
    return qn_jvm_fail(vm, "%s%s has no element %.*s", of, object, QN_STR_ARG(((qn_str){ b.p, b.n })));
}
