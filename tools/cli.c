#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One line whatever an argument or a file name brings in: bytes that a terminal would obey become '?'. */
static int say(int code, const char *fmt, va_list ap)
{
    char text[2048];
    fflush(stdout);
    vsnprintf(text, sizeof text, fmt, ap);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?';
    fprintf(stderr, "quern: %s\n", text);
    return code;
}

int cli_fault(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(CLI_FAULT, fmt, ap);
    va_end(ap);
    return CLI_FAULT;
}

int cli_usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(CLI_USAGE, fmt, ap);
    va_end(ap);
    return CLI_USAGE;
}

/* The words of a text from `column` on, in lines that a terminal of 80 columns shows whole; each further line is indented. */
static void print_words(const char *text, int column, int indent)
{
    enum { WIDTH = 80 };
    bool first = true;
    for (const char *p = text; *p; p += strcspn(p, " \n"), p += strspn(p, " \n")) {
        const int n = (int)strcspn(p, " \n");
        const bool turn = !first && column + 1 + n > WIDTH;
        if (turn) printf("\n%*s", indent, "");
        else if (!first) putchar(' ');
        printf("%.*s", n, p);
        column = (turn ? indent : column + !first) + n;
        first = false;
    }
    putchar('\n');
}

/* "  -t, --threads N" in 30 columns, then the help. */
static void print_option(const cli_opt *o)
{
    char left[64];
    const int n = o->letter ? snprintf(left, sizeof left, "-%c, --%s", o->letter, o->name)
                            : snprintf(left, sizeof left, "    --%s", o->name);
    if (o->arg && n > 0 && (size_t)n < sizeof left) snprintf(left + n, sizeof left - (size_t)n, " %s", o->arg);
    printf("  %-28s", left);
    if (strlen(left) > 27) printf("\n  %-28s", "");
    print_words(o->help, 30, 30);
}

static bool is_positional(const cli_opt *o)
{
    return o->kind == CLI_FILE || o->kind == CLI_FILES || o->kind == CLI_REST;
}

static void print_options(const cli_opt *o, bool *headed)
{
    for (; o->kind; o++) {
        if (is_positional(o)) continue;
        if (o->kind == CLI_TABLE) {
            print_options(o->target, headed);
            continue;
        }
        if (o->kind == CLI_HEAD) printf("\n%s\n", o->help);
        else if (!*headed) printf("\nOptions\n");
        *headed = true;
        if (o->kind != CLI_HEAD) print_option(o);
    }
}

static void print_help(const char *usage, const char *about, const cli_opt *o)
{
    bool headed = false;
    printf("usage: quern %s\n\n", usage);
    print_words(about, 0, 0);
    print_options(o, &headed);
    if (!headed) printf("\nOptions\n");
    printf("  -h, --help                  this text\n");
}

/* "-r" is an option; "-1", "-.5" and "-inf" are values, and so is "- milk and eggs". */
static bool looks_like_option(const char *s)
{
    return s[0] == '-' && (s[1] == '-' || isalpha((unsigned char)s[1])) && !strpbrk(s, " \t\n") && strcmp(s, "-inf") != 0;
}

/* "4096", "500M", "1.5GB", "2GiB": thousands, or with an "i" 1024s. */
static bool set_size(const char *cmd, const cli_opt *o, const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    double v = strtod(text, &end);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        const double factor = end[1] == 'i' ? 1024 : 1000;
        for (const char *u = units; u <= unit; u++) v *= factor;
        end += 1 + (end[1] == 'i');
    }
    if (toupper((unsigned char)*end) == 'B') end++;
    if (end == text || *end || !(v >= 0 && v <= 0x1p60)) {
        cli_usage("%s: --%s takes a size such as 500M, 2G or 2GiB, not '%s'", cmd, o->name, text);
        return false;
    }
    *(uint64_t *)o->target = (uint64_t)v;
    return true;
}

static bool set_number(const char *cmd, const cli_opt *o, const char *text)
{
    char *end;
    errno = 0;
    double v = 0;
    uint64_t u = 0;
    if (o->kind == CLI_U64) u = strtoull(text, &end, 10);
    else v = o->kind == CLI_INT ? (double)strtoll(text, &end, 10) : strtod(text, &end);
    const bool bounded = o->lo != 0 || o->hi != 0;
    const bool minus = o->kind == CLI_U64 && text[0] == '-';
    if (end == text || *end || errno || minus || isnan(v) || (o->kind == CLI_INT && (v < INT32_MIN || v > INT32_MAX))) {
        cli_usage("%s: --%s takes %s, not '%s'", cmd, o->name, o->kind == CLI_FLOAT ? "a number" : "a whole number", text);
        return false;
    }
    if (bounded && (v < o->lo || v > o->hi)) {
        if (o->hi == INT32_MAX) cli_usage("%s: --%s takes a number from %.0f on, not '%s'", cmd, o->name, o->lo, text);
        else cli_usage("%s: --%s takes %.10g to %.10g, not '%s'", cmd, o->name, o->lo, o->hi, text);
        return false;
    }
    if (o->kind == CLI_U64) *(uint64_t *)o->target = u;
    else if (o->kind == CLI_INT) *(int32_t *)o->target = (int32_t)v;
    else *(float *)o->target = (float)v;
    return true;
}

