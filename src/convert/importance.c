#include "src/convert/importance.h"

#include "src/convert/imatrix.h"

/* Of the mean importance: far below what quantising can tell apart, far above what float32 loses in a sum. */
#define FLOOR 1e-6

/* The entry of a tensor, or NULL. */
static const qn_imatrix_entry *find(const qn_imatrix *im, qn_str name)
{
    const int64_t i = im ? qn_names_find(&im->names, name) : -1;
    return i < 0 ? NULL : &im->entry[i];
}

qn_status qn_importance_check(const qn_imatrix *im, const qn_tensor_info *t, qn_err *err)
{
    const qn_imatrix_entry *e = find(im, t->name);
    const int64_t n_mats = t->dims[2] * t->dims[3];
    if (!e) return QN_ERR_NOT_FOUND;
    if (e->n_cols * e->n_mats == t->dims[0] * n_mats) return QN_OK; /* the older form does not say how many matrices there are */
    return qn_fail(err, QN_ERR_FORMAT, "importance data of tensor '%.*s' is for %lld matrices with %lld columns; it has %lld with %lld",
                   QN_STR_ARG(t->name), (long long)e->n_mats, (long long)e->n_cols, (long long)n_mats, (long long)t->dims[0]);
}

static void weights_of(const float *mean, int64_t n, float *out)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += mean[i];
    for (int64_t i = 0; i < n; i++) {
        const double w = sum > 0 ? mean[i] * ((double)n / sum) : 1;
        out[i] = (float)(w > FLOOR ? w : FLOOR);
    }
}

void qn_importance_weights(const qn_imatrix *im, const qn_tensor_info *t, float *out)
{
    const qn_imatrix_entry *e = find(im, t->name);
    const int64_t n = t->dims[0];
    for (int64_t k = 0; k < t->dims[2] * t->dims[3]; k++) weights_of(e->mean + k * n, n, out + k * n);
}
