#include "quant/gptq.h"

#include "src/base/half.h"

#include <math.h>
#include <string.h>

enum { R = QN_GPTQ_ROWS };

/* Pieces of the caller's memory. */
typedef struct work {
    const qn_gptq_matrix *m;
    const qn_grid *grid;
    float (*w)[R];          /* [n_cols] weights, as moved by the errors so far; in the order of the columns */
    float (*error)[R];      /* [n_cols] what rounding has taken from a column; in the order of rounding     */
    qn_fields *fields;      /* [blocks][R]                                                                  */
    float *row, *importance; /* [R][block] of the block whose scales are searched                            */
    int64_t n_rows;
    uint8_t *out;
    size_t row_bytes;
} work;

static size_t field_floats(const qn_gptq_matrix *m)
{
    const size_t n_blocks = (size_t)(m->n_cols / m->fmt->block);
    return (n_blocks * R * sizeof(qn_fields) + sizeof(float) - 1) / sizeof(float);
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
        return c > 0 ? (int)(c < most ? c : most) : 0; /* NaN too: the pipeline refuses it afterwards, by name */
    }
    int code = 0;
    while (code + 1 < g->n_codes && 2 * y > (float)(g->levels[code] + g->levels[code + 1])) code++;
    return code;
}

/* ---- scales under a scale ---- */

/* With d and m fixed: error of a sub-block coded with these two numbers; NaN-free, weights are finite. */
static float sub_error(const qn_grid *g, const float *x, const float *importance, int64_t n, ladder l)
{
    float e = 0;
    for (int64_t i = 0; i < n; i++) {
        const float r = x[i] - (l.step * level(g, nearest(g, l, x[i])) + l.base);
        e += importance[i] * r * r;
    }
    return e;
}

/* The minimum that suits a scale: m * min = weighted mean of what the codes leave. */
static float min_for(const qn_grid *g, const float *x, const float *importance, int64_t n, ladder l, float m)
{
    float sum = 0, sum_w = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += importance[i] * (l.step * level(g, nearest(g, l, x[i])) - x[i]);
        sum_w += importance[i];
    }
    const float min = m != 0 && sum_w > 0 ? nearbyintf(sum / sum_w / m) : 0;
    return min < 0 ? 0 : min > (float)g->scale_hi ? (float)g->scale_hi : min;
}

/* Scale and minimum of a sub-block once more, for the weights as they are now: errors of the columns before it have moved them since the block
 * was opened. */
static void refit_sub(const qn_grid *g, qn_fields *f, int64_t sub, const float *x, const float *importance, int64_t n)
{
    const float old_scale = f->scale[sub], reach = fabsf(old_scale) / 4 + 2;
    float best = INFINITY, min = f->min[sub];
    const bool affine = g->kind == QN_GRID_AFFINE;
    for (float s = old_scale - ceilf(reach); s <= old_scale + reach; s++) {
        if (s < (float)g->scale_lo || s > (float)g->scale_hi) continue;
        float at = min;
        for (int round = 0; round < (affine ? 2 : 1); round++) {
            const ladder l = { f->d * s, affine ? -f->m * at : 0 };
            const float e = sub_error(g, x, importance, n, l);
            if (e < best) {
                best = e;
                f->scale[sub] = (int8_t)s;
                f->min[sub] = (int8_t)at;
            }
            if (affine) at = min_for(g, x, importance, n, l, f->m);
        }
    }
}

