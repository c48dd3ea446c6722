/* The search for the numbers of blocks that are nearest to given weights in the weighted sum of squares. One source for every instruction
 * set (quant/lanes.h): a lane is a block, sums run over its weights in their order, so the bytes that come out are the same everywhere.
 *
 *  1. Groups that share a scale (and a minimum) are searched alone. A candidate puts the ends of the codes on the extreme weights, or
 *     somewhat inside or outside, with either sign where levels are not symmetric. Its codes give scale and minimum by least squares and with
 *     them how far the error falls. The best candidate goes on by turns, codes from scale and scale from codes.
 *  2. Scales of sub-blocks are rounded to multiples of one d (and minimums of one m). For each the two neighbours are tried too, with
 *     the minimum that suits them and codes chosen anew; then d and m are fitted again by least squares over the whole block, twice.
 *  3. Codes are those nearest under the scales as the file has them, after rounding to binary16.
 */
#ifndef QN_QUANT_SEARCH_H
#define QN_QUANT_SEARCH_H

#include "quant/lanes.h"
#include "quant/quant.h"
#include "src/base/half.h"

/* A number for each lane's block: weights, their importance, and what the search has found. */
typedef struct qn_tile {
    qn_vf x[QN_MAX_BLOCK], w[QN_MAX_BLOCK];
    qn_vf d, m, scale[QN_MAX_SUB], min[QN_MAX_SUB];
    qn_vf code[QN_MAX_BLOCK];
} qn_tile;

/* ---- levels ---- */

/* Codes of even levels are q + zero, q in lo .. hi; those of a list are counted by the midpoints that lie below. */
typedef struct qn_levels {
    float lo, hi;            /* lowest and highest level                                */
    int n;                   /* of the list, 0: even                                    */
    const int8_t *list;
} qn_levels;

QN_LANES_INLINE qn_levels qn_levels_of(const qn_grid *g)
{
    if (g->levels) return (qn_levels){ g->levels[0], g->levels[g->n_codes - 1], g->n_codes, g->levels };
    return (qn_levels){ -(float)g->zero, (float)(g->n_codes - 1 - g->zero), 0, NULL };
}

QN_LANES_INLINE qn_vf qn_level_nearest(const qn_levels *lv, qn_vf y)
{
    if (!lv->n) return qn_v_round(qn_v_clamp(y, lv->lo, lv->hi));
    qn_vf level = qn_v_set(lv->lo);
    for (int i = 1; i < lv->n; i++)
        level = qn_v_pick(qn_v_gt(y, qn_v_set(0.5f * (float)(lv->list[i - 1] + lv->list[i]))), qn_v_set(lv->list[i]), level);
    return level;
}

QN_LANES_INLINE qn_vf qn_code_nearest(const qn_levels *lv, qn_vf y)
{
    if (!lv->n) return qn_v_round(qn_v_clamp(y, lv->lo, lv->hi)) - lv->lo;
    qn_vf code = qn_v_set(0);
    for (int i = 1; i < lv->n; i++)
        code = qn_v_pick(qn_v_gt(y, qn_v_set(0.5f * (float)(lv->list[i - 1] + lv->list[i]))), qn_v_set((float)i), code);
    return code;
}

/* ---- one scale: x = d q ---- */

typedef struct qn_scale_fit {
    qn_vf d, sqq; /* best scale, and the sum of w q^2 of its codes: the error grows by sqq (d' - d)^2 */
    qn_vf gain;   /* by how much the sum of w x^2 falls    */
} qn_scale_fit;

QN_LANES_INLINE void qn_scale_sums(const qn_vf *x, const qn_vf *w, int n, const qn_levels *lv, qn_vf inv, qn_vf *sxq, qn_vf *sqq)
{
    qn_vf a[2] = { qn_v_set(0), qn_v_set(0) }, b[2] = { a[0], a[0] };
    for (int i = 0; i < n; i += 2) /* two chains of sums: one would wait for itself */
        for (int k = 0; k < 2; k++) {
            const qn_vf q = qn_level_nearest(lv, x[i + k] * inv), wq = w[i + k] * q;
            a[k] += wq * x[i + k];
            b[k] += wq * q;
        }
    *sxq = a[0] + a[1];
    *sqq = b[0] + b[1];
}

