/* What drafting learns: how often tokens come, and how long steps take. */
#ifndef QN_RUN_DRAFT_ODDS_H
#define QN_RUN_DRAFT_ODDS_H

#include <stdbool.h>
#include <stdint.h>

enum { QN_GRADES = 8 };

/** Drafted tokens of each grade whose predecessors all came; old ones count less and less. */
typedef struct qn_odds {
    double n[QN_GRADES], n_came[QN_GRADES];
} qn_odds;

/** @param memory  tokens of a grade that count, about */
static inline void qn_odds_note(qn_odds *o, int32_t grade, bool came, double memory)
{
    const double keep = 1 - 1 / memory;
    o->n[grade] = o->n[grade] * keep + 1;
    o->n_came[grade] = o->n_came[grade] * keep + (came ? 1 : 0);
}

/** The chance that a token comes, from what is known beforehand and what was seen. @param weight  of the former, in tokens */
static inline double qn_odds_chance(const qn_odds *o, int32_t grade, double before, double weight)
{
    return (o->n_came[grade] + before * weight) / (o->n[grade] + weight);
}

/** A straight line through points (n, seconds), of which old ones count less and less. */
typedef struct qn_line {
    double w, n, t, nn, nt;  /* sums of weights, n, t, n^2, n t                              */
} qn_line;

/** One step of n took so long. Single steps that something else has made slow count little. */
void qn_line_note(qn_line *l, double n, double seconds);
/** @return 0: nothing is known yet */
double qn_line_at(const qn_line *l, double n);
/** What one more costs; above 0 where anything is known. */
double qn_line_slope(const qn_line *l);

#endif
