/* Small random models of any registered architecture, written as real GGUF files, with a toy vocabulary of bytes and a few words. */
#ifndef QN_TEST_TINY_MODEL_H
#define QN_TEST_TINY_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { TINY_VOCAB = 3 + 256 + 29, TINY_WINDOW = 24, TINY_CTX = 1024 };

/**
 * @param name  of an architecture; with "+moe" behind it the form with experts of one that is dense without
 * @param fmt   GGUF type of the matrices: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K or Q6_K
 * @param seed  of the weights
 * @return false after printing why
 */
bool tiny_model_write(const char *path, const char *name, int32_t fmt, uint32_t seed);

/** Names of all registered architectures in all their forms. @return false past the last */
bool tiny_model_name(int32_t i, char name[64]);

/** Only these from now on, as a test's command line has them. @param names  ends with NULL; none: all. Borrowed. */
void tiny_model_choose(char *const *names);

/** The types above. @return their number */
int32_t tiny_model_formats(const int32_t **types);

#endif