QN_LANES_INLINE void qn_scale_try(const qn_vf *x, const qn_vf *w, int n, const qn_levels *lv, qn_vf inv, qn_scale_fit *best)
{
    qn_vf sxq, sqq;
    qn_scale_sums(x, w, n, lv, inv, &sxq, &sqq);
    const qn_vf d = qn_v_ratio(sxq, sqq), gain = d * sxq;
    const qn_vm better = qn_v_gt(gain, best->gain);
    best->d = qn_v_pick(better, d, best->d);
    best->sqq = qn_v_pick(better, sqq, best->sqq);
    best->gain = qn_v_pick(better, gain, best->gain);
}

/* The weight of the largest magnitude, with its sign. */
QN_LANES_INLINE qn_vf qn_tile_extreme(const qn_vf *x, int n)
{
    qn_vf most = qn_v_set(0), least = qn_v_set(0);
    for (int i = 0; i < n; i++) {
        most = qn_v_max(most, x[i]);
        least = qn_v_min(least, x[i]);
    }
    return qn_v_pick(qn_v_gt(most, -least), most, least);
}

/* Where the largest weight may fall, in units of the last level; among hundreds of levels cutting it off never pays, and few candidates come close. */
typedef struct qn_scale_range {
    int n_steps;
    float lo, hi;
} qn_scale_range;

QN_LANES_INLINE qn_scale_range qn_scale_range_of(const qn_levels *lv)
{
    return lv->hi > 100 && !lv->n ? (qn_scale_range){ 3, 0.985f, 1.0f } : (qn_scale_range){ 9, 0.85f, 1.25f };
}

/* Candidates: the largest weight falls on either end of the levels, or a little inside or outside; then codes and scale by turns. */
QN_LANES_INLINE qn_scale_fit qn_scale_search(const qn_vf *x, const qn_vf *w, int n, const qn_levels *lv)
{
    const qn_scale_range r = qn_scale_range_of(lv);
    const qn_vf unit = qn_v_inverse(qn_tile_extreme(x, n));
    qn_scale_fit best = { qn_v_set(0), qn_v_set(0), qn_v_set(0) };
    for (int i = 0; i < r.n_steps; i++) {
        const float f = r.lo + (r.hi - r.lo) * (float)i / (float)(r.n_steps - 1);
        qn_scale_try(x, w, n, lv, unit * (lv->lo * f), &best);
        qn_scale_try(x, w, n, lv, unit * (lv->hi * f), &best);
    }
    for (int i = 0; i < 2; i++) qn_scale_try(x, w, n, lv, qn_v_inverse(best.d), &best);
    return best;
}

/* ---- scale and minimum: x = d q - m ---- */

typedef struct qn_affine_fit {
    qn_vf d, m, gain;
    qn_vf sq, sqq; /* sums of w q and w q^2 */
} qn_affine_fit;

typedef struct qn_affine_sums {
    qn_vf w, x; /* sums of w, w x */
} qn_affine_sums;

/* @param signed_min  m may be negative */
QN_LANES_INLINE void qn_affine_try(const qn_vf *x, const qn_vf *w, int n, float hi, bool signed_min, const qn_affine_sums *s, qn_vf inv,
                                   qn_vf m, qn_affine_fit *best)
{
    qn_vf sq = qn_v_set(0), sqq = qn_v_set(0), sxq = qn_v_set(0);
    const qn_vf at = m * inv;
    for (int i = 0; i < n; i++) {
        const qn_vf q = qn_v_round(qn_v_clamp(x[i] * inv + at, 0, hi)), wq = w[i] * q;
        sq += wq;
        sqq += wq * q;
        sxq += wq * x[i];
    }
    /* least squares of both; where the minimum would turn out negative, of d alone */
    const qn_vf det = s->w * sqq - sq * sq;
    qn_vf d2 = qn_v_ratio(s->w * sxq - sq * s->x, det), m2 = qn_v_ratio(sq * sxq - sqq * s->x, det);
    const qn_vm flat = signed_min ? qn_v_gt(qn_v_set(0), qn_v_set(1)) : qn_v_gt(qn_v_set(0), m2);
    d2 = qn_v_pick(flat, qn_v_ratio(sxq, sqq), d2);
    m2 = qn_v_pick(flat, qn_v_set(0), m2);
    const qn_vf gain = d2 * sxq - m2 * s->x;
    const qn_vm better = qn_v_gt(gain, best->gain);
    best->d = qn_v_pick(better, d2, best->d);
    best->m = qn_v_pick(better, m2, best->m);
    best->sq = qn_v_pick(better, sq, best->sq);
    best->sqq = qn_v_pick(better, sqq, best->sqq);
    best->gain = qn_v_pick(better, gain, best->gain);
}

