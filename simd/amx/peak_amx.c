/* What the level multiplies at most. */
#include "simd/amx/amx.h"

int64_t qn_peak_amx(int64_t rounds)
{
    static const qn_tile_config config = { .palette = 1, .row_bytes = { 64, 64, 64, 64, 64, 64 }, .rows = { 16, 16, 16, 16, 16, 16 } };
    QN_MEMORY_DONE();
    _tile_loadconfig(&config); /* and tiles of zeros */
    for (int64_t i = 0; i < rounds; i++) {
        _tile_dpbf16ps(0, 4, 5); /* 52 cycles of latency, one in 16 */
        _tile_dpbf16ps(1, 4, 5);
        _tile_dpbf16ps(2, 4, 5);
        _tile_dpbf16ps(3, 4, 5);
    }
    _tile_release();
    return rounds * 4 * 16 * 16 * 16; /* 32 digits are 16 activations */
}
