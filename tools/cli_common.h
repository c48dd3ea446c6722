/* Options that are the same in every command: the model and the engine, and sampling. */
#ifndef QUERN_CLI_COMMON_H
#define QUERN_CLI_COMMON_H

#include "cli.h"

/** How keys and values are kept: one type for both, or each its own. */
typedef struct cli_cache {
    const char *both, *k, *v;
    cli_opt opt[4];
} cli_cache;

cli_opt *cli_cache_options(cli_cache *c);
/** A type that does not exist is a slip of the fingers, as a level is. `k` and `v` are what the engine is to be told from here on.
 *  @return -1 to go on, else the exit code, after a message */
int cli_cache_check(cli_cache *c);

/** A model made ready. Fill `opt` with cli_engine_options, put it into the command's table as a CLI_TABLE, parse, open. */
typedef struct cli_engine {
    const char *model_arg, *cpu;
    cli_cache cache;
    int32_t threads, ctx, chunk;
    int32_t parallel;           /* requests side by side; 0: one. An option of the commands that have requests */
    uint64_t kv_memory;
    int32_t act_bits;
    bool exact, profile;
    const char *draft;      /* a model, "ngram", "self:TYPE"; NULL: none                    */
    int32_t draft_max;
    cli_opt opt[16];
    qn_model *model, *draft_model;
    qn_engine *engine;
    char path[4096];
} cli_engine;

cli_opt *cli_engine_options(cli_engine *e);
/** Load the model. SIGINT is caught from here on. @return -1 to go on, else the exit code, after a message */
int cli_model_open(cli_engine *e);
/** Open the engine on the loaded model; ctx, threads and so on as the fields say. @return as above */
int cli_engine_open(cli_engine *e);
void cli_engine_close(cli_engine *e);

/** A level that does not exist is a slip of the fingers: said before a model is loaded, with those there are. NULL is fine.
 *  @return -1 to go on, else the exit code, after a message */
int cli_level_check(const char *cpu);

/** The table without the option of that name, where a command has its own. @return table */
cli_opt *cli_options_without(cli_opt *table, const char *name);
/** Without speculation, where no text is made. @return table */
cli_opt *cli_options_without_drafts(cli_opt *table);

/** Sampling, as chat and run take it. */
typedef struct cli_sampling {
    qn_sample_opts o;           /* complete after cli_sampling_finish                                  */
    cli_list bias_text, breakers;
    qn_logit_bias bias[CLI_LIST_MAX];
    bool show_order;
    cli_opt opt[32];
} cli_sampling;

cli_opt *cli_sampling_options(cli_sampling *s);
/** Check what the table cannot: --logit-bias, --order. @return -1 to go on, else the exit code, after a message */
int cli_sampling_finish(cli_sampling *s, const char *cmd);
/** The order and the values in use, one sampler a line. */
void cli_sampling_print(const qn_sample_opts *o, FILE *f);

/** "quern: note: <sentence>" on stderr: pass as qn_log_fn. */
void cli_note(void *user, const char *text);

/** "quern: <sentence>" of a library call that failed. */
int cli_failed(const qn_err *err);

#endif