#define QN_AFFINE_STEPS 4
#define QN_AFFINE_STEP 0.35f

/* Candidates: the ends of the codes lie on the smallest and largest weight, or up to a level inside. */
QN_LANES_INLINE qn_affine_fit qn_affine_search(const qn_vf *x, const qn_vf *w, int n, float hi, bool signed_min, qn_affine_sums *s)
{
    qn_vf least = x[0], most = x[0];
    s->w = s->x = qn_v_set(0);
    for (int i = 0; i < n; i++) {
        least = qn_v_min(least, x[i]);
        most = qn_v_max(most, x[i]);
        s->w += w[i];
        s->x += w[i] * x[i];
    }
    if (!signed_min) least = qn_v_min(least, qn_v_set(0));
    most = qn_v_max(most, least);
    const qn_vf range = most - least, unit = qn_v_inverse(range);
    qn_affine_fit best = { qn_v_set(0), -least, qn_v_set(0), qn_v_set(0), qn_v_set(0) };
    best.gain = -best.m * s->x - best.m * (best.m * s->w + s->x);
    for (int i = 0; i < QN_AFFINE_STEPS; i++)
        for (int j = 0; j < QN_AFFINE_STEPS; j++) {
            const float a = QN_AFFINE_STEP * (float)(i - 1), b = QN_AFFINE_STEP * (float)(j - 1);
            qn_affine_try(x, w, n, hi, signed_min, s, unit * (hi + a + b), -(least + range * (a / (hi + a + b))), &best);
        }
    for (int i = 0; i < 2; i++) qn_affine_try(x, w, n, hi, signed_min, s, qn_v_inverse(best.d), best.m, &best);
    return best;
}

/* ---- blocks ---- */

/* Error of a group coded with d q - m. */
QN_LANES_INLINE qn_vf qn_group_error(const qn_vf *x, const qn_vf *w, int n, const qn_levels *lv, qn_vf d, qn_vf m)
{
    const qn_vf inv = qn_v_inverse(d), at = m * inv;
    qn_vf e = qn_v_set(0);
    for (int i = 0; i < n; i++) {
        const qn_vf r = x[i] - (d * qn_level_nearest(lv, x[i] * inv + at) - m);
        e += w[i] * (r * r);
    }
    return e;
}

QN_LANES_INLINE void qn_group_code(const qn_vf *x, int n, const qn_levels *lv, qn_vf d, qn_vf m, qn_vf *code)
{
    const qn_vf inv = qn_v_inverse(d), at = m * inv;
    for (int i = 0; i < n; i++) code[i] = qn_code_nearest(lv, x[i] * inv + at);
}

QN_LANES_INLINE void qn_tile_scale(qn_tile *t, const qn_grid *g, int n)
{
    const qn_levels lv = qn_levels_of(g);
    t->d = qn_v_f16(qn_scale_search(t->x, t->w, n, &lv).d);
    t->m = qn_v_set(0);
    qn_group_code(t->x, n, &lv, t->d, t->m, t->code);
}

QN_LANES_INLINE void qn_tile_affine(qn_tile *t, const qn_grid *g, int n)
{
    const qn_levels lv = qn_levels_of(g);
    qn_affine_sums s;
    const qn_affine_fit fit = qn_affine_search(t->x, t->w, n, lv.hi, true, &s);
    t->d = qn_v_f16(fit.d);
    t->m = qn_v_f16(fit.m);
    qn_group_code(t->x, n, &lv, t->d, t->m, t->code);
}

/* A power of two: the one that has the largest weight below the highest level, and two on either side. */
QN_LANES_INLINE void qn_tile_power(qn_tile *t, const qn_grid *g, int n)
{
    const qn_levels lv = qn_levels_of(g);
    const qn_vi e = ((qn_vi)qn_v_abs(qn_tile_extreme(t->x, n)) >> 23) - 4; /* levels go to 12: 2^3 and a half */
    qn_vf best = qn_v_set(0x1p126f);
    t->d = t->m = qn_v_set(0);
    for (int i = -1; i <= 2; i++) {
        const qn_vf exponent = qn_v_clamp(__builtin_convertvector(e + i, qn_vf), 28, 253);
        const qn_vf scale = (qn_vf)(__builtin_convertvector(exponent, qn_vi) << 23);
        const qn_vf error = qn_group_error(t->x, t->w, n, &lv, scale, t->m);
        const qn_vm better = qn_v_gt(best, error);
        best = qn_v_pick(better, error, best);
        t->d = qn_v_pick(better, scale, t->d);
    }
    qn_group_code(t->x, n, &lv, t->d, t->m, t->code);
}

