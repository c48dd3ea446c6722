/* The texts of `quern embed`: from arguments or lines, and into tokens. */
#include "embed.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static embed_text *add(embed_texts *t, int32_t number)
{
    if ((size_t)t->n == t->cap) {
        const size_t cap = t->cap ? 2 * t->cap : 64;
        embed_text *bigger = cap < INT32_MAX ? realloc(t->text, cap * sizeof *bigger) : NULL;
        if (!bigger) return NULL;
        t->text = bigger;
        t->cap = cap;
    }
    t->text[t->n] = (embed_text){ .number = number };
    return &t->text[t->n++];
}

static int no_memory(void)
{
    return cli_fault("no memory for the texts");
}

int embed_texts_of_arguments(embed_texts *t, const cli_rest *argument)
{
    t->unit = "text";
    for (int32_t i = 0; i < argument->n; i++) {
        embed_text *x = add(t, i + 1);
        if (!x) return no_memory();
        x->text = argument->item[i];
        x->len = strlen(x->text);
    }
    return -1;
}

/* ---- lines of JSON ---- */

static bool take_ids(embed_text *x, const json_t *array)
{
    size_t i;
    json_t *id;
    x->has_ids = true;
    if (!cli_ids_reserve(&x->ids, json_array_size(array) + 1)) return false;
    json_array_foreach(array, i, id) {
        const json_int_t v = json_is_integer(id) ? json_integer_value(id) : -1;
        if (v < 0 || v > INT32_MAX) return false;
        x->ids.id[x->ids.n++] = (int32_t)v;
    }
    return true;
}

/* A copy of a string's bytes, which may hold NUL. */
static const char *take_string(const json_t *s, size_t *len)
{
    *len = json_string_length(s);
    char *copy = malloc(*len + 1);
    if (copy) memcpy(copy, json_string_value(s), *len + 1);
    return copy;
}

/* "text", [1, 2, 3], {"text": ...}, {"input": ...} as OpenAI has it, {"query": ..., "text": ...}. */
static bool take_json(embed_text *x, const json_t *j)
{
    const json_t *text = j, *query = json_object_get(j, "query");
    if (json_is_object(j)) text = json_object_get(j, "text") ? json_object_get(j, "text") : json_object_get(j, "input");
    if (json_is_object(j) && !text) text = json_object_get(j, "document");
    if (query && !json_is_string(query)) return false;
    if (json_is_array(text)) return !query && take_ids(x, text);
    if (!json_is_string(text)) return false;
    x->is_owned = true;
    x->text = take_string(text, &x->len);
    if (query) x->query = take_string(query, &x->query_len);
    return x->text && (x->query || !query);
}

static int add_json(embed_texts *t, const char *line, size_t len, int32_t number)
{
    json_error_t e;
    if (strspn(line, " \t\r\n") >= len) return -1; /* an empty line is nobody's text */
    json_t *j = json_loadb(line, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);
    if (!j) return cli_fault("line %d is not JSON: %s", number, e.text);
    embed_text *x = add(t, number);
    const bool ok = x && take_json(x, j);
    json_decref(j);
    if (!x) return no_memory();
    return ok ? -1 : cli_fault("line %d is neither a text, nor token ids, nor an object with \"text\" (and \"query\")", number);
}

/* ---- files ---- */

static int add_line(embed_texts *t, const char *line, size_t len, int32_t number, bool json)
{
    if (json) return add_json(t, line, len, number);
    embed_text *x = add(t, number);
    if (!x) return no_memory();
    x->text = line;
    x->len = len && line[len - 1] == '\r' ? len - 1 : len;
    return -1;
}

int embed_texts_of_file(embed_texts *t, const char *path, bool json)
{
    size_t n;
    int code = -1;
    t->unit = "line";
    t->bytes = cli_read_all(path, &n);
    if (!t->bytes) return CLI_FAULT;
    const char *end = t->bytes + n, *stop;
    int32_t number = 1;
    for (const char *p = t->bytes; p < end && code < 0; p = stop + 1, number++) {
        stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop) stop = end;
        code = add_line(t, p, (size_t)(stop - p), number, json);
    }
    return code;
}

