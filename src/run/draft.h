/**
 * Speculation (Leviathan et al. 2023): tokens that are expected to come are evaluated in the same step as the last one that did, and stay while
 * each is what the stream's own sampler chooses with its own random numbers. The text is the same as without them (docs/speculation.md).
 *
 * A kind of drafter proposes; how many tokens are worth their time is decided here, from measured times and from how often tokens of
 * the same grade came.
 */
#ifndef QN_RUN_DRAFT_H
#define QN_RUN_DRAFT_H

#include "src/run/draft_odds.h"
#include "src/run/stream.h"

enum { QN_DRAFT_DEFAULT = 8 };

/** Drafting for one stream. */
typedef struct qn_guess {
    qn_stream *stream;
    void *own;               /* of the kind; NULL until its stream_open                      */
    qn_odds odds;            /* that drafted tokens come                                     */
    int32_t n_most;          /* tokens in this round at most; 0: no part in it               */
    int32_t n;               /* drafted so far                                               */
    double chance;           /* that all of them come                                        */
    bool is_probe;           /* drafts although it does not promise to be worth it           */
    int32_t n_quiet, quiet_for; /* rounds without a draft; after how many of them is a probe */
    uint8_t grade[QN_DRAFT_MAX]; /* of the tokens of the last round                          */
    int32_t n_generated, n_drafted, n_accepted; /* of the stream before it                   */
    double spent, plain;     /* seconds that its tokens have taken, and would have taken without drafts */
} qn_guess;

typedef struct qn_draft_kind {
    double at_first[QN_GRADES]; /* chance that a token of each grade comes, before any was tried */
    /** @return false: no memory; stream_close follows, and the stream goes without drafts */
    bool (*stream_open)(qn_drafter *d, qn_guess *g);
    void (*stream_close)(qn_drafter *d, qn_guess *g);
    /**
     * Call qn_guess_add for up to n_most tokens of each, while qn_guess_goes_on. The text may be another than the last time.
     * @param g  [n], n_most of each above 0
     */
    void (*propose)(qn_drafter *d, qn_guess *const *g, int32_t n);
} qn_draft_kind;

struct qn_drafter {
    const qn_draft_kind *kind;
    qn_engine *engine;       /* whose text is drafted                                        */
    qn_engine *model;        /* that drafts; NULL: none                                      */
    bool shares_kv;          /* the model is a twin, which reads the timelines of the engine itself */
    int32_t n_max;           /* tokens of a stream in a round                                */
    pthread_mutex_t lock;    /* of what belongs to streams: they close without the engine's  */
    qn_odds odds;            /* of all streams so far: where a new one begins                */
    qn_line verify, draft;   /* seconds of a step: of the engine for n tokens, of the model for n streams */
    double read;             /* seconds that the model takes for a token of a text; 0: not known */
    double draft_seconds, step_seconds; /* of this round; step_seconds 0: not measured        */
    int32_t n_streams;       /* that took part in it                                         */
    double n_tokens, n_plain; /* lately: tokens that came; those that would have without drafts, in the same time */
    float *logits;           /* [n_vocab] a row of the model's in the engine's length, where the two differ; else NULL */
    size_t logits_bytes;
};

/** What the options ask for; leaves e->drafter NULL where that is nothing. @return QN_ERR_ARG with the first token that differs, and as from qn_engine_open */
qn_status qn_drafter_open(qn_engine *e, const qn_engine_opts *opts, qn_err *err);
void qn_drafter_close(qn_drafter **d);
/** Bytes of its KV cache and buffers. */
void qn_drafter_bytes(const qn_drafter *d, uint64_t *kv_bytes, uint64_t *scratch_bytes);
/** A step of the engine that chose tokens has taken so long. */
void qn_drafter_note_step(qn_drafter *d, int32_t n_tokens, double seconds);

/**
 * Before a step: put a draft behind the text of each stream that is choosing tokens, where it promises to be worth its time; of all streams
 * together at most QN_DRAFT_MAX tokens. Nothing to do on an engine without a drafter. The engine's lock is held; qn_stream_ask follows. Where
 * blocks are short, drafts are the first to go: set n_draft to 0.
 */
void qn_engine_draft(qn_engine *e, qn_stream *const *streams, int32_t n);
/** The stream ends. No lock of the engine is needed. */
void qn_draft_forget(qn_stream *s);

/* ---- for kinds ---- */

/** Is one more token of this stream worth its time? @param grade  of the token; -1: not known yet  @param seconds  that the drafter will take for it */
bool qn_guess_goes_on(const qn_drafter *d, const qn_guess *g, int32_t grade, double seconds);
/** Put a token behind the text. @param grade  0 .. QN_GRADES - 1: tokens of one grade come equally often */
void qn_guess_add(const qn_drafter *d, qn_guess *g, int32_t token, int32_t grade);

extern const qn_draft_kind qn_draft_ngram, qn_draft_model;
/** Make the engine that drafts. */
qn_status qn_draft_model_open(qn_drafter *d, const qn_model *model, qn_err *err);

#endif
