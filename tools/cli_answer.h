/* One answer: sampled, streamed, kept, and counted. */
#ifndef QUERN_CLI_ANSWER_H
#define QUERN_CLI_ANSWER_H

#include "cli_prompt.h"

typedef struct cli_answer {
    FILE *stream;            /* in: where the text goes as it comes; NULL: nowhere                    */
    char *text;              /* [n_text] and a NUL; never NULL after a run that gave QN_OK            */
    size_t n_text, cap_text;
    cli_ids ids;             /* the generated tokens, an end token included                           */
    cli_ids dropped;         /* tokens that a full context has let go of                              */
    qn_generate_result result;
    uint64_t seed;           /* the one in use                                                        */
    bool write_failed;       /* the stream took no more; the answer was stopped                       */
    bool no_memory;
} cli_answer;

typedef struct cli_answer_opts {
    int32_t max_tokens;      /* 0: until the context is full */
    cli_list stop;
    bool ignore_end, special;
    bool slide;              /* a full context goes on */
    int32_t keep;            /* first tokens that stay then */
    cli_opt opt[3];
} cli_answer_opts;

/** --slide and --keep, for a command's table. */
cli_opt *cli_slide_options(cli_answer_opts *o);

/** Answer the prompt with a sampler of its own. SIGINT ends it (QN_FINISH_CANCELLED). */
qn_status cli_answer_run(cli_answer *a, const qn_model *model, qn_session *s, const cli_ids *prompt, const qn_sample_opts *sampling,
                         const cli_answer_opts *opts, qn_err *err);
void cli_answer_free(cli_answer *a);
/** The text that has left the context meanwhile, if any, to stderr. */
void cli_answer_report_dropped(const cli_answer *a, const qn_model *model);

/** "stop", "length", "cancelled", "error" */
const char *cli_finish_name(qn_finish f);
double cli_prompt_rate(const qn_generate_result *r);   /* tokens a second; 0 where nothing was timed */
double cli_generate_rate(const qn_generate_result *r);
/** Lines for people: tokens, seconds, rates, seed; waits between tokens of all the engine's answers. */
void cli_answer_stats(const cli_answer *a, qn_engine *engine, FILE *f);

#endif
