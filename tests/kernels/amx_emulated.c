#include "amx_emulated.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TILES = 8, MAX_ROWS = 16, MAX_BYTES = 64, N_CONFIG_TILES = 16 };

static _Thread_local struct {
    bool in_use;
    uint8_t rows[N_TILES];
    uint16_t row_bytes[N_TILES];
    uint8_t data[N_TILES][MAX_ROWS][MAX_BYTES];
    int64_t n_configs, n_products;
} tiles;

static void check(bool good, const char *what, int tile)
{
    if (good) return;
    fprintf(stderr, "tile instruction: %s (tile %d)\n", what, tile);
    abort();
}

static void check_tile(int i)
{
    check(tiles.in_use, "no configuration is loaded", i);
    check(i >= 0 && i < N_TILES, "no such tile", i);
    check(tiles.rows[i] > 0 && tiles.row_bytes[i] > 0, "the tile has no dimensions", i);
}

void amx_loadconfig(const void *config)
{
    const uint8_t *c = config;
    check(c[0] == 1, "palette 1 is the only one", -1);
    for (int i = 1; i < 16; i++) check(c[i] == 0, "start_row or a reserved byte is set", -1);
    memset(tiles.data, 0, sizeof tiles.data);
    for (int i = 0; i < N_CONFIG_TILES; i++) {
        const int row_bytes = c[16 + 2 * i] | c[17 + 2 * i] << 8, rows = c[48 + i];
        check(rows <= MAX_ROWS && row_bytes <= MAX_BYTES, "dimensions above the palette's", i);
        check((rows == 0) == (row_bytes == 0), "one dimension is zero and the other is not", i);
        check(i < N_TILES || rows == 0, "a tile that palette 1 does not have", i);
        if (i >= N_TILES) continue;
        tiles.rows[i] = (uint8_t)rows;
        tiles.row_bytes[i] = (uint16_t)row_bytes;
    }
    tiles.in_use = true;
    tiles.n_configs++;
}

void amx_release(void)
{
    tiles.in_use = false;
    memset(tiles.data, 0, sizeof tiles.data);
}

void amx_zero(int dst)
{
    check_tile(dst);
    memset(tiles.data[dst], 0, sizeof tiles.data[dst]);
}

void amx_load(int dst, const void *base, int64_t stride)
{
    check_tile(dst);
    memset(tiles.data[dst], 0, sizeof tiles.data[dst]);
    for (int r = 0; r < tiles.rows[dst]; r++) memcpy(tiles.data[dst][r], (const uint8_t *)base + r * stride, tiles.row_bytes[dst]);
}

void amx_store(int src, void *base, int64_t stride)
{
    check_tile(src);
    for (int r = 0; r < tiles.rows[src]; r++) memcpy((uint8_t *)base + r * stride, tiles.data[src][r], tiles.row_bytes[src]);
}

/* Rows of dst and a, dwords of a's rows and rows of b, dwords of dst and b. */
static void check_product(int dst, int a, int b)
{
    check_tile(dst);
    check_tile(a);
    check_tile(b);
    check(dst != a && dst != b && a != b, "a product names one tile twice", dst);
    check(tiles.rows[dst] == tiles.rows[a], "rows of the result and of the first factor differ", dst);
    check(tiles.row_bytes[dst] == tiles.row_bytes[b], "columns of the result and of the second factor differ", dst);
    check(tiles.row_bytes[a] == 4 * tiles.rows[b], "depths of the factors differ", dst);
    check(tiles.row_bytes[dst] % 4 == 0, "a row of results is not whole", dst);
    tiles.n_products++;
}

void amx_dot_bytes(int dst, int a, int b, bool a_signed, bool b_signed)
{
    check_product(dst, a, b);
    for (int m = 0; m < tiles.rows[dst]; m++) {
        uint32_t row[MAX_BYTES / 4];
        memcpy(row, tiles.data[dst][m], sizeof row);
        for (int k = 0; k < tiles.row_bytes[a]; k++) {
            const uint8_t x = tiles.data[a][m][k];
            for (int n = 0; n < tiles.row_bytes[dst] / 4; n++) {
                const uint8_t y = tiles.data[b][k / 4][4 * n + k % 4];
                row[n] += (uint32_t)((a_signed ? (int8_t)x : x) * (b_signed ? (int8_t)y : y));
            }
        }
        memcpy(tiles.data[dst][m], row, sizeof row);
    }
}

static float flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

static float from_bf16(const uint8_t *at)
{
    const uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    float f;
    memcpy(&f, &bits, sizeof f);
    return flush(f);
}

/* For each result the products of even and of odd positions are chains of fused multiply-adds, which are added, and their sum to the result. */
void amx_dot_bf16(int dst, int a, int b)
{
    enum { N = MAX_BYTES / 4 };
    check_product(dst, a, b);
    static _Thread_local float factor[MAX_ROWS][2][N];
    const int depth = tiles.row_bytes[a] / 4;
    for (int k = 0; k < depth; k++)
        for (int n = 0; n < 2 * N; n++) factor[k][n % 2][n / 2] = from_bf16(&tiles.data[b][k][2 * n]);
    for (int m = 0; m < tiles.rows[dst]; m++) {
        float row[N], chain[2][N] = { { 0 } };
        memcpy(row, tiles.data[dst][m], sizeof row);
        for (int k = 0; k < 2 * depth; k++) {
            const float x = from_bf16(&tiles.data[a][m][2 * k]);
            for (int n = 0; n < N; n++) chain[k % 2][n] = flush(fmaf(x, factor[k / 2][k % 2][n], chain[k % 2][n]));
        }
        for (int n = 0; n < N; n++) row[n] = flush(flush(row[n]) + flush(chain[0][n] + chain[1][n]));
        memcpy(tiles.data[dst][m], row, tiles.row_bytes[dst]);
    }
}

bool amx_in_use(void)
{
    return tiles.in_use;
}

void amx_counts(int64_t *n_configs, int64_t *n_products)
{
    *n_configs = tiles.n_configs;
    *n_products = tiles.n_products;
}
