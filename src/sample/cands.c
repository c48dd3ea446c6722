#include "src/sample/cands.h"

#include "src/base/mem.h"
#include "src/sample/explog.h"

#include <math.h>
#include <stdlib.h>

qn_status qn_cands_open(qn_cands *c, int32_t n_vocab, qn_err *err)
{
    const size_t n = (size_t)n_vocab;
    *c = (qn_cands){ .n_vocab = n_vocab };
    c->p = qn_new(n, sizeof *c->p);
    c->own_logit = qn_new(n, sizeof *c->own_logit);
    c->own_id = qn_new(n, sizeof *c->own_id);
    c->key = qn_new(n, sizeof *c->key);
    c->bin = qn_new(QN_SELECT_BINS, sizeof *c->bin);
    if (c->p && c->own_logit && c->own_id && c->key && c->bin) return QN_OK;
    qn_cands_close(c);
    return qn_fail(err, QN_ERR_NOMEM, "no memory for the candidates of a vocabulary of %d", n_vocab);
}

void qn_cands_close(qn_cands *c)
{
    free(c->p);
    free(c->own_logit);
    free(c->own_id);
    free(c->key);
    free(c->bin);
    *c = (qn_cands){ 0 };
}

static int32_t n_groups(int32_t n)
{
    return (n + QN_RANK_GROUP - 1) / QN_RANK_GROUP;
}

qn_status qn_cands_begin(qn_cands *c, const float *logits, const qn_extremes *group, qn_err *err)
{
    /* As integers of the same order, so that one pass that compilers vectorise finds the extremes and any NaN beyond the infinities. */
    const qn_extremes e = group ? qn_extremes_join(group, n_groups(c->n_vocab)) : qn_extremes_of(logits, c->n_vocab);
    if (e.lo < qn_float_rank(-INFINITY) || e.hi > qn_float_rank(INFINITY)) return qn_fail(err, QN_ERR_NUMERIC, "the logits hold NaN");
    if (e.hi == qn_float_rank(INFINITY)) return qn_fail(err, QN_ERR_NUMERIC, "the logits hold +infinity");
    if (e.hi == qn_float_rank(-INFINITY)) return qn_fail(err, QN_ERR_NUMERIC, "every logit is -infinity");
    c->logit = logits;
    c->id = NULL;
    c->n = c->n_vocab;
    c->group = group;
    if (e.lo == qn_float_rank(-INFINITY)) qn_cands_drop_banned(c);
    return QN_OK;
}

float *qn_cands_edit(qn_cands *c)
{
    if (c->logit != c->own_logit) memcpy(c->own_logit, c->logit, (size_t)c->n * sizeof *c->own_logit);
    c->logit = c->own_logit;
    c->group = NULL;
    return c->own_logit;
}

static int32_t highest_rank(const qn_cands *c)
{
    return (c->group ? qn_extremes_join(c->group, n_groups(c->n)) : qn_extremes_of(c->logit, c->n)).hi;
}

/* The two highest of ranks, `n` more of them. */
static void two_highest(const float *x, int32_t n, int32_t best[2])
{
    for (int32_t i = 0; i < n; i++) {
        const int32_t k = qn_float_rank(x[i]), low = k < best[0] ? k : best[0];
        best[0] = k > best[0] ? k : best[0];
        best[1] = low > best[1] ? low : best[1];
    }
}

float qn_cands_lead(const qn_cands *c)
{
    int32_t best[2] = { INT32_MIN, INT32_MIN };
    if (c->n < 2) return INFINITY;
    for (int32_t i = 0, n; i < c->n; i += n) {
        n = c->n - i < QN_RANK_GROUP ? c->n - i : QN_RANK_GROUP;
        if (!c->group || c->group[i / QN_RANK_GROUP].hi > best[1]) two_highest(c->logit + i, n, best);
    }
    return qn_rank_float(best[0]) - qn_rank_float(best[1]);
}

int32_t qn_cands_argmax(const qn_cands *c)
{
    const int32_t hi = highest_rank(c);
    int32_t i = 0;
    while (c->group && c->group[i / QN_RANK_GROUP].hi != hi) i += QN_RANK_GROUP;
    while (i < c->n - 1 && qn_float_rank(c->logit[i]) != hi) i++;
    return qn_cands_id(c, i);
}

float qn_cands_max(const qn_cands *c)
{
    return qn_rank_float(highest_rank(c));
}

qn_softmax qn_cands_softmax(qn_cands *c)
{
    const float max = qn_cands_max(c);
    double sum = 0;
    for (int32_t i = 0; i < c->n; i++) c->p[i] = qn_exp((double)c->logit[i] - (double)max);
    for (int32_t i = 0; i < c->n; i++) sum += c->p[i];
    for (int32_t i = 0; i < c->n; i++) c->p[i] /= sum;
    return (qn_softmax){ max, qn_log(sum) };
}

double qn_cands_entropy(const qn_cands *c, qn_softmax sm)
{
    double h = 0;
    for (int32_t i = 0; i < c->n; i++)
        if (c->p[i] > 0) h -= c->p[i] * ((double)c->logit[i] - (double)sm.max - sm.log_sum);
    return h;
}

/* Move candidate i to place n of the ones that stay (n <= i). */
static void put(qn_cands *c, int32_t n, int32_t i)
{
    c->own_id[n] = qn_cands_id(c, i);
    c->own_logit[n] = c->logit[i];
}

