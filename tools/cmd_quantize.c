/* quern quantize: a smaller model file out of a larger one. */
#include "cli_out.h"
#include "quantize.h"

#include <stdlib.h>
#include <string.h>

typedef struct quantize_args {
    const char *in, *out, *type;
    const char *imatrix;
    quantize_gptq gptq;
    cli_list tensor_types;
    qn_quantize_opts o;
    bool dry_run, json;
} quantize_args;

static const char about[] =
    "Write a model file with smaller weights. OUT appears whole or not at all; IN stays as it is. Which tensors get which format is llama.cpp's choice for "
    "the same name, so that files have the same size and run there as well. At the end, a table: each tensor that changed, its bits per weight and its "
    "error, the root of the mean squared change over that of the weights.";

/* The types there are, as a part of the help. For free(). */
static char *types_help(void)
{
    qn_quantize_type t;
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    fputs("Types, from the largest", f);
    for (int32_t i = 0; qn_quantize_type_at(i, &t); i++) fprintf(f, "\n  %-10s %s", t.name, t.about);
    return fclose(f) == 0 ? text : NULL;
}

/* ---- the work ---- */

/* What a signal or a failure ends the program with. */
static int failed(const qn_err *err)
{
    if (err->status != QN_ERR_CANCELLED) return cli_fault("%s", err->text);
    cli_fault("stopped by a signal; nothing was written");
    return 128 + quantize_signal();
}

static int write_file(quantize_args *a, qn_quantize *q, quantize_report *r, quantize_progress *p)
{
    qn_err err;
    const double began = p->began;
    const qn_status s = qn_quantize_run(q, a->out, &err);
    quantize_progress_end(p);
    if (s != QN_OK) return failed(&err);
    quantize_progress_begin(p);
    r->seconds = p->began - began;
    r->out = a->out;
    return CLI_OK;
}

static int plan_and_write(quantize_args *a, const char *path, quantize_types *types)
{
    qn_quantize *q;
    qn_err err;
    quantize_progress p;
    a->o.progress = quantize_progress_tell;
    a->o.progress_user = &p;
    a->o.tensor_type = quantize_types_choose;
    a->o.tensor_type_user = types;
    quantize_progress_begin(&p);
    if (qn_quantize_open(&q, path, &a->o, &err)) return failed(&err);
    quantize_report r = { .in = path, .type = a->o.type, .quantize = q };
    int code = CLI_OK;
    if (quantize_types_unused(types)) code = cli_usage("quantize: --tensor-type '%s' is about no tensor that is quantised", quantize_types_unused(types));
    if (code == CLI_OK && !a->dry_run && quantize_gptq_open(&a->gptq, q, path, a->o.n_threads, &err)) code = failed(&err);
    if (code == CLI_OK && !a->dry_run) code = write_file(a, q, &r, &p);
    quantize_gptq_close(&a->gptq);
    if (code == CLI_OK && a->json) code = quantize_json(&r);
    else if (code == CLI_OK) quantize_text(&r);
    qn_quantize_close(&q);
    return code;
}

static int with_imatrix(quantize_args *a, const char *path)
{
    qn_err err;
    qn_imatrix *imatrix = NULL;
    if (a->imatrix && qn_imatrix_load(&imatrix, a->imatrix, &err)) return cli_fault("%s", err.text);
    quantize_types *types = quantize_types_open(&a->tensor_types);
    a->o.imatrix = imatrix;
    a->o.imatrix_name = a->imatrix;
    const int code = types ? plan_and_write(a, path, types) : CLI_USAGE;
    quantize_types_close(&types);
    qn_imatrix_close(&imatrix);
    return code;
}

/* ---- command ---- */

/* A type that does not exist is told with those that do, before a large file is opened. */
static int check_type(const char *cmd, quantize_args *a)
{
    qn_quantize_type t;
    char list[400] = "";
    size_t n = 0;
    for (int32_t i = 0; qn_quantize_type_at(i, &t); i++) {
        if (!strcasecmp(t.name, a->type)) {
            a->o.type = t.name;
            return -1;
        }
        if (n < sizeof list) n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", t.name);
    }
    return cli_usage("%s: no type '%s'; there are %s", cmd, a->type, list);
}