/* ---- blocks with scales of their sub-blocks ---- */

/* Round the sub-blocks' scales to multiples of d, whatever their codes: the error this adds. */
QN_LANES_INLINE qn_vf qn_scales_error(const qn_scale_fit *fit, const qn_grid *g, qn_vf d)
{
    const qn_vf inv = qn_v_inverse(d);
    qn_vf e = qn_v_set(0);
    for (int k = 0; k < g->n_sub; k++) {
        const qn_vf r = d * qn_v_round(qn_v_clamp(fit[k].d * inv, g->scale_lo, g->scale_hi)) - fit[k].d;
        e += fit[k].sqq * (r * r);
    }
    return e;
}

/* Try scale and minimum of a sub-block. */
QN_LANES_INLINE void qn_sub_try(qn_tile *t, int k, int n, const qn_levels *lv, qn_vf scale, qn_vf min, qn_vf *best)
{
    const qn_vf error = qn_group_error(t->x + n * k, t->w + n * k, n, lv, t->d * scale, t->m * min);
    const qn_vm better = qn_v_gt(*best, error);
    *best = qn_v_pick(better, error, *best);
    t->scale[k] = qn_v_pick(better, scale, t->scale[k]);
    t->min[k] = qn_v_pick(better, min, t->min[k]);
}

QN_LANES_INLINE void qn_tile_code(qn_tile *t, int n_sub, int n, const qn_levels *lv)
{
    for (int k = 0; k < n_sub; k++) qn_group_code(t->x + n * k, n, lv, t->d * t->scale[k], t->m * t->min[k], t->code + n * k);
}

/* With the codes and the sub-blocks' scales as they are: the best d. */
QN_LANES_INLINE qn_vf qn_scales_refit(const qn_tile *t, int n_sub, int n, const qn_levels *lv)
{
    qn_vf a = qn_v_set(0), b = qn_v_set(0);
    for (int k = 0; k < n_sub; k++) {
        qn_vf sxq, sqq;
        qn_scale_sums(t->x + n * k, t->w + n * k, n, lv, qn_v_inverse(t->d * t->scale[k]), &sxq, &sqq);
        a += t->scale[k] * sxq;
        b += t->scale[k] * t->scale[k] * sqq;
    }
    return qn_v_ratio(a, b);
}

QN_LANES_INLINE void qn_tile_scales(qn_tile *t, const qn_grid *g, int n)
{
    const qn_levels lv = qn_levels_of(g);
    qn_scale_fit fit[QN_MAX_SUB];
    qn_vf d[QN_MAX_SUB], e = qn_v_set(0x1p126f);
    for (int k = 0; k < g->n_sub; k++) {
        fit[k] = qn_scale_search(t->x + n * k, t->w + n * k, n, &lv);
        d[k] = fit[k].d;
    }
    const qn_vf most = qn_tile_extreme(d, g->n_sub);
    t->d = t->m = qn_v_set(0);
    for (int i = -8; i <= 8; i++) {
        const qn_vf try = qn_v_f16(most * (1.0f / ((float)g->scale_lo * (1 + 0.015f * (float)i))));
        const qn_vf error = qn_scales_error(fit, g, try);
        const qn_vm better = qn_v_gt(e, error);
        e = qn_v_pick(better, error, e);
        t->d = qn_v_pick(better, try, t->d);
    }
    for (int k = 0; k < g->n_sub; k++) t->scale[k] = qn_v_round(d[k] * qn_v_inverse(t->d));
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < g->n_sub; k++) {
            qn_vf best = qn_v_set(0x1p126f);
            const qn_vf s = t->scale[k];
            for (int i = -1; i <= 1; i++) qn_sub_try(t, k, n, &lv, qn_v_clamp(s + (float)i, g->scale_lo, g->scale_hi), qn_v_set(0), &best);
        }
        t->d = qn_v_f16(qn_scales_refit(t, g->n_sub, n, &lv));
    }
    qn_tile_code(t, g->n_sub, n, &lv);
}