static void settle(qn_cands *c, int32_t n)
{
    c->logit = c->own_logit;
    c->id = c->own_id;
    c->group = NULL;
    c->n = n;
}

void qn_cands_keep_from(qn_cands *c, double floor)
{
    if (!((double)qn_cands_max(c) >= floor)) {
        qn_cands_keep_highest(c, 1);
        return;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < c->n; i++)
        if ((double)c->logit[i] >= floor) put(c, n++, i);
    settle(c, n);
}

void qn_cands_drop_banned(qn_cands *c)
{
    int32_t n = 0;
    for (int32_t i = 0; i < c->n; i++)
        if (c->logit[i] > -INFINITY) put(c, n++, i);
    settle(c, n);
}

void qn_cands_drop_above_lowest(qn_cands *c, double floor)
{
    int32_t stays = -1, n = 0;
    for (int32_t i = 0; i < c->n; i++)
        if ((double)c->logit[i] >= floor && (stays < 0 || c->logit[i] <= c->logit[stays])) stays = i;
    for (int32_t i = 0; i < c->n; i++)
        if ((double)c->logit[i] < floor || i == stays) put(c, n++, i);
    settle(c, n);
}

/* A heap whose root is the lowest of the k highest. An entry is (logit's key, ~index): unique, and of equal logits the lower index is
 * the higher entry. */
static void sift_down(uint64_t *heap, int32_t k, int32_t i)
{
    const uint64_t x = heap[i];
    for (int32_t child; (child = 2 * i + 1) < k; i = child) {
        if (child + 1 < k && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= x) break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

/* A small k: one pass over the logits, and nothing as long as the vocabulary is written. Groups that hold nothing above the heap's lowest are skipped. */
enum { HEAP_MAX = 256 };
_Static_assert((int)HEAP_MAX <= (int)QN_RANK_GROUP, "the heap is full before the second group");

static void keep_highest_by_heap(qn_cands *c, int32_t k)
{
    uint64_t heap[HEAP_MAX];
    for (int32_t i = 0; i < k; i++) heap[i] = (uint64_t)qn_sort_key(c->logit[i]) << 32 | (uint32_t)~i;
    for (int32_t i = k / 2; i-- > 0;) sift_down(heap, k, i);
    for (int32_t i = k; i < c->n; i++) {
        if (c->group && i % QN_RANK_GROUP == 0 && qn_rank_key(c->group[i / QN_RANK_GROUP].hi) <= heap[0] >> 32) {
            i += QN_RANK_GROUP - 1;
            continue;
        }
        const uint32_t key = qn_sort_key(c->logit[i]);
        if (key <= heap[0] >> 32) continue;
        heap[0] = (uint64_t)key << 32 | (uint32_t)~i;
        sift_down(heap, k, 0);
    }
    int32_t index[HEAP_MAX];
    for (int32_t i = 0; i < k; i++) {
        const int32_t x = (int32_t)~(uint32_t)heap[i];
        int32_t j = i;
        for (; j && index[j - 1] > x; j--) index[j] = index[j - 1];
        index[j] = x;
    }
    for (int32_t i = 0; i < k; i++) put(c, i, index[i]);
    settle(c, k);
}

void qn_cands_keep_highest(qn_cands *c, int32_t k)
{
    if (k >= c->n) return;
    if (k <= HEAP_MAX) {
        keep_highest_by_heap(c, k);
        return;
    }
    for (int32_t i = 0; i < c->n; i++) c->key[i] = qn_sort_key(c->logit[i]);
    qn_cands_select(c, NULL, k);
}

/* The key at which the weights, added up from the highest key down, reach `target`; *above is the weight of the keys over it. */
static uint32_t find_key(const qn_cands *c, const double *weight, double target, double *above)
{
    static const struct { int shift, bits; } digits[] = { { 21, 11 }, { 10, 11 }, { 0, 10 } };
    uint32_t prefix = 0, mask = 0;
    *above = 0;
    for (int d = 0; d < 3; d++) {
        const uint32_t top = (1u << digits[d].bits) - 1;
        memset(c->bin, 0, QN_SELECT_BINS * sizeof *c->bin);
        for (int32_t i = 0; i < c->n; i++)
            if ((c->key[i] & mask) == prefix) c->bin[c->key[i] >> digits[d].shift & top] += weight ? weight[i] : 1;
        uint32_t at = 0;
        double over = *above, over_at = *above;
        for (uint32_t b = top + 1; b-- > 0;) {
            if (c->bin[b] <= 0) continue;
            at = b; /* the lowest bin in use, where rounding keeps the sum below the target */
            over_at = over;
            over += c->bin[b];
            if (over >= target) break;
        }
        *above = over_at;
        prefix |= at << digits[d].shift;
        mask |= top << digits[d].shift;
    }
    return prefix;
}

void qn_cands_select(qn_cands *c, const double *weight, double target)
{
    double sum;
    const uint32_t last = find_key(c, weight, target, &sum);
    int32_t n = 0;
    for (int32_t i = 0; i < c->n; i++) {
        if (c->key[i] < last) continue;
        if (c->key[i] == last) {
            if (sum >= target) continue;
            sum += weight ? weight[i] : 1;
        }
        put(c, n++, i);
    }
    settle(c, n);
}
