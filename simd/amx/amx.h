/* AMX: products of eight tile registers, 16 rows of 64 bytes each. */
#ifndef QN_SIMD_AMX_H
#define QN_SIMD_AMX_H

#include "simd/avx512vnni/avx512vnni.h"

/* What reads or writes memory inside tile instructions is unknown to gcc 12: its _tile_loadconfig reads 8 of the 64 bytes, its _tile_loadd none, and
 * stores before them would be dropped or moved. */
#define QN_MEMORY_DONE() __asm__ volatile("" ::: "memory")

/** LDTILECFG's operand, palette 1. */
typedef struct qn_tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} qn_tile_config;
_Static_assert(sizeof(qn_tile_config) == 64, "as the instruction reads it");

/** Bytes of a block in qn_act.planes: [0, 64) 256 * hi, [64, 128) lo of its 32 integers, as bf16. */
enum { QN_SPLIT_AMX = QN_SPLIT_MAX };

void qn_split_a16_amx(const int16_t *q, int64_t n_blocks, int8_t *planes);
int64_t qn_peak_amx(int64_t rounds);

/* `run` of a row of the table. */
void qn_matmul_q4_0_amx(const qn_matmul_args *a);
void qn_matmul_q4_1_amx(const qn_matmul_args *a);
void qn_matmul_q5_0_amx(const qn_matmul_args *a);
void qn_matmul_q5_1_amx(const qn_matmul_args *a);
void qn_matmul_q8_0_amx(const qn_matmul_args *a);
void qn_matmul_q4_k_amx(const qn_matmul_args *a);
void qn_matmul_q5_k_amx(const qn_matmul_args *a);
void qn_matmul_q6_k_amx(const qn_matmul_args *a);

#endif
