#include "src/base/mem.h"
#include "src/sample/explog.h"
#include "src/sample/sampler.h"

/* With r the window from its end to its start, z[i] is the length of the longest common beginning of r and r[i..], held to `limit`:
 * so many of the last tokens also stand before the token r[i - 1]. */
static void fill_z(const qn_past_token *last, int32_t n, int32_t limit, int32_t *z)
{
    z[0] = n;
    for (int32_t i = 1, left = 0, right = 0; i < n; i++) {
        int32_t len = 0;
        if (i < right) len = z[i - left] < right - i ? z[i - left] : right - i;
        while (len < limit && i + len < n && last[-len].id == last[-(i + len)].id) len++;
        z[i] = len;
        if (i + len > right) {
            left = i;
            right = i + len;
        }
    }
}

void qn_dry_apply(qn_dry *d, qn_cands *c, const qn_past *past, size_t window, bool *no_memory)
{
    const size_t whole = past->n < window ? past->n : window;
    const int32_t n = whole < INT32_MAX ? (int32_t)whole : INT32_MAX;
    int32_t limit = 0;
    if (n < 2) return;
    const qn_past_token *last = past->token + past->n - 1;
    while (limit < n && !last[-limit].breaks) limit++;
    if (limit == 0 || limit < d->allowed_length) return;
    if (!qn_grow((void **)&d->z, &d->z_cap, whole, sizeof *d->z)) {
        *no_memory = true;
        return;
    }
    fill_z(last, n, limit, d->z);
    for (int32_t i = 1; i < n; i++) {
        const qn_past_token next = last[1 - i];
        if (!next.breaks && d->z[i] >= 1 && d->z[i] > d->longest[next.id]) d->longest[next.id] = d->z[i];
    }
    float *logit = qn_cands_edit(c);
    for (int32_t i = 0; i < c->n; i++) {
        const int32_t len = d->longest[qn_cands_id(c, i)];
        if (len == 0 || len < d->allowed_length) continue;
        logit[i] = qn_logit_bound((double)logit[i] - (double)d->multiplier * qn_pow((double)d->base, len - d->allowed_length));
    }
    for (int32_t i = 1; i < n; i++) d->longest[last[1 - i].id] = 0;
}
