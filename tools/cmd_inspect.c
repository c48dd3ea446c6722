/* quern inspect: what a GGUF file holds. */
#include "cli_common.h"
#include "inspect.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DUMP_FLOATS = 1 << 16 };

/* ---- totals ---- */

static void add(inspect_type *t, const qn_tensor_info *info)
{
    t->n_tensors++;
    t->n_weights += (uint64_t)info->dims[0] * (uint64_t)info->dims[1] * (uint64_t)info->dims[2] * (uint64_t)info->dims[3];
    t->n_bytes += info->n_bytes;
}

static int by_bytes(const void *pa, const void *pb)
{
    const inspect_type *a = pa, *b = pb;
    return a->n_bytes != b->n_bytes ? (a->n_bytes > b->n_bytes ? -1 : 1) : strcmp(a->name, b->name);
}

static void sum_up(inspect *in)
{
    qn_tensor_info info;
    in->total.name = "all";
    for (int64_t i = 0; qn_file_tensor_at(in->file, i, &info); i++) {
        int k = 0;
        while (k < in->n_types && strcmp(in->types[k].name, info.type_name)) k++;
        if (k == INSPECT_MAX_TYPES) continue; /* there are fewer formats than that */
        if (k == in->n_types) in->types[in->n_types++].name = info.type_name;
        add(&in->types[k], &info);
        add(&in->total, &info);
    }
    qsort(in->types, (size_t)in->n_types, sizeof *in->types, by_bytes);
}

/* ---- memory ---- */

/* The defaults of qn_engine_opts, where nothing is asked for. */
static int32_t default_ctx(const qn_file *file)
{
    enum { DEFAULT_CTX = 4096 };
    char key[256];
    qn_value v;
    qn_str arch;
    int64_t n;
    if (!qn_file_key(file, "general.architecture", &v) || qn_value_as_str(&v, &arch) || arch.len > 200) return DEFAULT_CTX;
    snprintf(key, sizeof key, "%.*s.context_length", (int)arch.len, arch.ptr);
    if (!qn_file_key(file, key, &v) || qn_value_as_i64(&v, &n) || n < 1 || n > DEFAULT_CTX) return DEFAULT_CTX;
    return (int32_t)n;
}

/* What Linux believes it could give without swapping; 0 where it does not say. */
static uint64_t available_memory(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f) return 0;
    while (fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %llu kB", &kib) != 1) {}
    fclose(f);
    return (uint64_t)kib * 1024;
}

static void plan_memory(inspect *in, int32_t n_ctx, int32_t n_chunk, const cli_cache *cache)
{
    enum { DEFAULT_CHUNK = 512 };
    in->n_ctx = n_ctx ? n_ctx : default_ctx(in->file);
    in->n_chunk = n_chunk ? n_chunk : DEFAULT_CHUNK;
    in->available_bytes = available_memory();
    const qn_engine_opts o = { .size = sizeof o, .n_ctx = in->n_ctx, .n_chunk = in->n_chunk, .cache_type_k = cache->k, .cache_type_v = cache->v };
    in->memory_err.status = qn_memory_estimate(in->file, &o, &in->memory, &in->memory_err);
}

/* ---- --dump and --key ---- */

/* Rows in pieces of at most DUMP_FLOATS, or one row at a time where a row is longer. */
static int write_rows(const qn_file *file, int64_t i, const qn_tensor_info *t, float *buf, int64_t rows_at_once)
{
    qn_err err;
    const int64_t n_rows = t->dims[1] * t->dims[2] * t->dims[3];
    for (int64_t row = 0; row < n_rows; row += rows_at_once) {
        const int64_t n = n_rows - row < rows_at_once ? n_rows - row : rows_at_once;
        if (qn_file_rows_f32(file, i, row, n, buf, &err)) return cli_fault("%s", err.text);
        if (fwrite(buf, sizeof *buf * (size_t)t->dims[0], (size_t)n, stdout) != (size_t)n) return CLI_OK; /* told by main */
    }
    return CLI_OK;
}

static int dump(const qn_file *file, const char *name)
{
    qn_tensor_info t;
    const int64_t i = qn_file_tensor_find(file, name);
    if (!qn_file_tensor_at(file, i, &t)) return cli_fault("there is no tensor '%s' in the file", name);
    if (isatty(STDOUT_FILENO)) return cli_usage("inspect: --dump writes binary float32 values; send them to a file or a pipe");
    const int64_t rows = t.dims[0] >= DUMP_FLOATS ? 1 : DUMP_FLOATS / t.dims[0];
    float *buf = (uint64_t)t.dims[0] > SIZE_MAX / sizeof *buf / (uint64_t)rows ? NULL : malloc((size_t)(rows * t.dims[0]) * sizeof *buf);
    if (!buf) return cli_fault("no memory for a row of %lld values", (long long)t.dims[0]);
    const int code = write_rows(file, i, &t, buf, rows);
    free(buf);
    return code;
}

