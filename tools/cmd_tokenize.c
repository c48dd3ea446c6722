/* quern tokenize: text to tokens and back, for people, for scripts (--json) and for tests (--jsonl). */
#include "cli.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct tok_opts {
    const char *model, *prompt, *file;
    bool ids, pieces, count, json, jsonl, decode, skip_special, no_special, special, parse_special;
} tok_opts;

/* Growing bytes; out of memory ends the command with a message, as a line that cannot be answered would. */
typedef struct tok_text {
    char *ptr;
    size_t len, cap;
} tok_text;

static bool text_room(tok_text *t, size_t n)
{
    if (n <= t->cap) return true;
    char *p = realloc(t->ptr, n);
    if (!p) return false;
    t->ptr = p;
    t->cap = n;
    return true;
}

/* ---- the library ---- */

/** Ids of a text in *ids (free with free()). @return NULL, or what is wrong */
static const char *encode(const qn_model *m, qn_str text, int flags, int32_t **ids, size_t *n, qn_err *err)
{
    size_t cap = text.len + 16; /* nearly always enough; normal forms may grow */
    for (;;) {
        *ids = malloc(cap * sizeof **ids);
        if (!*ids) return "out of memory";
        const qn_status s = qn_tokenize(m, text, flags, NULL, 0, *ids, cap, n, err);
        if (s == QN_OK) return NULL;
        free(*ids);
        *ids = NULL;
        if (s != QN_ERR_LIMIT || *n <= cap) return err->text;
        cap = *n;
    }
}

/** Text of ids in *out. @return NULL, or what is wrong */
static const char *decode(const qn_model *m, const int32_t *ids, size_t n_ids, bool special, tok_text *out, qn_err *err)
{
    for (;;) {
        const qn_status s = qn_detokenize(m, ids, n_ids, special, out->ptr, out->cap, &out->len, err);
        if (s == QN_OK) return NULL;
        if (s != QN_ERR_LIMIT || out->len <= out->cap) return err->text;
        if (!text_room(out, out->len)) return "out of memory";
    }
}

/* ---- UTF-8 ---- */

/** Length of the UTF-8 character at s, or minus the length of the ill-formed bytes there that one U+FFFD stands for (the longest start of a
 *  character that could have been one, as in the Unicode standard, 3.9, and Python). n >= 1. */
static int char_len(const unsigned char *s, size_t n)
{
    const int len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (len <= 1) return len ? 1 : -1;
    unsigned lo = 0x80, hi = 0xbf; /* of the second byte: no overlong forms, surrogates, or values above 10FFFF */
    if (s[0] == 0xe0) lo = 0xa0;
    if (s[0] == 0xed) hi = 0x9f;
    if (s[0] == 0xf0) lo = 0x90;
    if (s[0] == 0xf4) hi = 0x8f;
    for (int i = 1; i < len; i++, lo = 0x80, hi = 0xbf)
        if ((size_t)i >= n || s[i] < lo || s[i] > hi) return -i;
    return len;
}

/** The text with U+FFFD for what is not UTF-8, as a JSON string; NULL when memory is short. */
static json_t *json_text(const char *s, size_t n)
{
    tok_text out = { 0 };
    if (!text_room(&out, 3 * n + 1)) return NULL;
    for (size_t i = 0; i < n;) {
        const int len = char_len((const unsigned char *)s + i, n - i);
        memcpy(out.ptr + out.len, len > 0 ? s + i : "\xef\xbf\xbd", len > 0 ? (size_t)len : 3);
        out.len += len > 0 ? (size_t)len : 3;
        i += (size_t)(len > 0 ? len : -len);
    }
    json_t *j = json_stringn(out.ptr, out.len);
    free(out.ptr);
    return j;
}

