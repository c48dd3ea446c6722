#include "quant/gptq.h"

#include <math.h>
#include <string.h>

enum { R = QN_GPTQ_ROWS };

/* Pieces of the caller's memory. */
typedef struct work {
    const qn_gptq_matrix *m;
    const qn_grid *grid;
    float (*w)[R];          /* [n_cols] weights, as moved by the errors so far; in the order of the columns */
    float (*error)[R];      /* [n_cols] what rounding has taken from a column; in the order of rounding     */
    qn_fields *fields;      /* [blocks that are open][R]                                                    */
    float *row, *importance; /* [R][block] of the block whose scales are searched                            */
    int64_t n_open;         /* blocks that are open at once: 1, or all                                      */
    int64_t n_rows;
    uint8_t *out;
    size_t row_bytes;
} work;

static int64_t n_open(const qn_gptq_matrix *m)
{
    return m->order ? m->n_cols / m->fmt->block : 1;
}

static size_t field_floats(const qn_gptq_matrix *m)
{
    return ((size_t)n_open(m) * R * sizeof(qn_fields) + sizeof(float) - 1) / sizeof(float);
}

size_t qn_gptq_floats(const qn_gptq_matrix *m)
{
    return 2 * R * ((size_t)m->n_cols + (size_t)m->fmt->block) + field_floats(m);
}

/* ---- what codes mean ---- */

/* Value of code c: step * level(c) + base. */
typedef struct ladder {
    float step, base;
} ladder;

static ladder ladder_of(const qn_fmt *fmt, const qn_fields *f, int64_t i)
{
    const qn_grid *g = &fmt->grid;
    const int64_t sub = i / (fmt->block / g->n_sub);
    const float scale = g->n_sub > 1 ? f->d * (float)f->scale[sub] : f->d;
    const float min = g->kind != QN_GRID_AFFINE ? 0 : g->n_sub > 1 ? f->m * (float)f->min[sub] : f->m;
    return (ladder){ scale, -min };
}

static float level(const qn_grid *g, int code)
{
    return (float)(g->levels ? g->levels[code] : code - g->zero);
}

static int nearest(const qn_grid *g, ladder l, float x)
{
    const float y = l.step != 0 ? (x - l.base) / l.step : 0;
    if (!g->levels) {
        const float c = nearbyintf(y) + (float)g->zero, most = (float)(g->n_codes - 1);
        return (int)(c < 0 ? 0 : c > most ? most : c);
    }
    int code = 0;
    while (code + 1 < g->n_codes && 2 * y > (float)(g->levels[code] + g->levels[code + 1])) code++;
    return code;
}

/* ---- columns ---- */

/* Take from column p of `w` what the columns [begin, end) before it in the order have left. */
static void carry(const work *k, int64_t p, int64_t begin, int64_t end, float w[R])
{
    const float *of = k->m->carry + p * k->m->n_cols;
    float sum[R] = { 0 };
    for (int64_t o = begin; o < end; o++)
        for (int r = 0; r < R; r++) sum[r] += of[o] * k->error[o][r];
    for (int r = 0; r < R; r++) w[r] -= sum[r];
}

/* Search the scales of a block with the weights as they are now. */
static void open_block(const work *k, int64_t i_block, qn_fields *fields)
{
    const int64_t n = k->m->fmt->block, at = i_block * n;
    for (int64_t r = 0; r < k->n_rows; r++) {
        memcpy(k->importance + r * n, k->m->importance + at, (size_t)n * sizeof *k->importance);
        for (int64_t i = 0; i < n; i++) k->row[r * n + i] = k->w[at + i][r];
    }
    qn_search_baseline(k->m->fmt, k->row, k->importance, k->n_rows, fields);
}

static void close_block(const work *k, int64_t i_block, const qn_fields *fields)
{
    const qn_fmt *fmt = k->m->fmt;
    for (int64_t r = 0; r < k->n_rows; r++) fmt->pack(&fields[r], k->out + (size_t)r * k->row_bytes + (size_t)(i_block * fmt->bytes));
}

static void round_column(const work *k, int64_t column, int64_t p, qn_fields *fields)
{
    const int64_t i = column % k->m->fmt->block;
    for (int64_t r = 0; r < k->n_rows; r++) {
        const float w = k->w[column][r];
        const ladder l = ladder_of(k->m->fmt, &fields[r], i);
        const int code = nearest(k->grid, l, w);
        fields[r].code[i] = (uint8_t)code;
        k->error[p][r] = w - (l.step * level(k->grid, code) + l.base);
    }
}

/* Columns as they lie: a block's scales are searched when its turn has come. */
static void in_place(const work *k)
{
    const int64_t n = k->m->fmt->block;
    for (int64_t b = 0; b < k->m->n_cols; b += n) {
        for (int64_t p = b; p < b + n; p++) carry(k, p, 0, b, k->w[p]);
        open_block(k, b / n, k->fields);
        for (int64_t p = b; p < b + n; p++) {
            carry(k, p, b, p, k->w[p]);
            round_column(k, p, p, k->fields);
        }
        close_block(k, b / n, k->fields);
    }
}

/* Columns in another order: all scales first. */
static void in_order(const work *k)
{
    const int64_t n = k->m->fmt->block;
    for (int64_t b = 0; b < k->n_open; b++) open_block(k, b, k->fields + b * R);
    for (int64_t p = 0; p < k->m->n_cols; p++) {
        const int64_t column = k->m->order[p];
        carry(k, p, 0, p, k->w[column]);
        round_column(k, column, p, k->fields + column / n * R);
    }
    for (int64_t b = 0; b < k->n_open; b++) close_block(k, b, k->fields + b * R);
}

void qn_gptq_rows(const qn_gptq_matrix *m, const float *w, int64_t n_rows, float *memory, uint8_t *out, size_t row_bytes)
{
    const size_t n = (size_t)m->n_cols, n_tile = R * (size_t)m->fmt->block;
    float *tile = memory + 2 * R * n;
    const work k = {
        .m = m, .grid = &m->fmt->grid, .w = (float(*)[R])(void *)memory, .error = (float(*)[R])(void *)(memory + R * n),
        .row = tile, .importance = tile + n_tile, .fields = (qn_fields *)(void *)(tile + 2 * n_tile), .n_open = n_open(m),
        .n_rows = n_rows, .out = out, .row_bytes = row_bytes,
    };
    memset(memory, 0, 2 * R * n * sizeof *memory); /* rows that are not there stay zero */
    for (int64_t r = 0; r < n_rows; r++)
        for (size_t i = 0; i < n; i++) k.w[i][r] = w[(size_t)r * n + i];
    if (m->order) in_order(&k);
    else in_place(&k);
}
