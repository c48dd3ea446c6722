/**
 * Tile instructions in portable C, put in place of the intrinsics when simd/amx is compiled for tests on machines without AMX.
 *
 * Semantics of Intel's Software Developer's Manual, volume 2: one set of eight tiles a thread, dimensions from palette 1. What would raise an
 * exception (no configuration, an undimensioned tile, dimensions that do not fit each other) aborts with a sentence.
 */
#ifndef AMX_EMULATED_H
#define AMX_EMULATED_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbusd
#undef _tile_dpbuud
#undef _tile_dpbf16ps
#define _tile_loadconfig amx_loadconfig
#define _tile_release amx_release
#define _tile_zero amx_zero
#define _tile_loadd(dst, base, stride) amx_load(dst, base, (int64_t)(stride))
#define _tile_stored(src, base, stride) amx_store(src, base, (int64_t)(stride))
#define _tile_dpbssd(dst, a, b) amx_dot_bytes(dst, a, b, true, true)
#define _tile_dpbsud(dst, a, b) amx_dot_bytes(dst, a, b, true, false)
#define _tile_dpbusd(dst, a, b) amx_dot_bytes(dst, a, b, false, true)
#define _tile_dpbuud(dst, a, b) amx_dot_bytes(dst, a, b, false, false)
#define _tile_dpbf16ps amx_dot_bf16

void amx_loadconfig(const void *config);
void amx_release(void);
void amx_zero(int dst);
void amx_load(int dst, const void *base, int64_t stride);
void amx_store(int src, void *base, int64_t stride);
void amx_dot_bytes(int dst, int a, int b, bool a_signed, bool b_signed);
/** Denormals count as zero going in and coming out; each step rounds to nearest even, whatever MXCSR says. */
void amx_dot_bf16(int dst, int a, int b);

/** Whether this thread has tiles configured: a task switch must then save them. */
bool amx_in_use(void);
/** Configurations loaded and products done by this thread so far. */
void amx_counts(int64_t *n_configs, int64_t *n_products);

#endif