static bool set_value(const char *cmd, cli_opt *o, const char *text)
{
    o->given = true;
    if (o->kind == CLI_STR || o->kind == CLI_FILE) {
        *(const char **)o->target = text;
        return true;
    }
    if (o->kind == CLI_REST) {
        cli_rest *r = o->target;
        r->item[r->n++] = text;
        return true;
    }
    if (o->kind == CLI_LIST || o->kind == CLI_FILES) {
        cli_list *l = o->target;
        if (l->n == CLI_LIST_MAX) {
            cli_usage("%s: %s%s is given more than %d times", cmd, o->kind == CLI_LIST ? "--" : "", o->name, CLI_LIST_MAX);
            return false;
        }
        l->item[l->n++] = text;
        return true;
    }
    return o->kind == CLI_SIZE ? set_size(cmd, o, text) : set_number(cmd, o, text);
}

static cli_opt *find(cli_opt *opts, const char *name, size_t n, char letter)
{
    for (cli_opt *o = opts; o->kind; o++) {
        cli_opt *inner = o->kind == CLI_TABLE ? find(o->target, name, n, letter) : NULL;
        if (inner) return inner;
        if (is_positional(o) || o->kind == CLI_HEAD || o->kind == CLI_TABLE) continue;
        if (letter ? o->letter == letter : (strlen(o->name) == n && !memcmp(o->name, name, n))) return o;
    }
    return NULL;
}

/* A positional argument goes to the first CLI_FILE that has none yet, or to CLI_FILES or CLI_REST. */
static bool set_positional(const char *cmd, cli_opt *opts, const char *text)
{
    for (cli_opt *o = opts; o->kind; o++)
        if (is_positional(o) && (o->kind != CLI_FILE || !o->given)) return set_value(cmd, o, text);
    cli_usage("%s: one argument too many: '%s'", cmd, text);
    return false;
}

/* The option that argument `a` names, and its value where it is in the same argument. */
static cli_opt *match(cli_opt *opts, const char *a, const char **value)
{
    *value = NULL;
    if (a[1] == '-') {
        const char *eq = strchr(a, '=');
        if (eq) *value = eq + 1;
        return find(opts, a + 2, eq ? (size_t)(eq - a - 2) : strlen(a + 2), 0);
    }
    cli_opt *o = a[2] ? find(opts, a + 1, strlen(a + 1), 0) : NULL; /* "-pg" is written so by habit, and is not "-p g" */
    if (o) return o;
    o = find(opts, NULL, 0, a[1]);
    if (o && a[2]) *value = a + 2;
    return o;
}

int cli_parse(int argc, char **argv, const char *usage, const char *about, cli_opt *opts)
{
    const char *cmd = argv[0];
    bool only_files = false;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value;
        if (only_files || a[0] != '-' || !a[1]) {
            if (!set_positional(cmd, opts, a)) return CLI_USAGE;
            continue;
        }
        if (!strcmp(a, "--")) {
            only_files = true;
            continue;
        }
        if (!strcmp(a, "--help") || !strcmp(a, "-h")) {
            print_help(usage, about, opts);
            return CLI_OK;
        }
        cli_opt *o = match(opts, a, &value);
        if (!o) return cli_usage("%s: no option '%s'; 'quern %s --help' lists them", cmd, a, cmd);
        if (o->kind == CLI_FLAG) {
            if (value) return cli_usage("%s: '%s' takes no value", cmd, a);
            *(bool *)o->target = o->given = true;
            continue;
        }
        if (!value) {
            if (i + 1 >= argc) return cli_usage("%s: '%s' needs a value (%s)", cmd, a, o->arg);
            if (looks_like_option(argv[i + 1]))
                return cli_usage("%s: '%s' needs a value (%s); one that looks like an option is written --%s='%s'", cmd, a, o->arg, o->name,
                                 argv[i + 1]);
            value = argv[++i];
        }
        if (!set_value(cmd, o, value)) return CLI_USAGE;
    }
    return -1;
}

/* Twice the room, at first `begin`; what never ends is given up at 1 GB, before the machine is out of memory. @return 0 or an errno */
static int grow(char **buf, size_t *cap, size_t begin)
{
    enum { MOST = 1 << 30 };
    const size_t more = *cap ? *cap * 2 : begin;
    char *bigger = more <= MOST ? realloc(*buf, more) : NULL;
    if (!bigger) return more <= MOST ? ENOMEM : EFBIG;
    *buf = bigger;
    *cap = more;
    return 0;
}

char *cli_read_all(const char *path, size_t *n)
{
    const bool is_stdin = !strcmp(path, "-");
    FILE *f = is_stdin ? stdin : fopen(path, "rb");
    char *buf = NULL;
    size_t cap = 0;
    *n = 0;
    if (!f) {
        cli_fault("cannot open %s: %s", path, strerror(errno));
        return NULL;
    }
    int why = 0;
    for (size_t got = 1; got && !why;) {
        why = cap - *n < 2 ? grow(&buf, &cap, 65536) : 0;
        got = why ? 0 : fread(buf + *n, 1, cap - *n - 1, f);
        *n += got;
    }
    if (ferror(f)) why = errno;
    if (!is_stdin) fclose(f);
    if (why) {
        cli_fault("cannot read %s: %s", is_stdin ? "stdin" : path, strerror(why));
        free(buf);
        return NULL;
    }
    buf[*n] = 0;
    return buf;
}

int cli_read_line(FILE *f, char **line, size_t *cap, size_t *n)
{
    int why = 0;
    *n = 0;
    for (int c; !why && (c = getc(f)) != EOF;) {
        if (*n + 2 > *cap && (why = grow(line, cap, 4096))) break;
        if (c == '\n') {
            (*line)[*n] = 0;
            return 1;
        }
        (*line)[(*n)++] = (char)c;
    }
    if (!why && ferror(f) && errno != EINTR) why = errno;
    if (why) {
        cli_fault("cannot read a line: %s", strerror(why));
        return -1;
    }
    if (*n) (*line)[*n] = 0;
    return *n > 0;
}
