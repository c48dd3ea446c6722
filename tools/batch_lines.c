/* The lines of a file of requests, and the names that their results are found by. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a (Fowler, Noll, Vo 1991): nobody gains from two requests of one hash. */
static uint64_t hash_of(const char *text, size_t len)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    return h;
}

static bool is_blank(const char *text, size_t len)
{
    return strspn(text, " \t\r") >= len;
}

/* The text of "custom_id", for free(); NULL where there is none, or not one that a result could be found by. */
static char *custom_id_of(const char *text, size_t len)
{
    json_t *o = json_loadb(text, len, JSON_ALLOW_NUL, NULL), *id = json_object_get(o, "custom_id");
    const char *s = json_string_value(id);
    char *copy = s && *s && strlen(s) == json_string_length(id) ? strdup(s) : NULL;
    json_decref(o);
    return copy;
}

static bool add_line(batch_lines *l, size_t *cap, int32_t number, const char *text, size_t len, json_t *seen)
{
    if ((size_t)l->n == *cap) {
        *cap = *cap ? 2 * *cap : 256;
        batch_line *bigger = realloc(l->line, *cap * sizeof *bigger);
        if (!bigger) return false;
        l->line = bigger;
    }
    batch_line *line = &l->line[l->n++];
    *line = (batch_line){ .number = number, .text = text, .len = len, .hash = hash_of(text, len), .custom_id = custom_id_of(text, len) };
    if (!line->custom_id) return true;
    line->same_as = (int32_t)json_integer_value(json_object_get(seen, line->custom_id));
    if (!line->same_as) return json_object_set_new(seen, line->custom_id, json_integer(number)) == 0;
    free(line->custom_id);
    line->custom_id = NULL;
    return true;
}

int batch_lines_read(batch_lines *l, const char *path)
{
    size_t n, cap = 0;
    l->bytes = cli_read_all(path, &n);
    if (!l->bytes) return CLI_FAULT;
    json_t *seen = json_object();
    bool kept = seen != NULL;
    int32_t number = 1;
    for (char *p = l->bytes, *end = p + n; p < end && kept; number++) {
        char *stop = memchr(p, '\n', (size_t)(end - p));
        if (!stop) stop = end; /* a NUL is there */
        *stop = 0;
        if (!is_blank(p, (size_t)(stop - p))) kept = add_line(l, &cap, number, p, (size_t)(stop - p), seen);
        p = stop + 1;
    }
    json_decref(seen);
    return kept ? -1 : cli_fault("no memory for the lines of %s", path);
}

void batch_lines_free(batch_lines *l)
{
    for (int32_t i = 0; i < l->n; i++) free(l->line[i].custom_id);
    free(l->line);
    free(l->bytes);
    *l = (batch_lines){ 0 };
}
