/* Which experts a step's tokens run, and that their matrices are there. */
#ifndef QN_OPS_PAIRS_H
#define QN_OPS_PAIRS_H

#include "src/ops/exec.h"

void qn_pairs_place(qn_placer *p, qn_exec *x, const qn_plan *plan, int32_t n_chunk, int32_t n_threads);

/**
 * Choose, from the logits in register R, for all rows of the stage. Called by every thread; when it returns, all choices are there. A few rows
 * every thread does for itself; else barriers stand inside.
 */
const qn_pairs *qn_pairs_choose(const qn_exec *x, const qn_stage *s, int32_t i_thread, int32_t n_threads);

/** The same choices in the stage after that. */
static inline const qn_pairs *qn_pairs_chosen(const qn_exec *x, const qn_stage *s, int32_t i_thread)
{
    return qn_exec_n_rows(x, s) <= QN_OWN_ROWS ? &x->pairs.own[i_thread] : &x->pairs.shared;
}

/**
 * Pack those of the chosen experts' matrices that nobody has used before. Called by every thread; barriers stand inside where something is to be
 * packed. Engines of one model may come to the same expert at once: one packs it, the others wait.
 */
void qn_pairs_pack(const qn_exec *x, const qn_stage *s, const qn_pairs *pairs, int32_t i_thread, int32_t n_threads);

#endif
