/* What every subcommand of quern shares: the table of options, messages, exit codes, finding a model. */
#ifndef QUERN_CLI_H
#define QUERN_CLI_H

#include "quern.h"

#include <stdio.h>

enum { CLI_OK = 0, CLI_FAULT = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/** A subcommand. Each tools/cmd_<name>.c defines `const qn_cmd qn_cmd_<name>`; the build makes the registry. */
typedef struct qn_cmd {
    const char *name;
    const char *summary;                 /* one line for `quern --help`                     */
    int order;                           /* place in `quern --help`                         */
    int (*run)(int argc, char **argv);   /* argv[0] is the subcommand's name                */
} qn_cmd;

typedef enum cli_kind {
    CLI_END = 0,
    CLI_FLAG,     /* bool *                                                                 */
    CLI_INT,      /* int32_t *, within [lo, hi]                                             */
    CLI_U64,      /* uint64_t *                                                             */
    CLI_FLOAT,    /* float *, within [lo, hi]                                               */
    CLI_SIZE,     /* uint64_t *: bytes, "500M", "1.5GiB"                                    */
    CLI_STR,      /* const char **                                                          */
    CLI_LIST,     /* cli_list *: may be given several times                                 */
    CLI_FILE,     /* const char **: a positional argument                                   */
    CLI_FILES,    /* cli_list *: all positional arguments that are left                     */
    CLI_REST,     /* cli_rest *: likewise, however many                                     */
    CLI_HEAD,     /* a heading in the help                                                  */
    CLI_TABLE,    /* cli_opt *: the options of another table, in this place                 */
} cli_kind;

enum { CLI_LIST_MAX = 64 };
typedef struct cli_list {
    const char *item[CLI_LIST_MAX];
    int32_t n;
} cli_list;

typedef struct cli_rest {
    const char **item;    /* room for argc of them                                          */
    int32_t n;
} cli_rest;

typedef struct cli_opt {
    cli_kind kind;
    const char *name;     /* "threads" for --threads                                        */
    char letter;          /* 't' for -t, or 0                                               */
    const char *arg;      /* "N" in the help                                                */
    const char *help;
    void *target;
    double lo, hi;        /* for CLI_INT and CLI_FLOAT; both 0: no bounds                   */
    bool given;           /* out                                                            */
} cli_opt;

/**
 * Parse argv against a table that ends in CLI_END; `usage` is the first line of the help, `about` the text under it. Understands "-t 4",
 * "-t4", "--threads 4", "--threads=4", "--" and --help. A value that looks like an option is refused ("-r -e" forgot its value); a
 * negative number, or text with a space in it, is a value.
 * @return -1 to go on; else the exit code, after having printed help or the mistake
 */
int cli_parse(int argc, char **argv, const char *usage, const char *about, cli_opt *opts);

/** Seconds of a clock that only goes forward. */
double cli_now(void);

/** "quern: <sentence>" on stderr; returns CLI_FAULT, or CLI_USAGE from cli_usage. */
int cli_fault(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * Path of a model: an existing path as it is; a name without '/' is looked up in the cache folder ("smollm2" finds the first file, in
 * order of name, whose name begins so, in any case); NULL is the default model.
 * @param out  [4096]
 * @return false after having said what was looked for and where
 */
bool cli_model_path(const char *arg, char *out);
/** The folder of models: $QUERN_CACHE, else $XDG_CACHE_HOME/quern, else $HOME/.cache/quern. @param out [4096] */
bool cli_cache_dir(char *out);

/** All of a file, or of stdin for "-", at most 1 GB. Free with free(). NULL after a message. `*n` bytes and a NUL. */
char *cli_read_all(const char *path, size_t *n);
/** One line of a stream without its newline, growing *line to 1 GB at most. @return 1; 0 at the end of input; -1 after a message */
int cli_read_line(FILE *f, char **line, size_t *cap, size_t *n);

/** A progress bar on stderr when that is a terminal: pass as qn_progress_fn with the text as user. Erases itself at done == total, and
 *  stops the work after Ctrl-C (see cli_interrupt.h). */
bool cli_progress(void *text, uint64_t done, uint64_t total);

const qn_cmd *cli_cmd_find(const char *name);
int cli_cmd_count(void);
const qn_cmd *cli_cmd_at(int i);

#endif
