#include "quantize.h"

#include <inttypes.h>
#include <string.h>

enum { MIN_NAME = 20, MAX_NAME = 60, MAX_KINDS = 64 };

/* Tensors that got something else than was meant for them, by format and row. */
typedef struct swap {
    const char *wanted, *got;
    int64_t row;
    int32_t n;
} swap;

static double bits(uint64_t n_bytes, uint64_t n_weights)
{
    return n_weights ? 8 * (double)n_bytes / (double)n_weights : 0;
}

static uint64_t n_weights(const qn_tensor_info *t)
{
    return (uint64_t)t->dims[0] * (uint64_t)t->dims[1] * (uint64_t)t->dims[2] * (uint64_t)t->dims[3];
}

static bool changes(const qn_quantize_tensor *t)
{
    return strcmp(t->source.type_name, t->type_name) != 0;
}

/* Names come from the file: no byte that a terminal would obey. */
static void print_name(qn_str name, int width)
{
    char text[MAX_NAME + 1];
    size_t n = name.len < MAX_NAME ? name.len : MAX_NAME;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)name.ptr[i];
        text[i] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
    }
    text[n] = 0;
    printf("%-*s", width, text);
}

static int name_width(const qn_quantize *q)
{
    qn_quantize_tensor t;
    size_t width = MIN_NAME;
    for (int64_t i = 0; qn_quantize_tensor_at(q, i, &t); i++)
        if (changes(&t) && t.source.name.len > width) width = t.source.name.len;
    return width < MAX_NAME ? (int)width : MAX_NAME;
}

static void print_row(const qn_quantize_tensor *t, int width, bool done)
{
    const qn_tensor_info *s = &t->source;
    char shape[64];
    int n = snprintf(shape, sizeof shape, "%" PRId64, s->dims[0]);
    for (int32_t d = 1; d < s->n_dims; d++) n += snprintf(shape + n, sizeof shape - (size_t)n, "x%" PRId64, s->dims[d]);
    print_name(s->name, width);
    printf("  %-14s %-7s %-7s %6.3f", shape, s->type_name, t->type_name, bits(t->n_bytes, n_weights(s)));
    if (done) printf("  %.5f", t->error);
    if (strcmp(t->wanted, t->type_name) != 0) printf("  instead of %s", t->wanted);
    putchar('\n');
}

static void print_table(const quantize_report *r)
{
    qn_quantize_tensor t;
    const int width = name_width(r->quantize);
    const bool done = r->seconds > 0;
    printf("%-*s  %-14s %-7s %-7s %6s%s\n", width, "tensor", "shape", "from", "to", "bits", done ? "  error" : "");
    for (int64_t i = 0; qn_quantize_tensor_at(r->quantize, i, &t); i++)
        if (changes(&t)) print_row(&t, width, done);
}

static void print_swaps(const quantize_report *r)
{
    qn_quantize_tensor t;
    swap list[MAX_KINDS];
    int32_t n = 0;
    for (int64_t i = 0; qn_quantize_tensor_at(r->quantize, i, &t); i++) {
        int32_t k = 0;
        if (!strcmp(t.wanted, t.type_name)) continue;
        while (k < n && (strcmp(list[k].wanted, t.wanted) != 0 || strcmp(list[k].got, t.type_name) != 0 || list[k].row != t.source.dims[0])) k++;
        if (k == MAX_KINDS) continue; /* each is in the table above */
        if (k == n) list[n++] = (swap){ t.wanted, t.type_name, t.source.dims[0], 0 };
        list[k].n++;
    }
    for (int32_t k = 0; k < n; k++)
        printf("substituted: %d tensor%s with rows of %" PRId64 ", no multiple of %s's block: %s\n", list[k].n, list[k].n > 1 ? "s" : "", list[k].row,
               list[k].wanted, list[k].got);
}

/* Kept tensors, and those that importance data is missing for. */
static void print_rest(const quantize_report *r, const qn_quantize_totals *all)
{
    qn_quantize_tensor t;
    const int64_t n_kept = qn_file_n_tensors(qn_quantize_file(r->quantize)) - all->n_quantized;
    if (n_kept) printf("kept: %" PRId64 " tensors as they are\n", n_kept);
    for (int64_t i = 0; all->n_without_importance && qn_quantize_tensor_at(r->quantize, i, &t); i++) {
        if (!changes(&t) || t.has_importance) continue;
        printf("no importance data: ");
        print_name(t.source.name, 0);
        putchar('\n');
    }
}

void quantize_text(const quantize_report *r)
{
    qn_quantize_totals all;
    qn_quantize_get_totals(r->quantize, &all);
    print_table(r);
    print_swaps(r);
    print_rest(r, &all);
    printf("%s: %.1f MB of tensors, %.3f bits per weight; %s: %.1f MB, %.3f bits per weight\n", "source", (double)all.source_bytes / 1e6,
           bits(all.source_bytes, all.n_weights), r->type, (double)all.tensor_bytes / 1e6, bits(all.tensor_bytes, all.n_weights));
    printf("file: %" PRIu64 " bytes%s", all.file_bytes, r->out ? "" : ", if it were written");
    if (all.n_files > 1) printf(" in %d parts", all.n_files);
    if (r->seconds > 0) printf("; %.1f s, %.0f MB/s of the source", r->seconds, (double)all.source_bytes / 1e6 / r->seconds);
    putchar('\n');
}