/* With the codes, scales and minimums as they are: the best d and m. */
QN_LANES_INLINE void qn_affines_refit(qn_tile *t, int n_sub, int n, const qn_levels *lv)
{
    qn_vf aa = qn_v_set(0), ab = aa, bb = aa, ax = aa, bx = aa; /* x = d a - m b, with a = scale q, b = min */
    for (int k = 0; k < n_sub; k++) {
        const qn_vf inv = qn_v_inverse(t->d * t->scale[k]), at = t->m * t->min[k] * inv;
        qn_vf sw = qn_v_set(0), sx = sw, sq = sw, sqq = sw, sxq = sw;
        for (int i = n * k; i < n * (k + 1); i++) {
            const qn_vf q = qn_level_nearest(lv, t->x[i] * inv + at), wq = t->w[i] * q;
            sw += t->w[i];
            sx += t->w[i] * t->x[i];
            sq += wq;
            sqq += wq * q;
            sxq += wq * t->x[i];
        }
        aa += t->scale[k] * t->scale[k] * sqq;
        ab += t->scale[k] * t->min[k] * sq;
        bb += t->min[k] * t->min[k] * sw;
        ax += t->scale[k] * sxq;
        bx += t->min[k] * sx;
    }
    const qn_vf det = aa * bb - ab * ab;
    const qn_vm both = qn_v_gt(det, aa * bb * 1e-6f);
    t->d = qn_v_f16(qn_v_pick(both, qn_v_ratio(ax * bb - ab * bx, det), qn_v_ratio(ax, aa)));
    t->m = qn_v_f16(qn_v_pick(both, qn_v_ratio(ax * ab - aa * bx, det), qn_v_set(0)));
}

/* The minimum that suits a scale, as a multiple of t->m. */
QN_LANES_INLINE qn_vf qn_min_for(const qn_tile *t, const qn_grid *g, const qn_affine_fit *f, const qn_affine_sums *s, qn_vf scale)
{
    const qn_vf m = qn_v_ratio(t->d * scale * f->sq - s->x, s->w);
    return qn_v_round(qn_v_clamp(m * qn_v_inverse(t->m), 0, g->scale_hi));
}

QN_LANES_INLINE void qn_tile_affines(qn_tile *t, const qn_grid *g, int n)
{
    const qn_levels lv = qn_levels_of(g);
    qn_affine_fit fit[QN_MAX_SUB];
    qn_affine_sums sums[QN_MAX_SUB];
    qn_vf d = qn_v_set(0), m = qn_v_set(0);
    for (int k = 0; k < g->n_sub; k++) {
        fit[k] = qn_affine_search(t->x + n * k, t->w + n * k, n, lv.hi, false, &sums[k]);
        d = qn_v_max(d, fit[k].d);
        m = qn_v_max(m, fit[k].m);
    }
    t->d = qn_v_f16(d * (1.0f / (float)g->scale_hi));
    t->m = qn_v_f16(m * (1.0f / (float)g->scale_hi));
    for (int k = 0; k < g->n_sub; k++) t->scale[k] = qn_v_round(qn_v_clamp(fit[k].d * qn_v_inverse(t->d), 0, g->scale_hi));
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < g->n_sub; k++) {
            qn_vf best = qn_v_set(0x1p126f);
            const qn_vf scale = t->scale[k];
            for (int i = -1; i <= 1; i++) {
                const qn_vf try = qn_v_clamp(scale + (float)i, 0, g->scale_hi);
                qn_sub_try(t, k, n, &lv, try, qn_min_for(t, g, &fit[k], &sums[k], try), &best);
            }
        }
        qn_affines_refit(t, g->n_sub, n, &lv);
    }
    qn_tile_code(t, g->n_sub, n, &lv);
}

/* ---- tiles of blocks ---- */

/* Weight i of block l, blocks * n_block apart, to lane l of out[i]. Lanes without a block get `rest`. */
QN_LANES_INLINE void qn_lanes_load(const float *w, int n_block, int n_lanes, float rest, qn_vf *out)
{
    if (n_lanes < QN_LANES || n_block % QN_LANES) {
        for (int i = 0; i < n_block; i++) {
            out[i] = qn_v_set(rest);
            for (int l = 0; l < n_lanes; l++) out[i][l] = w[l * n_block + i];
        }
        return;
    }
    for (int i = 0; i < n_block; i += QN_LANES) {
        for (int l = 0; l < QN_LANES; l++) memcpy(&out[i + l], w + l * n_block + i, sizeof *out);
        qn_v_transpose(out + i);
    }
}

