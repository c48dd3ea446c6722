/* Reading turns: with libedit on a terminal where it is there, plain lines otherwise. */
#include "chat.h"
#include "cli_interrupt.h"
#include "cli_term.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef QUERN_LIBEDIT
#include <histedit.h>
#include <wchar.h>
#define CTRL(c) ((c) & 0x1f)
#endif

struct chat_input {
    bool interactive;
    FILE *screen;          /* for prompts: stdout where that is a terminal, else stderr */
    const char *prompt;
    char *line;            /* plain reading */
    size_t line_cap;
    char *text;            /* what is handed out */
    size_t n_text, text_cap;
    bool interrupted, had_text;
#ifdef QUERN_LIBEDIT
    EditLine *el;
    History *history;
    char history_path[4160];
#endif
};

static const char prompt_plain[] = "> ", prompt_more[] = ". ";
#ifdef QUERN_LIBEDIT
static const char prompt_colour[] = "\1\033[1;32m\1> \1\033[0m\1";
#endif

/* ---- libedit ---- */

#ifdef QUERN_LIBEDIT
static char *el_prompt(EditLine *el)
{
    chat_input *in = NULL;
    el_get(el, EL_CLIENTDATA, &in);
    return (char *)in->prompt;
}

static void suspend(EditLine *el)
{
    el_set(el, EL_PREP_TERM, 0);
    raise(SIGTSTP);
    el_set(el, EL_PREP_TERM, 1);
    el_set(el, EL_REFRESH);
}

/* One character for libedit. Ctrl-C and Ctrl-Z come as keys, for libedit's own signal handling sends them on to the whole process group;
 * after Ctrl-C the line is at its end. */
static int read_key(EditLine *el, wchar_t *out)
{
    chat_input *in = NULL;
    mbstate_t state = { 0 };
    el_get(el, EL_CLIENTDATA, &in);
    for (;;) {
        char byte;
        const ssize_t got = cli_interrupted() ? -1 : read(STDIN_FILENO, &byte, 1);
        if (got < 0 && errno == EINTR && !cli_interrupted()) continue;
        if (got <= 0 && !cli_interrupted()) return 0;
        if (cli_interrupted() || byte == CTRL('c')) { /* a signal: pressed before the terminal's mode was set */
            cli_interrupt_clear();
            const LineInfo *line = el_line(el);
            in->interrupted = true;
            in->had_text = line->lastchar != line->buffer;
            return 0;
        }
        if (byte == CTRL('z')) {
            suspend(el);
            continue;
        }
        const size_t len = mbrtowc(out, &byte, 1, &state);
        if (len == (size_t)-2) continue;
        if (len != (size_t)-1) return 1;
        memset(&state, 0, sizeof state); /* no character: the next byte may begin one */
    }
}

static void history_open(chat_input *in)
{
    enum { KEPT = 1000 };
    HistEvent ev;
    char dir[4096];
    in->history = history_init();
    if (!in->history) return;
    history(in->history, &ev, H_SETSIZE, KEPT);
    history(in->history, &ev, H_SETUNIQUE, 1);
    el_set(in->el, EL_HIST, history, in->history);
    if (!cli_cache_dir(dir)) return;
    snprintf(in->history_path, sizeof in->history_path, "%s/chat_history", dir);
    history(in->history, &ev, H_LOAD, in->history_path);
}

