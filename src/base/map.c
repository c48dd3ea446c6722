#define _FILE_OFFSET_BITS 64 /* sizes above 2 GiB on 32-bit systems too */

#include "src/base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t nothing[1]; /* what an empty file points to */

static qn_status check_kind(const struct stat *st, qn_err *err)
{
    if (S_ISDIR(st->st_mode)) return qn_fail(err, QN_ERR_IO, "this is a folder, not a file");
    if (!S_ISREG(st->st_mode)) return qn_fail(err, QN_ERR_IO, "this is a pipe or a device, not a file that can be mapped");
    if (st->st_size < 0 || (uint64_t)st->st_size > SIZE_MAX / 2)
        return qn_fail(err, QN_ERR_IO, "%llu bytes are more than this machine can address", (unsigned long long)st->st_size);
    return QN_OK;
}

static qn_status map_fd(qn_map *out, int fd, qn_err *err)
{
    struct stat st;
    if (fstat(fd, &st)) return qn_fail(err, QN_ERR_IO, "cannot be examined: %s", strerror(errno));
    QN_TRY(check_kind(&st, err));
    *out = (qn_map){ nothing, 0, 0, fd };
    if (st.st_size == 0) return QN_OK; /* mmap refuses a length of zero */
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        const int why = errno;
        *out = (qn_map){ 0 };
        return qn_fail(err, why == ENOMEM ? QN_ERR_NOMEM : QN_ERR_IO, "cannot be mapped: %s", strerror(why));
    }
    *out = (qn_map){ p, (size_t)st.st_size, (size_t)st.st_size, fd };
    return QN_OK;
}

qn_status qn_map_open(qn_map *out, const char *path, qn_err *err)
{
    *out = (qn_map){ 0 };
    int fd;
    do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* O_NONBLOCK: opening a pipe must not wait for a writer */
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return qn_fail(err, QN_ERR_IO, "cannot be opened: %s", strerror(errno));
    const qn_status s = map_fd(out, fd, err);
    if (s != QN_OK) close(fd);
    return s;
}

void qn_map_close(qn_map *map)
{
    if (map->mapped_bytes) munmap((void *)(uintptr_t)map->ptr, map->mapped_bytes);
    if (map->ptr) close(map->fd);
    *map = (qn_map){ 0 };
}

qn_status qn_map_read(const qn_map *map, uint64_t begin, size_t n, void *out, qn_err *err)
{
    uint8_t *p = out;
    while (n) {
        const size_t most = (size_t)1 << 30; /* systems read less than 2 GiB at a time */
        const ssize_t k = pread(map->fd, p, n < most ? n : most, (off_t)begin);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return qn_fail(err, QN_ERR_IO, "cannot be read at byte %llu: %s", (unsigned long long)begin, strerror(errno));
        if (k == 0) return qn_fail(err, QN_ERR_IO, "was cut short to %llu bytes while it was read", (unsigned long long)begin);
        p += k;
        begin += (uint64_t)k;
        n -= (size_t)k;
    }
    return QN_OK;
}

bool qn_map_is_file(const qn_map *map, const char *path)
{
    struct stat mine, other;
    return fstat(map->fd, &mine) == 0 && stat(path, &other) == 0 && mine.st_dev == other.st_dev && mine.st_ino == other.st_ino;
}

void qn_map_advise(const qn_map *map, size_t begin, size_t n, qn_map_hint hint)
{
    const long reported = sysconf(_SC_PAGESIZE);
    const size_t page = reported > 0 ? (size_t)reported : 4096;
    if (begin >= map->mapped_bytes) return;
    if (n > map->mapped_bytes - begin) n = map->mapped_bytes - begin;
    size_t from = begin, to = begin + n;
    if (hint == QN_MAP_DROP) {
        from = (from + page - 1) / page * page; /* a page shared with a neighbour stays */
        to = to == map->mapped_bytes ? to : to / page * page;
    } else {
        from = from / page * page;
    }
    if (from >= to) return;
    (void)madvise((void *)(uintptr_t)(map->ptr + from), to - from, hint == QN_MAP_DROP ? MADV_DONTNEED : MADV_WILLNEED);
}
