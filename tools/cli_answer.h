/* One answer: sampled, streamed, kept, and counted. */
#ifndef QUERN_CLI_ANSWER_H
#define QUERN_CLI_ANSWER_H

#include "cli_prompt.h"

typedef struct cli_answer {
    FILE *stream;            /* in: where the text goes as it comes; NULL: nowhere                    */
    char *text;              /* [n_text] and a NUL; never NULL after a run that gave QN_OK            */
    size_t n_text, cap_text;
    cli_ids ids;             /* the generated tokens, an end token included                           */
    qn_generate_result result;
    uint64_t seed;           /* the one in use                                                        */
    bool write_failed;       /* the stream took no more; the answer was stopped                       */
    bool no_memory;
} cli_answer;

typedef struct cli_answer_opts {
    int32_t max_tokens;      /* 0: until the context is full */
    cli_list stop;
    bool ignore_end, special;
} cli_answer_opts;

/** Answer the prompt with a sampler of its own. SIGINT ends it (QN_FINISH_CANCELLED). */
qn_status cli_answer_run(cli_answer *a, const qn_model *model, qn_session *s, const cli_ids *prompt, const qn_sample_opts *sampling,
                         const cli_answer_opts *opts, qn_err *err);
void cli_answer_free(cli_answer *a);

/** "stop", "length", "cancelled", "error" */
const char *cli_finish_name(qn_finish f);
double cli_prompt_rate(const qn_generate_result *r);   /* tokens a second; 0 where nothing was timed */
double cli_generate_rate(const qn_generate_result *r);
/** Three lines for people: tokens, seconds, rates, seed. */
void cli_answer_stats(const cli_answer *a, FILE *f);

#endif