/* Out of range is the nearest end, NaN is 0; the bound keeps every sum of squares finite. */
QN_LANES_INLINE void qn_tile_load(qn_tile *t, const qn_fmt *fmt, const float *w, const float *importance, int n)
{
    qn_lanes_load(w, fmt->block, n, 0, t->x);
    for (int i = 0; i < fmt->block; i++) {
        const qn_vm is_number = qn_v_gt(qn_v_abs(t->x[i]), qn_v_set(-1));
        t->x[i] = qn_v_clamp(qn_v_pick(is_number, t->x[i], qn_v_set(0)), -0x1p30f, 0x1p30f);
    }
    if (importance) qn_lanes_load(importance, fmt->block, n, 1, t->w);
    else for (int i = 0; i < fmt->block; i++) t->w[i] = qn_v_set(1);
    if (!importance) return;
    qn_vf sum = qn_v_set(0);
    for (int i = 0; i < fmt->block; i++) {
        t->w[i] = qn_v_clamp(t->w[i], 0, 0x1p60f); /* NaN: 0 */
        sum += t->w[i];
    }
    const qn_vm some = qn_v_gt(sum, qn_v_set(0x1p-90f));
    const qn_vf unit = (float)fmt->block * qn_v_inverse(sum);
    for (int i = 0; i < fmt->block; i++) t->w[i] = qn_v_pick(some, t->w[i] * unit, qn_v_set(1));
}

/* Codes of block l from lane l of code[i]. */
QN_LANES_INLINE void qn_lanes_codes(const qn_vf *code, int n_block, int n_lanes, qn_fields *f)
{
    typedef uint8_t bytes __attribute__((vector_size(QN_LANES)));
    for (int i = 0; i < n_block; i += QN_LANES) {
        qn_vf row[QN_LANES];
        memcpy(row, code + i, sizeof row);
        qn_v_transpose(row);
        for (int l = 0; l < n_lanes; l++) {
            const bytes b = __builtin_convertvector(__builtin_convertvector(row[l], qn_vi), bytes);
            memcpy(f[l].code + i, &b, sizeof b);
        }
    }
}

/* What the lanes have found. Blocks are multiples of the lanes. */
QN_LANES_INLINE void qn_tile_fields(const qn_tile *t, const qn_fmt *fmt, int n_lanes, qn_fields *f)
{
    const int n_sub = fmt->grid.n_sub > 1 ? fmt->grid.n_sub : 0;
    for (int l = 0; l < n_lanes; l++) {
        f[l].d = t->d[l];
        f[l].m = t->m[l];
        memset(f[l].scale, 0, sizeof f[l].scale);
        memset(f[l].min, 0, sizeof f[l].min);
        for (int k = 0; k < n_sub; k++) {
            f[l].scale[k] = (int8_t)t->scale[k][l];
            if (fmt->grid.kind == QN_GRID_AFFINE) f[l].min[k] = (int8_t)t->min[k][l];
        }
    }
    qn_lanes_codes(t->code, fmt->block, n_lanes, f);
}

QN_LANES_INLINE void qn_tile_search(qn_tile *t, const qn_fmt *fmt, const float *w, const float *importance, int n_lanes)
{
    const qn_grid *g = &fmt->grid;
    const int n = fmt->block / g->n_sub;
    qn_tile_load(t, fmt, w, importance, n_lanes);
    if (g->kind == QN_GRID_POWER) qn_tile_power(t, g, n);
    else if (g->kind == QN_GRID_SCALE && g->n_sub == 1) qn_tile_scale(t, g, n);
    else if (g->kind == QN_GRID_SCALE) qn_tile_scales(t, g, n);
    else if (g->n_sub == 1) qn_tile_affine(t, g, n);
    else qn_tile_affines(t, g, n);
}

/* Search n_blocks blocks; each goes to `out` in the file's form, or unpacked to `fields`: one of them is NULL. */
QN_LANES_INLINE void qn_search_lanes(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, uint8_t *out, qn_fields *fields)
{
    for (int64_t i = 0; i < n_blocks; i += QN_LANES) {
        const int n_lanes = n_blocks - i < QN_LANES ? (int)(n_blocks - i) : QN_LANES;
        qn_tile t;
        qn_fields own[QN_LANES], *f = fields ? fields + i : own;
        qn_tile_search(&t, fmt, w + i * fmt->block, importance ? importance + i * fmt->block : NULL, n_lanes);
        qn_tile_fields(&t, fmt, n_lanes, f);
        for (int l = 0; out && l < n_lanes; l++) fmt->pack(&f[l], out + (i + l) * fmt->bytes);
    }
}

QN_LANES_INLINE void qn_encode_lanes(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, uint8_t *out)
{
    qn_search_lanes(fmt, w, importance, n_blocks, out, NULL);
}

#endif
