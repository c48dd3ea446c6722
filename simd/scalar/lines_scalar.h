/**
 * Between the codes of a file's blocks and the lines of a panel, 16 rows at a time.
 *
 * A word is 4 bytes of the file; a vector of words is the same word of 16 rows. Codes of `bits` bits lie `shift` bits up in the bytes of words,
 * weight i in byte i, and become a line by shifts and masks on whole words: no step looks at a single weight, and every loop runs over the rows,
 * which compilers turn into vector instructions of any width, the baseline's too. bits and shift should be constants.
 */
#ifndef QN_SIMD_LINES_SCALAR_H
#define QN_SIMD_LINES_SCALAR_H

#include <string.h>

#include "simd/scalar/scalar.h"

#define QN_LINES_INLINE static inline __attribute__((always_inline))

/** n_words words from `at`, of rows row_bytes apart; zeros for the rows from n_rows on. */
QN_LINES_INLINE void qn_words_get(const uint8_t *at, size_t row_bytes, int64_t n_rows, const int32_t n_words, qn_line *w)
{
    for (int64_t r = 0; r < n_rows; r++)
        for (int32_t k = 0; k < n_words; k++) memcpy(&w[k][r], at + (size_t)r * row_bytes + 4 * k, 4);
    for (int64_t r = n_rows; r < QN_PANEL; r++)
        for (int32_t k = 0; k < n_words; k++) w[k][r] = 0;
}

/** The same for one half. */
QN_LINES_INLINE void qn_halves_get(const uint8_t *at, size_t row_bytes, int64_t n_rows, uint16_t *h)
{
    for (int64_t r = 0; r < n_rows; r++) h[r] = qn_load_u16(at + (size_t)r * row_bytes);
    for (int64_t r = n_rows; r < QN_PANEL; r++) h[r] = 0;
}

/** The halves of a word. */
QN_LINES_INLINE void qn_halves_put(const uint32_t *word, uint16_t *low, uint16_t *high)
{
    for (int32_t r = 0; r < QN_PANEL; r++) {
        low[r] = (uint16_t)word[r];
        high[r] = (uint16_t)(word[r] >> 16);
    }
}

/** Bytes of n_words words side by side: out[4k + j][r] is byte j of word k of row r. */
QN_LINES_INLINE void qn_bytes_put(qn_line *w, const int32_t n_words, uint8_t (*out)[QN_PANEL])
{
    for (int32_t k = 0; k < n_words; k++)
        for (int32_t j = 0; j < 4; j++)
            for (int32_t r = 0; r < QN_PANEL; r++) out[4 * k + j][r] = (uint8_t)(w[k][r] >> 8 * j);
}

/* Fields a, b, c, d of the bytes of a word: (a, c) into the lowest byte, (b, d) into the next. */
QN_LINES_INLINE uint32_t word_fold(uint32_t word, const int32_t bits)
{
    const uint32_t pair = (1u << 2 * bits) - 1, fields = word & 0x01010101u * ((1u << bits) - 1);
    return (fields | fields >> (16 - bits)) & (pair | pair << 8);
}

/* Bytes of two words, (even, odd) each: even bytes below, odd ones above. */
QN_LINES_INLINE uint32_t words_join(uint32_t low, uint32_t high)
{
    return (low & 0xff) | (high & 0xff) << 8 | (low & 0xff00) << 8 | (high & 0xff00) << 16;
}

/** 4-bit codes of 2 words, 2-bit codes of 4, or 1-bit codes of 8: a line. */
QN_LINES_INLINE void qn_line_put(qn_line *w, const int32_t shift, const int32_t bits, uint32_t *line)
{
    const int32_t n = 4 / bits;
    for (int32_t r = 0; r < QN_PANEL; r++) {
        uint32_t low = 0, high = 0;
        for (int32_t k = 0; k < n; k++) {
            low |= word_fold(w[k][r] >> shift, bits) << 2 * bits * k;
            high |= word_fold(w[n + k][r] >> shift, bits) << 2 * bits * k;
        }
        line[r] = words_join(low, high);
    }
}

/** 4 words whose bytes hold weights i (low) and i + 16 (high), as many formats have them: the 4 lines of a block of 32. */
QN_LINES_INLINE void qn_block4_put(qn_line *w, qn_line *line)
{
    for (int32_t i = 0; i < 4; i++) qn_line_put(w + i % 2 * 2, i / 2 * 4, 4, line[i]);
}