/** A piece in quotes, for reading: control characters and bytes that are not UTF-8 as \xHH. */
static void print_piece(qn_str s)
{
    putchar('"');
    for (size_t i = 0; i < s.len;) {
        const unsigned char c = (unsigned char)s.ptr[i];
        int len = char_len((const unsigned char *)s.ptr + i, s.len - i);
        if (c == '\n') printf("\\n");
        else if (c == '\t') printf("\\t");
        else if (c == '"' || c == '\\') printf("\\%c", c);
        else if (len > 0 && c >= ' ' && c != 0x7f) fwrite(s.ptr + i, 1, (size_t)len, stdout);
        else for (int k = 0; k < abs(len); k++) printf("\\x%02X", (unsigned char)s.ptr[i + (size_t)k]);
        i += (size_t)abs(len);
    }
    putchar('"');
}

static void print_ids(const int32_t *ids, size_t n, const char *between)
{
    for (size_t i = 0; i < n; i++) printf("%s%d", i ? between : "", ids[i]);
}

/* ---- lines of JSON ---- */

static bool line_error(const char *what)
{
    json_t *j = json_pack("{s:o}", "error", json_text(what, strlen(what)));
    char *s = j ? json_dumps(j, JSON_COMPACT) : NULL;
    printf("%s\n", s ? s : "{\"error\":\"out of memory\"}");
    free(s);
    json_decref(j);
    return false;
}

/** The bool `key` of an object, or `fallback`. @return false when it is something else */
static bool get_bool(const json_t *line, const char *key, bool fallback, bool *out)
{
    const json_t *v = json_object_get(line, key);
    *out = v ? json_is_true(v) : fallback;
    return !v || json_is_boolean(v);
}

static bool encode_line(const qn_model *m, const tok_opts *o, const json_t *line)
{
    const json_t *text = json_object_get(line, "text");
    bool special, parse;
    if (!json_is_string(text)) return line_error("\"text\" is missing, or is not a string");
    if (!get_bool(line, "add_special", !o->no_special, &special)) return line_error("\"add_special\" is not true or false");
    if (!get_bool(line, "parse_special", o->parse_special, &parse)) return line_error("\"parse_special\" is not true or false");
    int32_t *ids;
    size_t n;
    qn_err err;
    const int flags = (special ? QN_TOK_SPECIAL : 0) | (parse ? QN_TOK_PARSE : 0);
    const char *wrong = encode(m, (qn_str){ json_string_value(text), json_string_length(text) }, flags, &ids, &n, &err);
    if (wrong) return line_error(wrong);
    printf("{\"ids\":[");
    print_ids(ids, n, ",");
    printf("]}\n");
    free(ids);
    return true;
}

static bool decode_line(const qn_model *m, const tok_opts *o, const json_t *line)
{
    const json_t *list = json_object_get(line, "ids");
    if (!json_is_array(list)) return line_error("\"ids\" is missing, or is not an array");
    const size_t n = json_array_size(list);
    int32_t *ids = malloc((n + 1) * sizeof *ids);
    if (!ids) return line_error("out of memory");
    const char *wrong = NULL;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        const json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id > INT32_MAX) wrong = "an element of \"ids\" is not a token id";
        else ids[i] = (int32_t)id;
    }
    tok_text text = { 0 };
    qn_err err;
    if (!wrong) wrong = decode(m, ids, n, !o->skip_special, &text, &err);
    json_t *j = wrong ? NULL : json_pack("{s:o}", "text", json_text(text.ptr, text.len));
    char *s = j ? json_dumps(j, JSON_COMPACT) : NULL;
    if (s) printf("%s\n", s);
    else line_error(wrong ? wrong : "out of memory");
    free(s);
    json_decref(j);
    free(text.ptr);
    free(ids);
    return s != NULL;
}

