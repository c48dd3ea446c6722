/* What `quern embed` writes: lines of numbers, JSON as OpenAI's API has it, or float32. Whether it all got there, closing the file tells. */
#include "cli_floats.h"
#include "cli_prompt.h"
#include "embed.h"

#include <math.h>
#include <stdlib.h>

const char *embed_pooling_name(qn_pooling p)
{
    static const char *const names[] = {
        [QN_POOLING_NONE] = "none", [QN_POOLING_MEAN] = "mean", [QN_POOLING_LAST] = "last", [QN_POOLING_FIRST] = "cls", [QN_POOLING_RANK] = "rank",
        [QN_POOLING_MODEL] = "model",
    };
    return names[p];
}

/* Nine digits give every float32 back. */
static void write_row(FILE *f, const float *x, int32_t n, const char *between)
{
    for (int32_t i = 0; i < n; i++) fprintf(f, "%s%.9g", i ? between : "", (double)x[i]);
}

static void write_array(FILE *f, const float *x, int32_t n)
{
    fputc('[', f);
    write_row(f, x, n, ", ");
    fputc(']', f);
}

/* [x] or, of several rows, [[x], [y]] */
static void write_rows(FILE *f, const float *x, int32_t n_rows, int32_t width, bool nested)
{
    if (nested) fputc('[', f);
    for (int32_t i = 0; i < n_rows; i++) {
        if (i) fputs(", ", f);
        write_array(f, x + (size_t)i * (size_t)width, width);
    }
    if (nested) fputc(']', f);
}

void embed_out_begin(embed_out *o)
{
    if (o->form != EMBED_JSON) return;
    json_t *name = cli_json_text(o->model, strlen(o->model));
    char *text = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
    fprintf(o->file.f, "{\"object\": \"list\", \"model\": %s, \"pooling\": \"%s\", ", text ? text : "\"\"", embed_pooling_name(o->pooling));
    if (o->pooling != QN_POOLING_RANK) fprintf(o->file.f, "\"normalized\": %s, ", o->normalized ? "true" : "false");
    free(text);
    json_decref(name);
}

static void write_json(embed_out *o, const float *x, int32_t n_rows, size_t n_tokens)
{
    FILE *f = o->file.f;
    const bool is_rank = o->pooling == QN_POOLING_RANK;
    fprintf(f, "%s\n{", o->n_written ? "," : is_rank ? "\"results\": [" : "\"data\": [");
    if (!is_rank) fputs("\"object\": \"embedding\", ", f);
    fprintf(f, "\"index\": %d, \"tokens\": %zu, ", o->n_written, n_tokens);
    if (is_rank && o->width == 1) {
        fprintf(f, "\"relevance_score\": %.9g", (double)x[0]);
    } else {
        fprintf(f, "\"%s\": ", is_rank ? "scores" : "embedding");
        write_rows(f, x, n_rows, o->width, o->pooling == QN_POOLING_NONE);
    }
    fputc('}', f);
}

void embed_out_result(embed_out *o, float *x, int32_t n_rows, size_t n_tokens)
{
    if (o->form == EMBED_JSON) write_json(o, x, n_rows, n_tokens);
    if (o->form == EMBED_RAW) (void)cli_write_floats(o->file.f, x, (size_t)n_rows * (size_t)o->width);
    for (int32_t i = 0; i < n_rows && o->form == EMBED_TEXT; i++) {
        write_row(o->file.f, x + (size_t)i * (size_t)o->width, o->width, " ");
        fputc('\n', o->file.f);
    }
    o->n_written++;
    o->n_tokens += n_tokens;
}

static double cosine(const float *a, const float *b, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum > 1 ? 1 : sum < -1 ? -1 : sum;
}

void embed_out_similarity(embed_out *o, const float *x, int32_t n)
{
    FILE *f = o->file.f;
    const size_t width = (size_t)o->width;
    const bool is_json = o->form == EMBED_JSON;
    if (is_json) fputs("\"similarity\": [", f);
    for (int32_t i = 0; i < n; i++) {
        if (n == 2 && !is_json && i) break;
        if (is_json) fputs(i ? ",\n[" : "\n[", f);
        for (int32_t k = n == 2 && !is_json ? 1 : 0; k < n; k++) {
            const double c = i == k ? 1 : cosine(x + (size_t)i * width, x + (size_t)k * width, o->width);
            fprintf(f, is_json ? "%s%.9g" : "%s%.6f", is_json ? (k ? ", " : "") : k > (n == 2) ? " " : "", c);
        }
        fputs(is_json ? "]" : "\n", f);
    }
    o->n_written = n;
}

void embed_out_end(embed_out *o)
{
    if (o->form != EMBED_JSON) return;
    fprintf(o->file.f, "\n], \"usage\": {\"prompt_tokens\": %llu, \"total_tokens\": %llu}}\n", (unsigned long long)o->n_tokens,
            (unsigned long long)o->n_tokens);
}
