/* The file of results: what it holds from an earlier run, and what is appended. */
#include "batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char beginning[] = "{\"id\": \"" BATCH_ID;

/* Requests by the name that their results go by: "id x" or "line 7". */
static json_t *names_of(const batch_lines *l)
{
    json_t *names = json_object();
    char number[32];
    for (int32_t i = 0; i < l->n && names; i++) {
        const batch_line *line = &l->line[i];
        json_t *o = line->custom_id ? json_sprintf("id %s", line->custom_id) : NULL;
        snprintf(number, sizeof number, "line %d", line->number);
        const bool bad = (line->custom_id && !o) || json_object_set_new(names, o ? json_string_value(o) : number, json_integer(i + 1)) != 0;
        json_decref(o);
        if (!bad) continue;
        json_decref(names);
        names = NULL;
    }
    return names;
}

/* One line of results marks its request. */
static int take_result(const char *path, int32_t number, const char *text, size_t len, json_t *names, batch_lines *l)
{
    json_t *o = json_loadb(text, len, JSON_ALLOW_NUL, NULL), *custom = json_object_get(o, "custom_id"), *at = json_object_get(o, "line");
    const char *id = json_string_value(json_object_get(o, "id"));
    const bool known = id && !strncmp(id, BATCH_ID, strlen(BATCH_ID)) && (json_is_string(custom) || json_is_integer(at));
    json_t *name = json_is_string(custom) ? json_sprintf("id %s", json_string_value(custom))
                                          : json_sprintf("line %lld", (long long)json_integer_value(at));
    const int32_t i = name ? (int32_t)json_integer_value(json_object_get(names, json_string_value(name))) - 1 : -1;
    int code = -1;
    if (!known) code = cli_fault("%s, line %d: this is no result of a batch; name another file for results", path, number);
    else if (i < 0) code = cli_fault("%s, line %d: there is no request of %s; name another file for results", path, number, json_string_value(name));
    else if (strtoull(id + strlen(BATCH_ID), NULL, 16) != l->line[i].hash)
        code = cli_fault("%s, line %d: the request of %s was another one; take this line out to run it anew, or name another file for results", path,
                         number, json_string_value(name));
    else {
        l->line[i].is_done = true;
        l->line[i].has_failed = json_is_object(json_object_get(o, "error"));
    }
    json_decref(name);
    json_decref(o);
    return code;
}

/* Results up to the last newline. What follows it was torn by a kill, if it looks so. @return -1 and how many bytes stay */
static int take_results(const char *path, const char *bytes, size_t n, json_t *names, batch_lines *l, size_t *n_whole)
{
    int code = -1;
    int32_t number = 1;
    const char *p = bytes, *end = bytes + n;
    for (const char *stop; code < 0 && p < end && (stop = memchr(p, '\n', (size_t)(end - p))); p = stop + 1, number++)
        code = take_result(path, number, p, (size_t)(stop - p), names, l);
    *n_whole = (size_t)(p - bytes);
    const size_t torn = n - *n_whole, most = sizeof beginning - 1;
    if (code < 0 && memcmp(p, beginning, torn < most ? torn : most) != 0)
        code = cli_fault("%s, line %d: this is no result of a batch; name another file for results", path, number);
    return code;
}

static int resume(batch_out *o, batch_lines *l)
{
    size_t n, n_whole = 0;
    char *bytes = cli_read_all(o->path, &n);
    json_t *names = names_of(l);
    int code = !bytes ? CLI_FAULT : names ? take_results(o->path, bytes, n, names, l, &n_whole) : cli_fault("no memory to read %s", o->path);
    if (code < 0 && n_whole < n && ftruncate(o->fd, (off_t)n_whole) != 0) code = cli_fault("cannot cut %s: %s", o->path, strerror(errno));
    json_decref(names);
    free(bytes);
    return code;
}

int batch_out_open(batch_out *o, const char *path, batch_lines *l)
{
    struct stat st;
    *o = (batch_out){ STDOUT_FILENO, path };
    if (!strcmp(path, "-")) return -1;
    o->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (o->fd < 0 && errno == EACCES) o->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC); /* a pipe or device that cannot be read */
    if (o->fd < 0 || fstat(o->fd, &st) != 0) return cli_fault("cannot write %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return -1;
    if (flock(o->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return cli_fault("another batch is writing %s", path);
    return resume(o, l);
}

bool batch_out_write(batch_out *o, json_t *result)
{
    char *text = result ? json_dumps(result, 0) : NULL;
    if (!text) {
        cli_fault("no memory for a result");
        return false;
    }
    const size_t n = strlen(text) + 1;
    text[n - 1] = '\n';
    size_t done = 0;
    while (done < n) {
        const ssize_t w = write(o->fd, text + done, n - done);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) {
            cli_fault("cannot write %s: %s", !strcmp(o->path, "-") ? "stdout" : o->path, strerror(errno));
            break;
        }
        done += (size_t)w;
    }
    free(text);
    return done == n;
}

bool batch_out_close(batch_out *o)
{
    const int fd = o->fd;
    o->fd = -1;
    if (fd < 0 || fd == STDOUT_FILENO || close(fd) == 0) return true;
    cli_fault("cannot write %s: %s", o->path, strerror(errno));
    return false;
}
