/* Prompt lookup: where the last tokens of the text have stood before, what followed them then is the draft. */
#include "src/base/mem.h"
#include "src/run/draft.h"

#include <stdlib.h>
#include <string.h>

enum {
    GRAM = 3,                /* tokens that must be the same                                 */
    PLACES = 32,             /* earlier places that are compared, the latest first           */
    LONGEST = 32,            /* tokens of a match that count                                 */
};

/* Places of all runs of GRAM tokens, as chains by hash: adding a token and finding a place take constant time. What the text had in a place when it
 * was added does not matter: tokens are compared before they are believed. */
typedef struct places {
    int32_t *head;           /* [n_heads] end of the latest run with this hash; 0: none      */
    uint32_t n_heads;        /* a power of two                                               */
    int32_t *before;         /* [cap] of the run that ends at a place, the one before        */
    int32_t n, cap;          /* tokens that are in                                           */
} places;

static uint32_t hash_of(const places *x, const int32_t *last)
{
    uint32_t h = 0;
    for (int32_t i = 0; i < GRAM; i++) h = (h ^ (uint32_t)last[-i]) * 2654435761u;
    return (h ^ h >> 15) & (x->n_heads - 1);
}

static bool stream_open(qn_drafter *d, qn_guess *g)
{
    places *x = qn_new(1, sizeof *x);
    if (!x) return false;
    x->cap = d->engine->n_ctx + 1;
    for (x->n_heads = 1024; x->n_heads < (uint32_t)x->cap; x->n_heads *= 2) continue;
    x->head = qn_new(x->n_heads, sizeof *x->head);
    x->before = qn_new((size_t)x->cap, sizeof *x->before);
    g->own = x;
    return x->head && x->before;
}

static void stream_close(qn_drafter *d, qn_guess *g)
{
    (void)d;
    places *x = g->own;
    if (!x) return;
    free(x->head);
    free(x->before);
    free(x);
    g->own = NULL;
}

/* Add the text's new tokens, but for the last: a text is not found in its own end. */
static void add_tokens(places *x, const int32_t *token, int32_t n)
{
    if (n < x->n) { /* another text: old places go, or the chains would turn in circles */
        memset(x->head, 0, x->n_heads * sizeof *x->head);
        x->n = 0;
    }
    for (; x->n < n - 1 && x->n < x->cap; x->n++) {
        if (x->n < GRAM - 1) continue;
        const uint32_t h = hash_of(x, token + x->n);
        x->before[x->n] = x->head[h];
        x->head[h] = x->n;
    }
}

static int32_t match_length(const int32_t *token, int32_t place, int32_t last)
{
    int32_t n = 0;
    while (n < LONGEST && place - n >= 0 && token[place - n] == token[last - n]) n++;
    return n;
}

/* @return the place behind the longest match of the text's end, the latest of equals; 0: none */
static int32_t find(const places *x, const int32_t *token, int32_t last, int32_t *length)
{
    int32_t best = -1, place = x->head[hash_of(x, token + last)];
    *length = GRAM - 1;
    for (int32_t i = 0; i < PLACES && place > 0 && *length < LONGEST; i++, place = x->before[place]) {
        const int32_t n = match_length(token, place, last);
        if (n <= *length) continue;
        *length = n;
        best = place;
    }
    return best + 1;
}

/* Longer matches are right more often; so are first tokens of a draft. */
static int32_t grade_of(int32_t length, int32_t i)
{
    const int32_t g = length >= LONGEST ? 3 : length >= 10 ? 2 : length >= 5 ? 1 : 0;
    return g + (i > 0 ? QN_GRADES / 2 : 0);
}

static void propose_one(const qn_drafter *d, qn_guess *g)
{
    places *x = g->own;
    const int32_t *token = g->stream->token;
    const int32_t n = g->stream->n;
    add_tokens(x, token, n);
    if (n < GRAM) return;
    int32_t length, from = find(x, token, n - 1, &length);
    if (from == 0) return;
    for (int32_t i = 0; from < n + g->n; i++, from++) { /* a draft may repeat itself */
        const int32_t grade = grade_of(length + i, i);
        if (!qn_guess_goes_on(d, g, grade, 0)) return;
        qn_guess_add(d, g, token[from], grade);
    }
}

static void propose(qn_drafter *d, qn_guess *const *g, int32_t n)
{
    for (int32_t i = 0; i < n; i++) propose_one(d, g[i]);
}

const qn_draft_kind qn_draft_ngram = { { 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7 }, stream_open, stream_close, propose };
