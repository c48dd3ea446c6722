/* What this CPU and this system can run: CPUID, XGETBV and the AMX permission on x86; HWCAP on Arm. */
#include "simd/kernels.h"

#if defined(__x86_64__)

#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* The system must save the wide registers on a task switch: bits of XCR0. */
enum { XCR0_AVX = 0x6, XCR0_AVX512 = 0xe6, XCR0_AMX = 0x60000 };

static uint64_t read_xcr0(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

/* Linux hands the 8 KiB of tile state to a process that asks for it; elsewhere AMX stays off. */
static bool amx_permitted(void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

/* One CPUID bit that a feature needs: leaf, subleaf, register (0 eax .. 3 edx), bit, and what XCR0 must hold. */
static const struct {
    uint32_t feature, leaf, subleaf, reg, bit, xcr0;
} bits[] = {
    { QN_CPU_FMA, 1, 0, 2, 12, XCR0_AVX },        { QN_CPU_F16C, 1, 0, 2, 29, XCR0_AVX },
    { QN_CPU_AVX2, 1, 0, 2, 28, XCR0_AVX },       { QN_CPU_AVX2, 7, 0, 1, 5, XCR0_AVX },
    { QN_CPU_AVX512, 7, 0, 1, 16, XCR0_AVX512 },  { QN_CPU_AVX512, 7, 0, 1, 17, XCR0_AVX512 }, /* F, DQ */
    { QN_CPU_AVX512, 7, 0, 1, 28, XCR0_AVX512 },  { QN_CPU_AVX512, 7, 0, 1, 30, XCR0_AVX512 }, /* CD, BW */
    { QN_CPU_AVX512, 7, 0, 1, 31, XCR0_AVX512 },                                               /* VL */
    { QN_CPU_VNNI, 7, 0, 2, 11, XCR0_AVX512 },    { QN_CPU_BF16, 7, 1, 0, 5, XCR0_AVX512 },
    { QN_CPU_AVXVNNI, 7, 1, 0, 4, XCR0_AVX },     { QN_CPU_AMX, 7, 0, 3, 24, XCR0_AMX }, /* TILE */
    { QN_CPU_AMX, 7, 0, 3, 25, XCR0_AMX },        { QN_CPU_AMX, 7, 0, 3, 22, XCR0_AMX }, /* INT8, BF16 */
};

uint32_t qn_cpu_flags(void)
{
    uint32_t r[4];
    if (!__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) || !(r[2] >> 27 & 1)) return 0; /* no OSXSAVE */
    const uint64_t xcr0 = read_xcr0();
    uint32_t have = 0, lacks = 0;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
        uint32_t max_subleaf = 0;
        if (bits[i].subleaf && __get_cpuid_count(bits[i].leaf, 0, &r[0], &r[1], &r[2], &r[3])) max_subleaf = r[0];
        const bool there = bits[i].subleaf <= max_subleaf &&
                           __get_cpuid_count(bits[i].leaf, bits[i].subleaf, &r[0], &r[1], &r[2], &r[3]) &&
                           (r[bits[i].reg] >> bits[i].bit & 1) && (xcr0 & bits[i].xcr0) == bits[i].xcr0;
        if (there) have |= bits[i].feature;
        else lacks |= bits[i].feature;
    }
    have &= ~lacks;
    if ((have & QN_CPU_AMX) && !amx_permitted()) have &= ~(uint32_t)QN_CPU_AMX;
    return have;
}

#elif defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>

uint32_t qn_cpu_flags(void)
{
    const unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(AT_HWCAP2);
    uint32_t have = 0;
    if (cap >> 1 & 1) have |= QN_CPU_NEON;      /* HWCAP_ASIMD   */
    if (cap >> 20 & 1) have |= QN_CPU_DOTPROD;  /* HWCAP_ASIMDDP */
    if (cap2 >> 13 & 1) have |= QN_CPU_I8MM;    /* HWCAP2_I8MM   */
    return have;
}

#elif defined(__aarch64__)

uint32_t qn_cpu_flags(void)
{
    return QN_CPU_NEON; /* part of the architecture; the rest has no portable question */
}

#else

uint32_t qn_cpu_flags(void)
{
    return 0;
}

#endif