/* A string goes out byte by byte, so that a chat template can be saved; but not to a terminal. */
static int show_key(const qn_file *file, const char *key)
{
    qn_value v;
    qn_str s;
    if (!qn_file_key(file, key, &v)) return cli_fault("there is no key '%s' in the file", key);
    if (qn_value_as_str(&v, &s) == QN_OK && !isatty(STDOUT_FILENO)) {
        fwrite(s.ptr, 1, s.len, stdout);
        return CLI_OK;
    }
    inspect_print_value(&v, -1, 0);
    putchar('\n');
    return CLI_OK;
}

/* ---- command ---- */

typedef struct inspect_opts {
    const char *file, *model, *dump, *key;
    cli_cache cache;
    int32_t max_array, n_ctx, n_chunk;
    bool json, full, keys_only;
} inspect_opts;

static int show(const qn_file *file, const char *path, const inspect_opts *o)
{
    if (o->dump) return dump(file, o->dump);
    if (o->key) return show_key(file, o->key);
    const int32_t unset = o->json || o->full ? -1 : 5; /* elements of an array */
    inspect in = { .path = path, .file = file, .max_array = o->max_array >= 0 ? o->max_array : unset, .full = o->full,
                   .keys_only = o->keys_only };
    sum_up(&in);
    if (!o->keys_only) plan_memory(&in, o->n_ctx, o->n_chunk, &o->cache);
    int code = CLI_OK;
    if (o->json) code = inspect_json(&in);
    else inspect_text(&in);
    const bool asked = o->n_ctx || o->n_chunk || o->cache.k || o->cache.v; /* for the memory: then it is a fault that it is not known */
    return code == CLI_OK && asked && in.memory_err.status ? cli_fault("%s: %s", path, in.memory_err.text) : code;
}

static int run(int argc, char **argv)
{
    inspect_opts o = { .max_array = -1 };
    cli_opt opts[] = {
        { .kind = CLI_FILE, .name = "FILE", .target = &o.file },
        { .kind = CLI_STR, .name = "model", .letter = 'm', .arg = "FILE", .target = &o.model, .help = "the same as FILE" },
        { .kind = CLI_FLAG, .name = "json", .target = &o.json, .help = "one JSON object; arrays are complete unless --max-array is given" },
        { .kind = CLI_FLAG, .name = "keys-only", .target = &o.keys_only, .help = "metadata alone, without tensors and totals" },
        { .kind = CLI_FLAG, .name = "full", .target = &o.full, .help = "text with whole strings and arrays" },
        { .kind = CLI_INT, .name = "ctx", .letter = 'c', .arg = "N", .target = &o.n_ctx, .lo = 1, .hi = INT32_MAX,
          .help = "positions that the memory is computed for (default: the trained\nones, at most 4096)" },
        { .kind = CLI_INT, .name = "chunk", .arg = "N", .target = &o.n_chunk, .lo = 1, .hi = 4096,
          .help = "prompt tokens a step (default 512)" },
        { .kind = CLI_TABLE, .target = cli_cache_options(&o.cache) },
        { .kind = CLI_INT, .name = "max-array", .arg = "N", .target = &o.max_array, .lo = 0, .hi = INT32_MAX,
          .help = "show N elements of an array (text: 5); with --json, longer\narrays become their element type and count" },
        { .kind = CLI_STR, .name = "key", .arg = "KEY", .target = &o.key,
          .help = "one metadata value, strings as they are: --key tokenizer.chat_template" },
        { .kind = CLI_STR, .name = "dump", .arg = "TENSOR", .target = &o.dump,
          .help = "the tensor's values to stdout: float32, little-endian, rows in order" },
        { 0 },
    };
    char path[4096];
    qn_file *file;
    qn_err err;
    int code = cli_parse(argc, argv, "inspect FILE [OPTION]...",
                               "Show the metadata and the tensors of a GGUF file, totals per type, bits per weight, and the memory that\n"
                               "a context takes. FILE may be any shard of a split model, or the short name of a model in the cache.\n"
                               "In JSON, invalid UTF-8 is U+FFFD, and NaN, infinities and integers above 2^63 are strings.",
                               opts);
    if (code >= 0) return code;
    if (!o.file) o.file = o.model;
    if (!o.file) return cli_usage("inspect: no file given; 'quern inspect --help' explains");
    if (o.dump && o.key) return cli_usage("inspect: --dump and --key do not go together");
    code = cli_cache_check(&o.cache);
    if (code >= 0) return code;
    if (!cli_model_path(o.file, path)) return CLI_FAULT;
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, and main tells it */
    if (qn_file_open(&file, path, &err)) return cli_fault("%s", err.text);
    const int shown = show(file, path, &o);
    qn_file_close(&file);
    return shown;
}

extern const qn_cmd qn_cmd_inspect;
const qn_cmd qn_cmd_inspect = { "inspect", "show what a model file holds", 40, run };
