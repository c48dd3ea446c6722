#include "src/run/classify.h"

#include "src/base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

qn_pooling qn_rank_pooling(const qn_net *net)
{
    if (net->classifier_pooling == QN_FILE_POOLING_MEAN) return QN_POOLING_MEAN;
    return qn_net_is_encoder(net) ? QN_POOLING_FIRST : QN_POOLING_LAST;
}

/* out = w x + b, a row at a time: a text has one such product, so that it needs no kernel, only sums in double. @param row  [n_cols] */
static void product(const qn_engine *e, const qn_weight *w, const float *b, const float *x, float *row, float *out)
{
    for (int64_t i = 0; i < w->n_rows; i++) {
        const uint8_t *panel = w->panels + (size_t)(i / QN_PANEL) * w->panel_bytes;
        e->kernels.matmul[w->fmt->id].unpack_row(w->fmt, panel, (int32_t)(i % QN_PANEL), w->n_cols, row);
        double sum = b ? (double)b[i] : 0;
        for (int64_t k = 0; k < w->n_cols; k++) sum += (double)row[k] * (double)x[k];
        out[i] = (float)sum;
    }
}

/* LayerNorm without a bias. */
static void norm(const qn_net *net, float *x)
{
    double mean = 0, square = 0;
    for (int32_t i = 0; i < net->n_embd; i++) mean += (double)x[i];
    mean /= net->n_embd;
    for (int32_t i = 0; i < net->n_embd; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double scale = 1 / sqrt(square / net->n_embd + (double)net->norm_eps);
    for (int32_t i = 0; i < net->n_embd; i++) x[i] = (float)(((double)x[i] - mean) * scale * (double)net->cls_norm.w[i]);
}

static void softmax(float *x, int32_t n)
{
    double most = -INFINITY, sum = 0;
    for (int32_t i = 0; i < n; i++) most = (double)x[i] > most ? (double)x[i] : most;
    for (int32_t i = 0; i < n; i++) sum += exp((double)x[i] - most);
    for (int32_t i = 0; i < n; i++) x[i] = (float)(exp((double)x[i] - most) / sum);
}

/* A dense layer (of BERT's kin: the pooler) and the labels' matrix; some models have one of the two. @param h, row  [n_embd or n_labels] */
static void score(const qn_engine *e, const float *x, float *h, float *row, float *out)
{
    const qn_net *net = &e->model->net;
    const int32_t n = qn_weight_present(&net->cls) ? net->n_cls : net->n_embd;
    if (!qn_weight_present(&net->cls)) memcpy(h, x, (size_t)n * sizeof *h);
    else product(e, &net->cls, net->cls_b.w, x, row, h);
    const bool is_hidden = qn_weight_present(&net->cls) && qn_weight_present(&net->cls_out);
    if (is_hidden && net->arch->cls_gelu) e->kernels.gelu(h, n, h);
    for (int32_t i = 0; i < n && is_hidden && !net->arch->cls_gelu; i++) h[i] = tanhf(h[i]);
    if (net->cls_norm.w && n == net->n_embd) norm(net, h);
    if (qn_weight_present(&net->cls_out)) product(e, &net->cls_out, net->cls_out_b.w, h, row, out);
    else memcpy(out, h, (size_t)net->n_labels * sizeof *out);
    if (net->arch->cls_softmax) softmax(out, net->n_labels);
}

qn_status qn_rank_scores(const qn_engine *e, const float *x, float *out, qn_err *err)
{
    const qn_net *net = &e->model->net;
    const size_t width = (size_t)(net->n_embd > net->n_cls ? net->n_embd : net->n_cls);
    float *h = qn_new(2 * width, sizeof *h);
    if (!h) return qn_fail(err, QN_ERR_NOMEM, "no memory for the classifier");
    score(e, x, h, h + width, out);
    free(h);
    return QN_OK;
}