static int run_jsonl(const qn_model *m, const tok_opts *o)
{
    char *line = NULL;
    size_t cap = 0, n;
    bool good = true;
    int more;
    while ((more = cli_read_line(stdin, &line, &cap, &n)) > 0) {
        json_error_t e;
        json_t *j = json_loadb(line, n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &e);
        if (!json_is_object(j)) good = line_error(j ? "the line is not an object" : e.text);
        else if (!(o->decode ? decode_line : encode_line)(m, o, j)) good = false;
        json_decref(j);
        fflush(stdout); /* whoever waits for an answer to each line gets it */
    }
    free(line);
    return good && more == 0 ? CLI_OK : CLI_FAULT;
}

/* ---- one text ---- */

static int print_json(const qn_model *m, const int32_t *ids, size_t n)
{
    json_t *list = json_array(), *pieces = json_array();
    for (size_t i = 0; i < n; i++) {
        qn_str s;
        qn_token_text(m, ids[i], true, &s);
        json_array_append_new(list, json_integer(ids[i]));
        json_array_append_new(pieces, json_text(s.ptr, s.len));
    }
    json_t *j = json_pack("{s:o, s:o, s:I}", "ids", list, "pieces", pieces, "count", (json_int_t)n);
    char *s = j ? json_dumps(j, JSON_COMPACT) : NULL;
    json_decref(j);
    if (!s) return cli_fault("tokenize: out of memory");
    puts(s);
    free(s);
    return CLI_OK;
}

static int run_encode(const qn_model *m, const tok_opts *o, const char *text, size_t len)
{
    int32_t *ids;
    size_t n;
    qn_err err;
    const int flags = (o->no_special ? 0 : QN_TOK_SPECIAL) | (o->parse_special ? QN_TOK_PARSE : 0);
    const char *wrong = encode(m, (qn_str){ text, len }, flags, &ids, &n, &err);
    if (wrong) return cli_fault("tokenize: %s", wrong);
    int code = CLI_OK;
    if (o->json) {
        code = print_json(m, ids, n);
    } else if (o->count) {
        printf("%zu\n", n);
    } else if (o->ids) {
        print_ids(ids, n, " ");
        putchar('\n');
    } else {
        for (size_t i = 0; i < n; i++) {
            qn_str s;
            qn_token_text(m, ids[i], true, &s);
            printf("%8d  ", ids[i]);
            print_piece(s);
            putchar('\n');
        }
    }
    free(ids);
    return code;
}

/* Ids between blanks, commas or brackets. */
static int run_decode(const qn_model *m, const tok_opts *o, const char *text, size_t len)
{
    int32_t *ids = malloc((len / 2 + 2) * sizeof *ids);
    if (!ids) return cli_fault("tokenize: out of memory");
    size_t n = 0;
    const char *at = text;
    for (;;) {
        at += strspn(at, " ,[]\t\r\n");
        if (at >= text + len) break;
        char *end;
        const long id = strtol(at, &end, 10);
        if (end == at || !strchr(" ,[]\t\r\n", *end) || id < 0 || id > INT32_MAX) {
            free(ids);
            return cli_fault("tokenize: '%.20s' is not a token id", at);
        }
        ids[n++] = (int32_t)id;
        at = end;
    }
    tok_text out = { 0 };
    qn_err err;
    const char *wrong = decode(m, ids, n, !o->skip_special, &out, &err);
    if (!wrong && out.len) fwrite(out.ptr, 1, out.len, stdout);
    if (!wrong) putchar('\n');
    free(out.ptr);
    free(ids);
    return wrong ? cli_fault("tokenize: %s", wrong) : CLI_OK;
}

static int run_text(const qn_model *m, const tok_opts *o)
{
    char *all = NULL;
    size_t n = o->prompt ? strlen(o->prompt) : 0;
    if (!o->prompt && !(all = cli_read_all(o->file ? o->file : "-", &n))) return CLI_FAULT;
    const char *text = o->prompt ? o->prompt : all;
    const int code = o->decode ? run_decode(m, o, text, n) : run_encode(m, o, text, n);
    free(all);
    return code;
}

