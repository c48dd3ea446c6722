/* Tensor formats. Each quant/fmt_<name>.c defines `const qn_fmt qn_fmt_<name>`; the build makes the registry. */
#ifndef QN_QUANT_H
#define QN_QUANT_H

#include "src/base/err.h"

enum { QN_MAX_BLOCK = 256, QN_MAX_SUB = 16 };

/** How the weights of a block are built from its numbers: what a search for the best numbers has to know. */
typedef enum qn_grid_kind {
    QN_GRID_NONE,    /* not searched: plain floats, or formats that are read and never written                   */
    QN_GRID_SCALE,   /* w = d * scale[sub] * level(code); one sub-block without a scale of its own: w = d * level */
    QN_GRID_AFFINE,  /* w = d * scale[sub] * code - m * min[sub]; without scales of its own: w = d * code - m     */
    QN_GRID_POWER,   /* w = d * level(code), d a power of two                                                     */
} qn_grid_kind;

typedef struct qn_grid {
    qn_grid_kind kind;
    int16_t n_sub;              /* sub-blocks; 1: the block has one scale and no scales under it            */
    int16_t n_codes;            /* codes are 0 .. n_codes - 1                                               */
    int16_t zero;               /* level(code) = code - zero                                                */
    int16_t scale_lo, scale_hi; /* of scale[sub], with n_sub > 1; min[sub] is 0 .. scale_hi                 */
    const int8_t *levels;       /* [n_codes], rising; NULL: even levels                                     */
} qn_grid;

/** The numbers of one block, unpacked. */
typedef struct qn_fields {
    float d, m;                  /* values that the format's own scale type has exactly */
    int8_t scale[QN_MAX_SUB], min[QN_MAX_SUB];
    uint8_t code[QN_MAX_BLOCK];  /* weight i in its place, whatever the order in the file */
} qn_fields;

typedef struct qn_fmt {
    int32_t id;        /* type number in a GGUF file                                        */
    const char *name;  /* as GGUF tools print it: "Q4_K"                                    */
    int32_t block;     /* weights in a block                                                */
    int32_t bytes;     /* bytes of a block                                                  */
    /** Decode n_blocks blocks to float32, bit for bit as the GGML reference does. @param out [n_blocks * block] */
    void (*decode)(const uint8_t *blocks, int64_t n_blocks, float *out);
    /**
     * Find the blocks that are nearest to w in the weighted sum of squares. NULL: the format is read and never written.
     * A NaN counts as 0 and what is out of the format's range as its nearest end, so that no NaN or infinity is ever written.
     * @param w           [n_blocks * block]
     * @param importance  [n_blocks * block] weights of the squared errors; negative, infinite and NaN ones count as 0. NULL: all are equal
     * @param out         [n_blocks * bytes]
     */
    void (*encode)(const float *w, const float *importance, int64_t n_blocks, uint8_t *out);
    /** Write one block from its numbers. NULL: no grid. @param block [bytes] */
    void (*pack)(const qn_fields *f, uint8_t *block);
    qn_grid grid;
} qn_fmt;

/** NULL for a type number that no format has. */
const qn_fmt *qn_fmt_by_id(int32_t id);
/** Case-insensitive; NULL when unknown. */
const qn_fmt *qn_fmt_by_name(const char *name);
int32_t qn_fmt_count(void);
/** @param i 0 .. qn_fmt_count() - 1 */
const qn_fmt *qn_fmt_at(int32_t i);

/** Bytes of a row of n weights; false when n is no multiple of the block or the product does not fit. */
bool qn_fmt_row_bytes(const qn_fmt *fmt, int64_t n, size_t *out);

/** `encode` of the formats that have a grid: the search of quant/search.h at the baseline of the instruction set. */
void qn_encode_baseline(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, uint8_t *out);

/** The same, unpacked. @param fields [n_blocks] */
void qn_search_baseline(const qn_fmt *fmt, const float *w, const float *importance, int64_t n_blocks, qn_fields *fields);

#endif