int embed_texts_add_prefix(embed_texts *t, const char *prefix)
{
    const size_t n = strlen(prefix);
    for (int32_t i = 0; i < t->n; i++) {
        embed_text *x = &t->text[i];
        if (x->has_ids) return cli_fault("%s %d is of token ids, which take no prefix", t->unit, x->number);
        if (x->len == 0) continue; /* refused later */
        char *text = malloc(n + x->len + 1);
        if (!text) return no_memory();
        memcpy(text, prefix, n);
        memcpy(text + n, x->text, x->len);
        text[n + x->len] = 0;
        if (x->is_owned) free((void *)(uintptr_t)x->text);
        x->text = text;
        x->len += n;
        x->is_owned = true;
    }
    return -1;
}

int embed_texts_add_query(embed_texts *t, const char *query)
{
    for (int32_t i = 0; i < t->n; i++) {
        embed_text *x = &t->text[i];
        if (x->has_ids) return cli_fault("%s %d is of token ids, which take no query", t->unit, x->number);
        if (x->query) continue;
        if (x->is_owned && !(x->query = strdup(query))) return no_memory();
        x->query = x->is_owned ? x->query : query;
        x->query_len = strlen(query);
    }
    return -1;
}

/* ---- tokens ---- */

static qn_status tokenize_pair(embed_text *x, const qn_model *model, qn_err *err)
{
    size_t want = x->len + x->query_len + 16, n_first = 0;
    qn_status status = QN_ERR_LIMIT;
    for (int round = 0; round < 2 && status == QN_ERR_LIMIT; round++, want = x->ids.n) {
        if (!cli_ids_reserve(&x->ids, want)) {
            snprintf(err->text, sizeof err->text, "no memory for %zu tokens", want);
            return err->status = QN_ERR_NOMEM;
        }
        status = qn_tokenize_pair(model, (qn_str){ x->query, x->query_len }, (qn_str){ x->text, x->len }, x->ids.id, x->ids.cap, &x->ids.n, &n_first, err);
    }
    x->n_first = (int32_t)n_first;
    return status;
}

int embed_texts_tokenize(embed_texts *t, const qn_model *model, bool parse)
{
    for (int32_t i = 0; i < t->n; i++) {
        embed_text *x = &t->text[i];
        qn_err err = { 0 };
        qn_status status = QN_OK;
        if (!x->has_ids && (x->len == 0 || (x->query && !x->query_len))) return cli_fault("%s %d is empty", t->unit, x->number);
        if (x->query) status = tokenize_pair(x, model, &err);
        else if (!x->has_ids) status = cli_tokenize(model, (qn_str){ x->text, x->len }, QN_TOK_SPECIAL | (parse ? QN_TOK_PARSE : 0), NULL, 0, &x->ids, &err);
        if (status != QN_OK) return cli_fault("%s %d: %s", t->unit, x->number, err.text);
        if (x->ids.n == 0) return cli_fault("%s %d has no tokens", t->unit, x->number);
        if (x->ids.n > INT32_MAX) return cli_fault("%s %d has %zu tokens", t->unit, x->number, x->ids.n);
    }
    return -1;
}

/* The first tokens stay, and the control tokens that close the text: what a model was trained to find there. */
static void cut(embed_text *x, const qn_model *model, size_t n)
{
    size_t n_end = 0;
    while (n_end + 1 < n && n_end < 2 && qn_token_is_control(model, x->ids.id[x->ids.n - 1 - n_end])) n_end++;
    memmove(x->ids.id + n - n_end, x->ids.id + x->ids.n - n_end, n_end * sizeof *x->ids.id);
    x->ids.n = n;
    if ((size_t)x->n_first > n) x->n_first = (int32_t)n;
}

int embed_texts_fit(embed_texts *t, const qn_model *model, int32_t n_ctx, bool truncate)
{
    for (int32_t i = 0; i < t->n; i++) {
        embed_text *x = &t->text[i];
        if (x->ids.n <= (size_t)n_ctx) continue;
        if (!truncate)
            return cli_fault("%s %d has %zu tokens and the context holds %d; --truncate cuts what is too long", t->unit, x->number, x->ids.n, n_ctx);
        cut(x, model, (size_t)n_ctx);
    }
    return -1;
}

void embed_texts_free(embed_texts *t)
{
    for (int32_t i = 0; i < t->n; i++) {
        embed_text *x = &t->text[i];
        cli_ids_free(&x->ids);
        if (!x->is_owned) continue;
        free((void *)(uintptr_t)x->text);
        free((void *)(uintptr_t)x->query);
    }
    free(t->text);
    free(t->bytes);
    *t = (embed_texts){ 0 };
}
