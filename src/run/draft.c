#include "src/run/draft.h"

void qn_engine_draft(qn_engine *e, qn_stream *const *streams, int32_t n)
{
    if (!e->drafter) return;
    for (int32_t i = 0; i < n; i++) streams[i]->n_draft = 0;
}
