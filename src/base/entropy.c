#include "src/base/entropy.h"

#include <sys/random.h>
#include <time.h>

/* The last step of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on all of x. */
static uint64_t spread(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t qn_entropy(void)
{
    uint64_t x;
    if (getrandom(&x, sizeof x, GRND_NONBLOCK) == (ssize_t)sizeof x) return x;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return spread((uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec);
}
