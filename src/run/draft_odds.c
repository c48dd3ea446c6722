#include "src/run/draft_odds.h"

/* Points that all lie at one n tell no slope: until others come, one more costs a twelfth of the step, with the weight of a few points. */
#define SLOPE_SHARE (1.0 / 12)
#define SLOPE_WEIGHT 4.0
/* of the mean; a step with more tokens is never cheaper, whatever noise says */
#define LEAST_SLOPE 0.005
#define MEMORY 50.0
/* Nothing makes a step faster than it is, and much makes it slower: first touches of memory, other programs. So times far below what
 * was expected show that this was wrong, and those far above count as so many times it. */
#define TOO_FAST 0.6
#define TOO_SLOW 1.5

double qn_line_slope(const qn_line *l)
{
    if (l->w == 0) return 0;
    const double n = l->n / l->w, t = l->t / l->w, spread = l->nn - n * l->n, joint = l->nt - n * l->t;
    const double expected = t * SLOPE_SHARE / (1 + SLOPE_SHARE * (n - 1));
    const double slope = (joint + SLOPE_WEIGHT * expected) / (spread + SLOPE_WEIGHT);
    return slope > LEAST_SLOPE * t ? slope : LEAST_SLOPE * t;
}

double qn_line_at(const qn_line *l, double n)
{
    if (l->w == 0) return 0;
    const double t = l->t / l->w, at = t + qn_line_slope(l) * (n - l->n / l->w);
    return at > 0.1 * t ? at : 0.1 * t;
}

void qn_line_note(qn_line *l, double n, double seconds)
{
    const double expected = qn_line_at(l, n), keep = 1 - 1 / MEMORY;
    if (seconds < TOO_FAST * expected) *l = (qn_line){ 0 };
    const double t = l->w > 0 && seconds > TOO_SLOW * expected ? TOO_SLOW * expected : seconds;
    *l = (qn_line){ l->w * keep + 1, l->n * keep + n, l->t * keep + t, l->nn * keep + n * n, l->nt * keep + n * t };
}