static int run_open(const tok_opts *o)
{
    char path[4096];
    qn_model *m = NULL;
    qn_model_opts mo = QN_MODEL_OPTS_INIT;
    qn_err err;
    mo.vocab_only = true;
    if (!cli_model_path(o->model, path)) return CLI_FAULT;
    if (qn_model_open(&m, path, &mo, &err) != QN_OK) return cli_fault("%s", err.text);
    int code = o->jsonl ? run_jsonl(m, o) : run_text(m, o);
    qn_model_close(&m);
    if (fflush(stdout) || ferror(stdout)) code = cli_fault("tokenize: the answer could not be written");
    return code;
}

static int run(int argc, char **argv)
{
    tok_opts o = { 0 };
    cli_opt opts[] = {
        { CLI_STR, "model", 'm', "MODEL", "a GGUF file, or a name in the cache; vocabulary-only files too\n(default: the default model)",
          &o.model, 0, 0, false },
        { CLI_STR, "prompt", 'p', "TEXT", "the text", &o.prompt, 0, 0, false },
        { CLI_STR, "file", 'f', "FILE", "read the text from a file (without -p and -f: from stdin)", &o.file, 0, 0, false },
        { CLI_FLAG, "no-special", 0, NULL, "do not add the BOS, EOS, CLS, SEP that the model asks for", &o.no_special, 0, 0, false },
        { CLI_FLAG, "special", 0, NULL, "add them (the default)", &o.special, 0, 0, false },
        { CLI_FLAG, "parse-special", 0, NULL, "the text of a control token, like <|im_end|>, becomes that token",
          &o.parse_special, 0, 0, false },
        { CLI_FLAG, "decode", 0, NULL, "the other way: ids to text", &o.decode, 0, 0, false },
        { CLI_FLAG, "skip-special", 0, NULL, "with --decode: leave control tokens out of the text", &o.skip_special, 0, 0, false },
        { CLI_HEAD, NULL, 0, NULL, "Output", NULL, 0, 0, false },
        { CLI_FLAG, "pieces", 0, NULL, "a line for each token: id and text (the default)", &o.pieces, 0, 0, false },
        { CLI_FLAG, "ids", 0, NULL, "the ids in one line", &o.ids, 0, 0, false },
        { CLI_FLAG, "count", 0, NULL, "the number of tokens", &o.count, 0, 0, false },
        { CLI_FLAG, "json", 0, NULL, "one object with ids, pieces and count", &o.json, 0, 0, false },
        { CLI_FLAG, "jsonl", 0, NULL,
          "for each line of stdin, {\"text\":..,\"add_special\":..,\"parse_special\":..}, a line {\"ids\":[..]};\n"
          "with --decode for each {\"ids\":[..]} a line {\"text\":..}, U+FFFD for what is not UTF-8.\n"
          "A bad line gets {\"error\":..}, the others go on, and the exit code is 1",
          &o.jsonl, 0, 0, false },
        { 0 },
    };
    const int code = cli_parse(argc, argv, "tokenize [-m MODEL] [-p TEXT | -f FILE] [OPTION]...",
                               "Show how a model's vocabulary cuts text into tokens, or turn tokens into text.", opts);
    if (code >= 0) return code;
    if (o.prompt && o.file) return cli_usage("tokenize: -p or -f, not both");
    if (o.jsonl && (o.prompt || o.file)) return cli_usage("tokenize: --jsonl reads stdin, without -p and -f");
    if (o.special && o.no_special) return cli_usage("tokenize: --special or --no-special, not both");
    if (o.ids + o.pieces + o.count + o.json + o.jsonl > 1) return cli_usage("tokenize: one of --pieces, --ids, --count, --json, --jsonl");
    return run_open(&o);
}

extern const qn_cmd qn_cmd_tokenize;
const qn_cmd qn_cmd_tokenize = { "tokenize", "cut text into tokens, or turn tokens into text", 50, run };
