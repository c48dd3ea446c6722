/* exp, log and pow with one written sequence of operations: the C library's differ in their last bit between versions and CPUs, and a
 * token drawn from a probability that moved by a bit may be another token. Only + - * / and conversions, so the same on every machine. */
#ifndef QN_SAMPLE_EXPLOG_H
#define QN_SAMPLE_EXPLOG_H

#include <stdint.h>
#include <string.h>

/* ln 2 in two parts; the first has 21 trailing zero bits, so that k * LN2_HI is exact for every exponent k. */
#define QN_LN2_HI 6.93147180369123816490e-01
#define QN_LN2_LO 1.90821492927058770002e-10
#define QN_LOG2_E 1.44269504088896338700e+00

static inline double qn_exp2_int(int64_t k)
{
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

/**
 * e^x for x <= 709; 0 below -708. Relative error under 4e-16: 2^k times the Taylor series of the rest, |rest| <= ln2 / 2. No branch and
 * no call, so that loops over it are vectorised: adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits.
 */
static inline double qn_exp(double x)
{
    const double held = x > -708 ? x : -708, shift = 6755399441055744.0;
    const double y = held * QN_LOG2_E + shift, k = y - shift;
    uint64_t bits;
    memcpy(&bits, &y, 8);
    bits = (bits + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, 8);
    const double r = (held - k * QN_LN2_HI) - k * QN_LN2_LO;
    double s = 1.0 / 6227020800; /* 1/13!; the first term left out is below 5e-18 */
    s = s * r + 1.0 / 479001600;
    s = s * r + 1.0 / 39916800;
    s = s * r + 1.0 / 3628800;
    s = s * r + 1.0 / 362880;
    s = s * r + 1.0 / 40320;
    s = s * r + 1.0 / 5040;
    s = s * r + 1.0 / 720;
    s = s * r + 1.0 / 120;
    s = s * r + 1.0 / 24;
    s = s * r + 1.0 / 6;
    s = s * r + 0.5;
    s = s * r + 1;
    s = s * r + 1;
    return x > -708 ? s * scale : 0;
}

/** Natural logarithm of a positive, normal x. With m = x / 2^k in [0.7, 1.42): log m = 2 artanh((m - 1) / (m + 1)). */
static inline double qn_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    int64_t k = (int64_t)(bits >> 52) - 1023;
    double m = x * qn_exp2_int(-k);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    const double t = (m - 1) / (m + 1), t2 = t * t;
    double s = 1.0 / 25; /* |t| < 0.1716: the first term left out is below 1e-21 */
    for (int i = 23; i >= 1; i -= 2) s = s * t2 + 1.0 / i;
    return (double)k * QN_LN2_HI + (2 * t * s + (double)k * QN_LN2_LO);
}

/** base^y for base > 0, held within [0, 1e300]. */
static inline double qn_pow(double base, double y)
{
    const double x = y * qn_log(base);
    return x > 690 ? 1e300 : qn_exp(x);
}

#endif
