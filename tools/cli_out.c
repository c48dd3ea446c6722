#include "cli_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool cli_out_open(cli_out *o, const char *path)
{
    struct stat st;
    *o = (cli_out){ .path = path };
    if (!strcmp(path, "-")) {
        o->f = stdout;
        return true;
    }
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) {
        const size_t n = strlen(path) + sizeof ".partial";
        o->partial = malloc(n);
        if (!o->partial) {
            cli_fault("no memory to write %s", path);
            return false;
        }
        snprintf(o->partial, n, "%s.partial", path);
    }
    o->f = fopen(o->partial ? o->partial : path, "wb");
    if (o->f) return true;
    cli_fault("cannot write %s: %s", path, strerror(errno));
    free(o->partial);
    o->partial = NULL;
    return false;
}

static bool close_whole(cli_out *o)
{
    FILE *f = o->f;
    bool whole = fflush(f) == 0 && !ferror(f);
    if (o->partial) whole = whole && fsync(fileno(f)) == 0;
    const int why = errno;
    o->f = NULL;
    if (f != stdout && fclose(f) != 0) return false;
    errno = why;
    return whole;
}

bool cli_out_commit(cli_out *o)
{
    const bool done = close_whole(o) && (!o->partial || rename(o->partial, o->path) == 0);
    if (!done) {
        cli_fault("cannot write %s: %s", !strcmp(o->path, "-") ? "stdout" : o->path, strerror(errno));
        if (o->partial) unlink(o->partial);
    }
    free(o->partial);
    o->partial = NULL;
    return done;
}

void cli_out_abort(cli_out *o)
{
    if (o->f && o->f != stdout) fclose(o->f);
    if (o->partial) unlink(o->partial);
    free(o->partial);
    *o = (cli_out){ 0 };
}