/* Errors that are made good widen the weights of the sub-blocks behind: room for their scales, at a twelfth of the scales' precision. */
static void make_room(const qn_grid *g, qn_fields *f)
{
    const float room = 1.08f, d = f->d, m = f->m;
    f->d = qn_f32_from_f16(qn_f16_from_f32(d * room));
    f->m = qn_f32_from_f16(qn_f16_from_f32(m * room));
    for (int k = 0; k < g->n_sub; k++) {
        if (f->d != 0) f->scale[k] = (int8_t)nearbyintf((float)f->scale[k] * d / f->d);
        if (f->m != 0) f->min[k] = (int8_t)nearbyintf((float)f->min[k] * m / f->m);
    }
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

static void refit_subs(const work *k, qn_fields *fields, int64_t begin, int64_t sub, int64_t n)
{
    for (int64_t r = 0; r < k->n_rows; r++) {
        for (int64_t i = 0; i < n; i++) k->row[i] = k->w[begin + i][r];
        refit_sub(k->grid, &fields[r], sub, k->row, k->m->importance + begin, n);
    }
}

/* Columns as they lie: a block's scales are searched when its turn has come, those under a scale of the whole block again when theirs has. */
static void in_place(const work *k)
{
    const int64_t n = k->m->fmt->block, n_sub = k->grid->n_sub, width = n / n_sub;
    for (int64_t b = 0; b < k->m->n_cols; b += n) {
        qn_fields *fields = k->fields + b / n * R;
        for (int64_t p = b; p < b + n; p++) carry(k, p, 0, b, k->w[p]);
        open_block(k, b / n, fields);
        for (int64_t r = 0; r < k->n_rows && n_sub > 1; r++) make_room(k->grid, &fields[r]);
        for (int64_t s = b; s < b + n; s += width) {
            for (int64_t p = s; p < s + width; p++) carry(k, p, b, s, k->w[p]);
            if (n_sub > 1) refit_subs(k, fields, s, (s - b) / width, width);
            for (int64_t p = s; p < s + width; p++) {
                carry(k, p, s, p, k->w[p]);
                round_column(k, p, p, fields);
            }
        }
    }
}

/* Columns in another order: all scales first. */
static void in_order(const work *k)
{
    const int64_t n = k->m->fmt->block;
    for (int64_t b = 0; b < k->m->n_cols; b += n) open_block(k, b / n, k->fields + b / n * R);
    for (int64_t p = 0; p < k->m->n_cols; p++) {
        const int64_t column = k->m->order[p];
        carry(k, p, 0, p, k->w[column]);
        round_column(k, column, p, k->fields + column / n * R);
    }
}

/* ---- once more ---- */

/* slope = H (w - q), from the weights as they were. It takes the place of the moved weights, the differences that of the errors. */
static void find_slope(const work *k, const float *w)
{
    const int64_t n = k->m->n_cols, block = k->m->fmt->block;
    for (int64_t c = 0; c < n; c++)
        for (int64_t r = 0; r < k->n_rows; r++) {
            const qn_fields *f = &k->fields[c / block * R + r];
            const ladder l = ladder_of(k->m->fmt, f, c % block);
            k->error[c][r] = w[r * n + c] - (l.step * level(k->grid, f->code[c % block]) + l.base);
        }
    for (int64_t c = 0; c < n; c++) {
        float sum[R] = { 0 };
        for (int64_t o = 0; o < n; o++)
            for (int r = 0; r < R; r++) sum[r] += k->m->gram[c * n + o] * k->error[o][r];
        memcpy(k->w[c], sum, sizeof sum);
    }
}

/* Column c goes to the code that is best with all others as they are. @return was there a better one? */
static bool improve_column(const work *k, int64_t c, float change[R])
{
    const int64_t block = k->m->fmt->block, i = c % block;
    const float curve = k->m->gram[c * k->m->n_cols + c];
    bool any = false;
    for (int64_t r = 0; r < k->n_rows; r++) {
        qn_fields *f = &k->fields[c / block * R + r];
        const ladder l = ladder_of(k->m->fmt, f, i);
        const float now = l.step * level(k->grid, f->code[i]) + l.base;
        const int code = nearest(k->grid, l, now + k->w[c][r] / curve);
        change[r] = l.step * level(k->grid, code) + l.base - now;
        any |= code != f->code[i];
        f->code[i] = (uint8_t)code;
    }
    return any;
}

/* Codes were chosen while those behind them were not known. Now that they are, each is looked at again; the error never rises. */
static void improve(const work *k, const float *w)
{
    enum { SWEEPS = 2 };
    const int64_t n = k->m->n_cols;
    find_slope(k, w);
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int64_t c = 0; c < n; c++) {
            float change[R] = { 0 };
            if (!improve_column(k, c, change)) continue;
            for (int64_t o = 0; o < n; o++)
                for (int r = 0; r < R; r++) k->w[o][r] -= k->m->gram[c * n + o] * change[r];
        }
}

void qn_gptq_rows(const qn_gptq_matrix *m, const float *w, int64_t n_rows, float *memory, uint8_t *out, size_t row_bytes)
{
    const size_t n = (size_t)m->n_cols, n_tile = R * (size_t)m->fmt->block;
    float *tile = memory + 2 * R * n;
    const work k = {
        .m = m, .grid = &m->fmt->grid, .w = (float(*)[R])(void *)memory, .error = (float(*)[R])(void *)(memory + R * n),
        .row = tile, .importance = tile + n_tile, .fields = (qn_fields *)(void *)(tile + 2 * n_tile),
        .n_rows = n_rows, .out = out, .row_bytes = row_bytes,
    };
    memset(memory, 0, 2 * R * n * sizeof *memory); /* rows that are not there stay zero */
    for (int64_t r = 0; r < n_rows; r++)
        for (size_t i = 0; i < n; i++) k.w[i][r] = w[(size_t)r * n + i];
    if (m->order) in_order(&k);
    else in_place(&k);
    if (m->gram) improve(&k, w);
    for (int64_t b = 0; b < m->n_cols / m->fmt->block; b++) close_block(&k, b, k.fields + b * R);
}
