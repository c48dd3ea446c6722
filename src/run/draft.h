/**
 * Speculation: tokens that are expected to come are evaluated in the same step as the last one that did, and stay while each is what the
 * sampler chooses. The text is the same as without them (docs/speculation.md).
 */
#ifndef QN_RUN_DRAFT_H
#define QN_RUN_DRAFT_H

#include "src/run/stream.h"

/**
 * Before a step: put a draft behind the text of each stream that is choosing tokens, where one promises to be worth its time; of all streams
 * together at most QN_DRAFT_MAX tokens. Nothing to do on an engine without a drafter. The engine's lock is held; qn_stream_ask follows.
 */
void qn_engine_draft(qn_engine *e, qn_stream *const *streams, int32_t n);

#endif
