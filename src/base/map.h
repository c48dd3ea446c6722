/* A file in memory, read-only. */
#ifndef QN_BASE_MAP_H
#define QN_BASE_MAP_H

#include "src/base/err.h"

typedef struct qn_map {
    const uint8_t *ptr; /* [n_bytes]; page-aligned; never NULL while open, an empty file included */
    size_t n_bytes;
    size_t mapped_bytes; /* 0: nothing is mapped (an empty file)                            */
    int fd;              /* of the file, while open; 0 in a closed map                      */
} qn_map;

/**
 * Map a regular file. Folders, pipes and devices are refused without waiting on them. The bytes are those of the file: a program that
 * shortens it while it is mapped makes reads of the lost pages fail with SIGBUS, which no check here can see coming.
 * @return QN_ERR_IO with the system's reason (the sentence leaves the path to the caller); *out is closed then
 */
qn_status qn_map_open(qn_map *out, const char *path, qn_err *err);
/** Accepts a closed map. */
void qn_map_close(qn_map *map);

/** Copy bytes [begin, begin + n) of the file, from any thread. In place of a read of `ptr` where a disk that fails, or a file that is cut short
 *  meanwhile, must be a status and no signal. @return QN_ERR_IO; the sentence leaves the path to the caller */
qn_status qn_map_read(const qn_map *map, uint64_t begin, size_t n, void *out, qn_err *err);
/** Is this the file that `path` leads to? */
bool qn_map_is_file(const qn_map *map, const char *path);

typedef enum qn_map_hint {
    QN_MAP_DROP,   /* the pages are not needed any more; they stay readable. Whole pages inside the range only */
    QN_MAP_EXPECT, /* about to be read from front to back                                                      */
} qn_map_hint;
/** Advice about bytes [begin, begin + n); ranges outside the map are cut. A system that ignores it costs speed alone. */
void qn_map_advise(const qn_map *map, size_t begin, size_t n, qn_map_hint hint);

#endif
