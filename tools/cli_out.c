#include "cli_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of its own beside the path: one that somebody else has, or that an earlier run left behind, is stepped over. @return 0 or an errno */
static int open_partial(cli_out *o)
{
    enum { TRIES = 100 };
    const size_t cap = strlen(o->path) + 64;
    int fd = -1;
    o->partial = malloc(cap);
    if (!o->partial) return ENOMEM;
    for (int i = 0; i < TRIES && fd < 0; i++) {
        snprintf(o->partial, cap, "%s.part-%ld-%d", o->path, (long)getpid(), i);
        fd = open(o->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    if (fd < 0) return errno;
    o->f = fdopen(fd, "wb");
    if (o->f) return 0;
    const int why = errno;
    close(fd);
    unlink(o->partial);
    return why;
}

static int open_straight(cli_out *o)
{
    o->f = fopen(o->path, "wb");
    return o->f ? 0 : errno;
}

bool cli_out_open(cli_out *o, const char *path)
{
    struct stat st;
    *o = (cli_out){ .path = path };
    if (!*path) {
        cli_fault("the name of the file to write is empty");
        return false;
    }
    if (!strcmp(path, "-")) {
        o->f = stdout;
        return true;
    }
    const int why = stat(path, &st) != 0 || S_ISREG(st.st_mode) ? open_partial(o) : open_straight(o);
    if (!why) return true;
    cli_fault("cannot write %s: %s", path, strerror(why));
    free(o->partial);
    o->partial = NULL;
    return false;
}

int cli_out_check(const char *path, const char *const *in, size_t n)
{
    struct stat out, st;
    if (!path || !strcmp(path, "-") || stat(path, &out) != 0 || !S_ISREG(out.st_mode)) return -1;
    for (size_t i = 0; i < n; i++)
        if (in[i] && strcmp(in[i], "-") != 0 && stat(in[i], &st) == 0 && st.st_dev == out.st_dev && st.st_ino == out.st_ino)
            return cli_fault("%s is a file that is read; write to another name", path);
    return -1;
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
