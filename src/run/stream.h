/**
 * One answer in the making: what is to be evaluated next, and what becomes of the logits.
 *
 * A stream knows all tokens of its text; its timeline has evaluated some of them. What is missing is evaluated, however it came to be
 * missing: a prompt that is new, a token that was just chosen, a timeline that gave its blocks away. Behind the text may stand a draft:
 * tokens that somebody expects to come. They are evaluated in the same step, and stay while each is what the sampler chooses, so the text
 * is the same as without them.
 *
 * A step: qn_stream_ask, qn_engine_step, qn_stream_choose, qn_stream_settle, qn_stream_deliver.
 */
#ifndef QN_RUN_STREAM_H
#define QN_RUN_STREAM_H

#include "src/run/engine.h"
#include "src/run/textout.h"

struct qn_guess;

typedef struct qn_stream {
    qn_engine *engine;
    qn_kv *kv;               /* borrowed                                                     */
    qn_sampler *sampler;     /* borrowed                                                     */
    qn_generate_opts o;
    qn_textout out;
    int32_t *token;          /* the text, then the draft: room for the longest answer and QN_DRAFT_MAX more */
    int32_t n, n_prompt;
    int32_t n_draft;
    int32_t n_held;          /* before a step with a draft: the position that the timeline can come back to */
    struct qn_guess *guess;  /* of the engine's drafter; NULL: none                          */
    int32_t n_asked;         /* outputs of the step under way; 0: none                       */
    int32_t n_delivered;     /* tokens that on_token has seen                                */
    qn_buf text;             /* not delivered yet                                            */
    bool is_cached_known;    /* n_cached of the result is set                                */
    bool moved;              /* the text is not what the timeline has evaluated              */
    bool ended;              /* no step more                                                 */
    bool wants_no_more;      /* on_text returned false                                       */
    qn_status status;
    qn_err err;
    double began;            /* when it was asked for                                        */
    int32_t n_timed;         /* tokens that the engine's totals know                         */
    double timed;            /* when they came to know the last                              */
    double read;             /* when the prompt was evaluated; 0: not yet                    */
    qn_generate_result r;
} qn_stream;

/** @param prompt  [n_prompt] checked here, copied  @param opts  NULL: the defaults; stop strings are copied */
qn_status qn_stream_open(qn_stream *s, qn_engine *e, qn_kv *kv, qn_sampler *sampler, const int32_t *prompt, int32_t n_prompt,
                         const qn_generate_opts *opts, qn_err *err);
void qn_stream_close(qn_stream *s);

/** Find what is evaluated already; again after the timeline has given its blocks away. The engine's lock is held. */
void qn_stream_match(qn_stream *s);
/** The next part: at most `budget` tokens. Positions are not reserved yet. The engine's lock is held. */
qn_step_part qn_stream_ask(qn_stream *s, int32_t budget);
/** Choose tokens from the logits of the part's outputs. Different streams may do so at the same time. @param extremes  of the rows, or NULL */
void qn_stream_choose(qn_stream *s, const float *logits, const qn_extremes *extremes);
/** Let go of draft tokens that did not come. The engine's lock is held. */
void qn_stream_settle(qn_stream *s);
/** Hand on what has been chosen, and drop the older half of a context that is full. No lock is held: the callbacks may use the engine. */
void qn_stream_deliver(qn_stream *s);
/** No step will come: hand on what was held back, and tell the result. @param status  why, where it is not the stream's own end */
qn_status qn_stream_end(qn_stream *s, qn_status status, qn_err *err);

#endif
