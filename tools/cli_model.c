#include "cli.h"
#include "cli_interrupt.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_CAP = 4096 };
#define DEFAULT_MODEL "SmolLM2-135M-Instruct"

bool cli_cache_dir(char *out)
{
    const char *own = getenv("QUERN_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (own && *own) n = snprintf(out, PATH_CAP, "%s", own);
    else if (xdg && *xdg) n = snprintf(out, PATH_CAP, "%s/quern", xdg);
    else if (home && *home) n = snprintf(out, PATH_CAP, "%s/.cache/quern", home);
    return n > 0 && n < PATH_CAP;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static bool ends_in_gguf(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && !strcasecmp(name + n - 5, ".gguf");
}

/* The first file in order of name that begins with `prefix`, so that the answer does not depend on the folder's order. */
static bool find_in(const char *dir, const char *prefix, char *out)
{
    char best[256] = "";
    DIR *d = opendir(dir);
    if (!d) return false;
    for (struct dirent *e; (e = readdir(d));)
        if (ends_in_gguf(e->d_name) && !strncasecmp(e->d_name, prefix, strlen(prefix)) && (!*best || strcmp(e->d_name, best) < 0))
            snprintf(best, sizeof best, "%s", e->d_name);
    closedir(d);
    const int n = snprintf(out, PATH_CAP, "%s/%s", dir, best);
    return *best && n > 0 && n < PATH_CAP;
}

bool cli_model_path(const char *arg, char *out)
{
    char dir[PATH_CAP];
    if (arg && !*arg) {
        cli_fault("the name of the model is empty");
        return false;
    }
    if (arg && exists(arg)) {
        const int n = snprintf(out, PATH_CAP, "%s", arg);
        return n > 0 && n < PATH_CAP;
    }
    const bool have_dir = cli_cache_dir(dir);
    if (have_dir && (!arg || !strchr(arg, '/')) && find_in(dir, arg ? arg : DEFAULT_MODEL, out)) return true;
    if (!arg) cli_fault("the default model is not in %s; 'tools/start' fetches it, or name a file", have_dir ? dir : "the cache (HOME is not set)");
    else if (is_folder(arg)) cli_fault("%s is a folder: name a file in it", arg);
    else if (strchr(arg, '/') || ends_in_gguf(arg)) cli_fault("no file %s", arg);
    else cli_fault("no file '%s', and no model of that name in %s", arg, have_dir ? dir : "the cache");
    return false;
}

bool cli_progress(void *text, uint64_t done, uint64_t total)
{
    enum { WIDTH = 30 };
    const bool go_on = !cli_interrupted();
    if (!isatty(STDERR_FILENO)) return go_on;
    if (done >= total || !go_on) {
        fputs("\r\033[K", stderr);
        return go_on;
    }
    const int full = total ? (int)((double)done / (double)total * WIDTH) : 0;
    fprintf(stderr, "\r%s [%.*s%.*s] %3d %%", (const char *)text, full, "##############################", WIDTH - full,
            "..............................", total ? (int)((double)done / (double)total * 100) : 0);
    fflush(stderr);
    return true;
}
