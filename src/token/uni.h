/* Code points and the classes that pre-tokenizers ask for. Bytes that are not UTF-8 become code points of their own, so that every text
 * has an exact way back. */
#ifndef QN_TOKEN_UNI_H
#define QN_TOKEN_UNI_H

#include <stddef.h>
#include <stdint.h>

/** Classes of a code point, as bits. A letter has QN_C_LETTER and, with a case, QN_C_UPPER (Lu, Lt) or QN_C_LOWER (Ll). */
enum {
    QN_C_LETTER = 1 << 0,  /* \p{L}                                                         */
    QN_C_MARK = 1 << 1,    /* \p{M}                                                         */
    QN_C_NUMBER = 1 << 2,  /* \p{N}                                                         */
    QN_C_PUNCT = 1 << 3,   /* \p{P}                                                         */
    QN_C_SYMBOL = 1 << 4,  /* \p{S}; bytes that are not UTF-8 count as one of these         */
    QN_C_SPACE = 1 << 5,   /* \s: Unicode's White_Space                                     */
    QN_C_NEWLINE = 1 << 6, /* CR and LF                                                     */
    QN_C_UPPER = 1 << 7,   /* \p{Lu} \p{Lt}                                                 */
    QN_C_LOWER = 1 << 8,   /* \p{Ll}                                                        */
    QN_C_DIGIT = 1 << 9,   /* \p{Nd}, \d                                                    */
    QN_C_HAN = 1 << 10,    /* \p{Han}                                                       */
    QN_C_JOIN = 1 << 11,   /* \p{Pc}: with letters, marks and numbers the word characters \w */
};

/** A byte b that is not part of well-formed UTF-8 is the code point QN_CP_BYTE + b. */
#define QN_CP_BYTE 0x110000u

uint16_t qn_uni_class(uint32_t cp);

/** Decode one code point at text[0], n >= 1 bytes left; returns the bytes taken, 1 .. 4. Overlong forms, surrogates and values above
 *  10FFFF are not UTF-8. */
size_t qn_utf8_get(const char *text, size_t n, uint32_t *cp);

/** The UTF-8 of a code point, or the one byte of QN_CP_BYTE + b. @param out [4]; returns 1 .. 4. */
size_t qn_utf8_put(uint32_t cp, char *out);

/** Bytes that qn_utf8_put would write. */
static inline size_t qn_utf8_len(uint32_t cp)
{
    return cp < 0x80 || cp >= QN_CP_BYTE ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
}

/** A closed range of code points. */
typedef struct qn_cp_range {
    uint32_t first, last;
} qn_cp_range;

/** Is cp in one of n ascending, disjoint ranges? */
int qn_cp_in(uint32_t cp, const qn_cp_range *ranges, size_t n);

#endif