/** 3-bit codes of 8 words, two bits low_shift up in `low`, the third high_shift up in `high`: 3 lines. */
QN_LINES_INLINE void qn_line3_put(qn_line *low, const int32_t low_shift, qn_line *high, const int32_t high_shift, qn_line *line)
{
    for (int32_t r = 0; r < QN_PANEL; r++) {
        uint32_t pair[16];
        for (int32_t k = 0; k < 8; k++) {
            const uint32_t code = (low[k][r] >> low_shift & 0x03030303) | (high[k][r] >> high_shift & 0x01010101) << 2;
            pair[2 * k] = (code & 7) | (code << 8 & 0x70000);
            pair[2 * k + 1] = (code >> 16 & 7) | (code >> 8 & 0x70000);
        }
        for (int32_t i = 0; i < 3; i++) {
            uint32_t v = (pair[15] >> i & 0x00010001) << 15;
            for (int32_t j = 0; j < 5; j++) v |= pair[5 * i + j] << 3 * j;
            line[i][r] = v;
        }
    }
}

/* Swaps the bits of a mask with those `by` above them. */
QN_LINES_INLINE uint32_t bits_swap(uint32_t x, const uint32_t mask, const int32_t by)
{
    const uint32_t differ = (x ^ x >> by) & mask;
    return x ^ differ ^ differ << by;
}

/** Bit i of a word belongs to weight i: a line of 1-bit codes. Even bits go below, odd ones above, in each 4, 8, 16 and 32. */
QN_LINES_INLINE void qn_bits_put(const uint32_t *word, uint32_t *line)
{
    for (int32_t r = 0; r < QN_PANEL; r++)
        line[r] = bits_swap(bits_swap(bits_swap(bits_swap(word[r], 0x22222222, 1), 0x0c0c0c0c, 2), 0x00f000f0, 4), 0x0000ff00, 8);
}

/** Bytes of a word in the order of a line, 0 2 1 3. */
QN_LINES_INLINE void qn_word_put(const uint32_t *word, uint32_t *line)
{
    for (int32_t r = 0; r < QN_PANEL; r++) line[r] = bits_swap(word[r], 0x0000ff00, 8);
}

/** The 3 words that Q4_K and Q5_K share (quant/k_scales.h): 8 scales and 8 minimums of 6 bits. */
QN_LINES_INLINE void qn_scales_k_put(qn_line *w, uint8_t (*scale)[QN_PANEL], uint8_t (*min)[QN_PANEL])
{
    qn_line s[2], m[2];
    for (int32_t r = 0; r < QN_PANEL; r++) {
        s[0][r] = w[0][r] & 0x3f3f3f3f;
        m[0][r] = w[1][r] & 0x3f3f3f3f;
        s[1][r] = (w[2][r] & 0x0f0f0f0f) | (w[0][r] >> 2 & 0x30303030);
        m[1][r] = (w[2][r] >> 4 & 0x0f0f0f0f) | (w[1][r] >> 2 & 0x30303030);
    }
    qn_bytes_put(s, 2, scale);
    qn_bytes_put(m, 2, min);
}

/** Code i (0 .. 31) of row r: 4 lines of 4-bit codes, 2 of 2-bit ones, 1 of bits. */
QN_LINES_INLINE uint32_t qn_line_code(const qn_line *line, int32_t r, int32_t i, const int32_t bits)
{
    const int32_t n = 32 / bits;
    return line[i / n][r] >> (i % n / 2 * bits + i % 2 * 16) & ((1u << bits) - 1);
}

/** Code i (0 .. 31) of the 3 lines of 3-bit codes. */
QN_LINES_INLINE uint32_t qn_line3_code(const qn_line *line, int32_t r, int32_t i)
{
    const int32_t p = i / 2, up = i % 2 * 16;
    if (p < 15) return line[p / 5][r] >> (p % 5 * 3 + up) & 7;
    return (line[0][r] >> (15 + up) & 1) | (line[1][r] >> (15 + up) & 1) << 1 | (line[2][r] >> (15 + up) & 1) << 2;
}

#endif
