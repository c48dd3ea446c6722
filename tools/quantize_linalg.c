/* The linear algebra of GPTQ: BLAS and LAPACK of OpenBLAS, loaded when they are asked for. Linked to the program, OpenBLAS would start its threads with
 * every command (3 ms), and end each of them where the machine gives no thread more. */
#include "quantize.h"

#include <dlfcn.h>

enum { ROW_MAJOR = 101, UPPER = 121, TRANSPOSED = 112 }; /* of the C interface of BLAS */

/* Sizes are 32 bits wide in libraries of these names. A text's length comes last, as Fortran compilers pass it. */
typedef void ssyrk_fn(int order, int part, int trans, int n, int k, float alpha, const float *a, int lda, float beta, float *c, int ldc);
typedef void triangle_fn(const char *part, const int *n, double *a, const int *lda, int *info, size_t part_bytes);
typedef void set_threads_fn(int n);

typedef struct blas {
    ssyrk_fn *ssyrk;
    triangle_fn *potrf, *potri;
    set_threads_fn *set_threads;
} blas;

static void gram(void *user, int64_t n, int64_t n_rows, const float *x, int64_t x_stride, float *h)
{
    const blas *b = user;
    b->ssyrk(ROW_MAJOR, UPPER, TRANSPOSED, (int)n, (int)n_rows, 1, x, (int)x_stride, 1, h, (int)n);
}

static bool on_triangle(triangle_fn *f, int n, double *a)
{
    int info = 0;
    f("L", &n, a, &n, &info, 1);
    return info == 0;
}

/* LAPACK's columns are our rows, so that the lower triangle there is the upper one here: no copy is turned around. */
static bool factor(void *user, int64_t n, double *a)
{
    const blas *b = user;
    return on_triangle(b->potrf, (int)n, a) && on_triangle(b->potri, (int)n, a) && on_triangle(b->potrf, (int)n, a);
}

static void *open_library(void)
{
    static const char *const names[] = { "libopenblas.so.0", "libopenblas.so", "libopenblas.dylib" };
    void *lib = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !lib; i++) lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return lib;
}

/* A function's address, by way of an object's: C has no conversion between the two. */
static bool find(void *lib, const char *name, void *function)
{
    *(void **)function = dlsym(lib, name);
    return *(void **)function != NULL;
}

static bool is_loaded(blas *b)
{
    if (b->ssyrk) return true;
    void *lib = open_library(); /* stays until the program ends */
    return lib && find(lib, "dpotrf_", &b->potrf) && find(lib, "dpotri_", &b->potri) && find(lib, "openblas_set_num_threads", &b->set_threads) &&
           find(lib, "cblas_ssyrk", &b->ssyrk);
}

bool quantize_linalg(qn_linalg *out, int32_t n_threads)
{
    static blas b;
    *out = (qn_linalg){ 0 };
    if (!is_loaded(&b)) return false;
    if (n_threads > 0) b.set_threads(n_threads);
    *out = (qn_linalg){ gram, factor, &b };
    return true;
}
