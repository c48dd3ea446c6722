/**
 * Many answers at once: continuous batching (Yu et al. 2022, "Orca") over one pool of KV blocks.
 *
 * One thread owns all requests that run. It is started with the first request, sleeps while there are none, and ends with the engine.
 */
#ifndef QN_RUN_SCHEDULER_H
#define QN_RUN_SCHEDULER_H

#include "src/run/stream.h"

/** Ends what still runs, and joins the thread. Accepts a pointer to NULL. */
void qn_scheduler_close(qn_scheduler **s);

/** One answer of a request. */
typedef struct qn_choice {
    qn_request *request;
    int32_t i;
    qn_stream stream;
    qn_sampler *sampler;
    qn_kv *kv;               /* NULL while it waits for the first time                       */
    int32_t first_output;    /* row of its logits in the step under way                      */
    bool has_run, in_step;
    bool is_text_lost;       /* there was no memory to keep it for qn_request_next           */
    /* told to the caller; under the scheduler's lock */
    bool ended, is_end_told;
    qn_buf news;             /* text that qn_request_next has not handed out                 */
    qn_err err;
} qn_choice;

struct qn_request {
    qn_scheduler *scheduler;
    qn_request_opts o;       /* what it points to is gone, but for the callbacks             */
    qn_choice *choice;       /* [o.n_choices]                                                */
    uint64_t serial;
    int32_t n_ended;
    atomic_bool cancel;
    bool is_orphan;          /* closed in its own callback: the thread frees it              */
    qn_request *next;        /* in the inbox                                                 */
    qn_buf told;             /* text of the last event                                       */
};

/** Choices in an order: those that wait, or those that run. */
typedef struct qn_choices {
    qn_choice **item;
    size_t n, cap;
} qn_choices;

struct qn_scheduler {
    qn_engine *engine;
    pthread_t thread;
    pthread_mutex_t lock;    /* of the inbox, and of what requests tell                      */
    pthread_cond_t news;     /* for the thread: something to do; for callers: something told */
    qn_request *inbox, **inbox_end;
    uint64_t n_submitted;
    bool stops;
    const qn_request *only;  /* all that the step under way evaluates is of this request; else NULL */
    atomic_bool interrupts;  /* the step under way                                           */
    /* the thread's own */
    qn_choices waiting, running; /* by rank: the first goes first                            */
    qn_step_part *part;      /* [n_sessions]                                                 */
    qn_stream **stream;      /* [n_sessions] of those that run, for the drafter              */
};

/** src/run/schedule.c: one step of everything that runs; called by the thread alone. */
void qn_scheduler_step(qn_scheduler *s);
/** A choice has ended: tell its result. */
void qn_scheduler_end(qn_scheduler *s, qn_choice *c, qn_status status, const qn_err *err);
bool qn_choices_add(qn_choices *list, qn_choice *c);

#endif
