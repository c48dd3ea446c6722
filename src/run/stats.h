/* An engine's totals, counted by whoever runs its steps. */
#ifndef QN_RUN_STATS_H
#define QN_RUN_STATS_H

#include "src/run/stream.h"

qn_status qn_stats_open(qn_stats *s, qn_err *err);
void qn_stats_close(qn_stats *s);

/** Add to a histogram. */
void qn_histogram_add(qn_histogram *h, double value);

/** Answers have been asked for. */
void qn_stats_asked(qn_stats *s, int32_t n);
/** So many wait, so many run. */
void qn_stats_queue(qn_stats *s, size_t n_waiting, size_t n_running);
void qn_stats_preempted(qn_stats *s);
/** A step has been taken: for n_answers, over n_tokens. */
void qn_stats_step(qn_stats *s, int32_t n_answers, int32_t n_tokens);
/** An answer may have got tokens since the last call for it. */
void qn_stats_tokens(qn_stats *s, qn_stream *stream);
/** An answer has ended. @param was_queued  its queue_seconds mean something */
void qn_stats_ended(qn_stats *s, const qn_generate_result *r, bool was_queued);

#endif
