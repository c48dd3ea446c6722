#include "src/base/match.h"

#include "src/base/mem.h"

#include <stdlib.h>
#include <string.h>

/* fail[i]: the longest proper beginning of s that s[0..i] also ends in. */
static void fill_fail(const uint8_t *s, size_t n, size_t *fail)
{
    fail[0] = 0;
    for (size_t i = 1, k = 0; i < n; i++) {
        while (k && s[i] != s[k]) k = fail[k - 1];
        if (s[i] == s[k]) k++;
        fail[i] = k;
    }
}

qn_status qn_matcher_open(qn_matcher *m, const char *const *strings, int32_t n, const char *what, qn_err *err)
{
    size_t total = 0;
    *m = (qn_matcher){ 0 };
    for (int32_t i = 0; i < n; i++) {
        if (!strings[i] || !*strings[i]) return qn_fail(err, QN_ERR_ARG, "%s: number %d is empty", what, i + 1);
        total += strlen(strings[i]);
    }
    m->string = qn_new((size_t)n, sizeof *m->string);
    m->bytes = qn_new(total, 1);
    m->fail = qn_new(total, sizeof *m->fail);
    if (!m->string || !m->bytes || !m->fail) {
        qn_matcher_close(m);
        return qn_fail(err, QN_ERR_NOMEM, "no memory for %s", what);
    }
    m->n = n;
    size_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        const size_t len = strlen(strings[i]);
        m->string[i] = (qn_match_string){ .at = at, .len = len };
        memcpy(m->bytes + at, strings[i], len);
        fill_fail(m->bytes + at, len, m->fail + at);
        at += len;
    }
    return QN_OK;
}

void qn_matcher_close(qn_matcher *m)
{
    free(m->string);
    free(m->bytes);
    free(m->fail);
    *m = (qn_matcher){ 0 };
}

void qn_matcher_reset(qn_matcher *m)
{
    for (int32_t i = 0; i < m->n; i++) m->string[i].state = 0;
}

int32_t qn_matcher_feed(qn_matcher *m, uint8_t byte)
{
    int32_t hit = -1;
    for (int32_t i = 0; i < m->n; i++) {
        qn_match_string *s = &m->string[i];
        const uint8_t *bytes = m->bytes + s->at;
        const size_t *fail = m->fail + s->at;
        while (s->state && bytes[s->state] != byte) s->state = fail[s->state - 1];
        if (bytes[s->state] == byte) s->state++;
        if (s->state == s->len) {
            if (hit < 0 || s->len > m->string[hit].len) hit = i;
            s->state = fail[s->len - 1];
        }
    }
    return hit;
}

size_t qn_matcher_open_prefix(const qn_matcher *m)
{
    size_t longest = 0;
    for (int32_t i = 0; i < m->n; i++)
        if (m->string[i].state > longest) longest = m->string[i].state;
    return longest;
}
