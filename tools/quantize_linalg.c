/* The linear algebra of GPTQ: LAPACK and BLAS of OpenBLAS, where the build found them. */
#include "quantize.h"

#ifdef QUERN_LAPACK
#include <cblas.h>
#include <lapacke.h>

static void gram(void *user, int64_t n, int64_t n_rows, const float *x, int64_t x_stride, float *h)
{
    (void)user;
    cblas_ssyrk(CblasRowMajor, CblasUpper, CblasTrans, (blasint)n, (blasint)n_rows, 1, x, (blasint)x_stride, 1, h, (blasint)n);
}

/* LAPACK's columns are our rows, so that the lower triangle there is the upper one here: no copy is turned around. */
static bool factor(void *user, int64_t n, double *a)
{
    const lapack_int k = (lapack_int)n;
    (void)user;
    return LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', k, a, k) == 0 && LAPACKE_dpotri(LAPACK_COL_MAJOR, 'L', k, a, k) == 0 &&
           LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', k, a, k) == 0;
}

bool quantize_linalg(qn_linalg *out, int32_t n_threads)
{
    if (n_threads > 0) openblas_set_num_threads(n_threads);
    *out = (qn_linalg){ gram, factor, NULL };
    return true;
}

#else

bool quantize_linalg(qn_linalg *out, int32_t n_threads)
{
    (void)n_threads;
    *out = (qn_linalg){ 0 };
    return false;
}

#endif