static bool editing_open(chat_input *in)
{
    const char *term = getenv("TERM");
    if (!term || !*term || !strcmp(term, "dumb")) return false;
    in->el = el_init("quern", stdin, in->screen, stderr);
    if (!in->el) return false;
    el_set(in->el, EL_CLIENTDATA, in);
    el_set(in->el, EL_EDITOR, "emacs");
    el_set(in->el, EL_PROMPT_ESC, el_prompt, '\1');
    el_set(in->el, EL_GETCFN, read_key);
    el_set(in->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_set(in->el, EL_SETTY, "-d", "-isig", NULL);
    history_open(in);
    return true;
}

static void editing_close(chat_input *in)
{
    HistEvent ev;
    if (in->history && *in->history_path) {
        const mode_t old = umask(077); /* what was typed is the user's alone */
        history(in->history, &ev, H_SAVE, in->history_path);
        umask(old);
    }
    if (in->el) el_end(in->el);
    if (in->history) history_end(in->history);
}

static chat_read read_edited(chat_input *in, const char **line, size_t *n)
{
    int count = 0;
    HistEvent ev;
    in->interrupted = false;
    el_resize(in->el);
    el_set(in->el, EL_PREP_TERM, 1); /* before the prompt is seen */
    const char *got = el_gets(in->el, &count);
    if (in->interrupted) {
        fputs("^C\n", in->screen);
        fflush(in->screen);
        el_reset(in->el);
        return in->had_text ? CHAT_DROPPED : CHAT_INTERRUPT;
    }
    if (!got || count <= 0) {
        fputc('\n', in->screen); /* the shell's prompt begins a line */
        fflush(in->screen);
        return CHAT_END;
    }
    *line = got;
    *n = (size_t)count;
    if (got[count - 1] == '\n') --*n;
    if (*n && in->history) history(in->history, &ev, H_ENTER, got);
    return CHAT_TEXT;
}
#endif

/* ---- plain lines ---- */

static chat_read read_plain(chat_input *in, const char **line, size_t *n)
{
    if (in->interactive) {
        fputs(in->prompt, in->screen);
        fflush(in->screen);
    }
    const int got = cli_read_line(stdin, &in->line, &in->line_cap, n);
    *line = in->line;
    if (got) return got > 0 ? CHAT_TEXT : CHAT_FAULT;
    if (!cli_interrupted()) return CHAT_END;
    clearerr(stdin); /* the read was broken off by Ctrl-C */
    cli_interrupt_clear();
    return CHAT_INTERRUPT;
}

static chat_read read_line(chat_input *in, const char *prompt, const char **line, size_t *n)
{
    in->prompt = prompt;
#ifdef QUERN_LIBEDIT
    if (in->el) return read_edited(in, line, n);
#endif
    return read_plain(in, line, n);
}

/* ---- turns ---- */

chat_input *chat_input_open(bool interactive)
{
    chat_input *in = calloc(1, sizeof *in);
    if (!in) {
        cli_fault("no memory to read input");
        return NULL;
    }
    in->interactive = interactive;
    in->screen = isatty(STDOUT_FILENO) ? stdout : stderr;
#ifdef QUERN_LIBEDIT
    if (interactive) editing_open(in);
#endif
    return in;
}

void chat_input_close(chat_input **input)
{
    chat_input *in = *input;
    if (!in) return;
#ifdef QUERN_LIBEDIT
    editing_close(in);
#endif
    free(in->line);
    free(in->text);
    free(in);
    *input = NULL;
}

/* One turn of a pipe that never ends would take all memory. */
enum { MOST_TEXT = 1 << 30 };

static bool add(chat_input *in, const char *bytes, size_t n)
{
    if (in->n_text + n + 1 > in->text_cap) {
        const size_t cap = 2 * (in->n_text + n + 1);
        char *bigger = cap < MOST_TEXT ? realloc(in->text, cap) : NULL;
        if (!bigger) {
            cli_fault("a turn of over %zu bytes: there is no memory for it", in->n_text);
            return false;
        }
        in->text = bigger;
        in->text_cap = cap;
    }
    if (n) memcpy(in->text + in->n_text, bytes, n);
    in->n_text += n;
    in->text[in->n_text] = 0;
    return true;
}

static bool ends_in(const char *s, size_t n, const char *tail)
{
    const size_t m = strlen(tail);
    return n >= m && !memcmp(s + n - m, tail, m);
}

/* From """ to """: what follows the first and stands before the second on their lines belongs to it. */
static chat_read read_block(chat_input *in, const char *line, size_t n)
{
    line += 3;
    n -= 3;
    for (bool first = true;; first = false) {
        const bool last = ends_in(line, n, "\"\"\"");
        if (last) n -= 3;
        if ((!first && !add(in, "\n", in->n_text ? 1 : 0)) || !add(in, line, n)) return CHAT_FAULT;
        if (last) break;
        const chat_read r = read_line(in, prompt_more, &line, &n);
        if (r == CHAT_END) break; /* the end of input closes it */
        if (r != CHAT_TEXT) return r == CHAT_FAULT ? r : CHAT_DROPPED;
    }
    while (in->n_text && in->text[in->n_text - 1] == '\n') in->text[--in->n_text] = 0;
    return CHAT_TEXT;
}

static chat_read read_continued(chat_input *in, const char *line, size_t n)
{
    while (ends_in(line, n, "\\")) {
        if (!add(in, line, n - 1) || !add(in, "\n", 1)) return CHAT_FAULT;
        const chat_read r = read_line(in, prompt_more, &line, &n);
        if (r == CHAT_END) return CHAT_TEXT;
        if (r != CHAT_TEXT) return r == CHAT_FAULT ? r : CHAT_DROPPED;
    }
    return add(in, line, n) ? CHAT_TEXT : CHAT_FAULT;
}

chat_read chat_input_read(chat_input *in, const char **text, size_t *n)
{
    const char *line, *prompt = prompt_plain;
    size_t n_line;
#ifdef QUERN_LIBEDIT
    if (cli_wants_colour(in->screen) && in->el) prompt = prompt_colour;
#endif
    in->n_text = 0;
    chat_read r = read_line(in, prompt, &line, &n_line);
    if (r != CHAT_TEXT) return r;
    r = n_line >= 3 && !memcmp(line, "\"\"\"", 3) ? read_block(in, line, n_line) : read_continued(in, line, n_line);
    *text = in->text;
    *n = in->n_text;
    return r;
}