static int check_args(quantize_args *a)
{
    if (a->dry_run && a->in && a->out && !a->type) { /* where nothing is written, its name may be left out */
        a->type = a->out;
        a->out = NULL;
    }
    if (!a->type) return cli_usage("quantize: give IN, OUT and TYPE; 'quern quantize --help' explains");
    if (a->out && !strcmp(a->out, "-")) return cli_usage("quantize: OUT is a file, as stdout is for the report");
    return check_type("quantize", a);
}

static int run(int argc, char **argv)
{
    quantize_args a = { .o = QN_QUANTIZE_OPTS_INIT };
    char *types = types_help(), path[4096];
    cli_opt opts[] = {
        { .kind = CLI_FILE, .name = "IN", .target = &a.in },
        { .kind = CLI_FILE, .name = "OUT", .target = &a.out },
        { .kind = CLI_FILE, .name = "TYPE", .target = &a.type },
        { .kind = CLI_STR, .name = "imatrix", .arg = "FILE", .target = &a.imatrix,
          .help = "importance data: what inputs each weight meets (quern imatrix makes it)" },
        { .kind = CLI_STR, .name = "gptq", .arg = "TEXT", .target = &a.gptq.path,
          .help = "GPTQ: errors of a weight are made good by others, on what this text's tokens give; takes minutes" },
        { .kind = CLI_INT, .name = "gptq-chunks", .arg = "N", .target = &a.gptq.chunks, .lo = 1, .hi = INT32_MAX,
          .help = "the first N windows of 512 tokens of the text (default: all)" },
        { .kind = CLI_FLOAT, .name = "gptq-damping", .arg = "X", .target = &a.gptq.damping, .lo = 0, .hi = 1,
          .help = "added to the inputs' mean squares, as a part of their mean (default 0.01)" },
        { .kind = CLI_FLAG, .name = "gptq-in-place", .target = &a.gptq.in_place,
          .help = "columns as they lie, scales searched as each block is reached; else those of large inputs first" },
        { .kind = CLI_LIST, .name = "tensor-type", .arg = "REGEX=TYPE", .target = &a.tensor_types,
          .help = "another format for the tensors whose names match; may be given several times, the first that matches decides" },
        { .kind = CLI_STR, .name = "output-type", .arg = "TYPE", .target = &a.o.output_type, .help = "format of the output head" },
        { .kind = CLI_STR, .name = "embedding-type", .arg = "TYPE", .target = &a.o.embedding_type, .help = "format of the token embeddings" },
        { .kind = CLI_FLAG, .name = "pure", .target = &a.o.pure, .help = "one format for everything" },
        { .kind = CLI_FLAG, .name = "no-fallback", .target = &a.o.no_fallback,
          .help = "fail where rows are no multiple of a format's block, in place of taking another format" },
        { .kind = CLI_FLAG, .name = "keep-split", .target = &a.o.keep_split, .help = "as many files as IN has; else they become one" },
        { .kind = CLI_FLAG, .name = "allow-requantize", .target = &a.o.allow_requantize,
          .help = "quantise what is quantised already, with the errors of both" },
        { .kind = CLI_FLAG, .name = "dry-run", .target = &a.dry_run, .help = "sizes and formats alone; nothing is written, OUT may be left out" },
        { .kind = CLI_INT, .name = "threads", .letter = 't', .arg = "N", .target = &a.o.n_threads, .lo = 1, .hi = 512,
          .help = "threads (default: as many as the machine gives)" },
        { .kind = CLI_FLAG, .name = "json", .target = &a.json, .help = "the report as one JSON object" },
        { .kind = CLI_HEAD, .help = types ? types : "" },
        { 0 },
    };
    int code = cli_parse(argc, argv, "quantize IN OUT TYPE [OPTION]...", about, opts);
    free(types);
    if (code < 0) code = check_args(&a);
    if (code < 0 && !cli_model_path(a.in, path)) code = CLI_FAULT;
    if (code < 0 && !a.dry_run) code = cli_out_check(a.out, (const char *[]){ a.imatrix, a.gptq.path }, 2);
    if (code < 0) code = quantize_gptq_check(&a.gptq);
    if (code >= 0) return code;
    quantize_signals_catch();
    code = with_imatrix(&a, path);
    quantize_gptq_close(&a.gptq); /* its text, where it was not begun */
    return code;
}

extern const qn_cmd qn_cmd_quantize;
const qn_cmd qn_cmd_quantize = { "quantize", "make a model file smaller", 70, run };
