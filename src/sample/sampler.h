/* The chain of samplers: what its parts share. Contracts of the public functions are in quern.h. */
#ifndef QN_SAMPLE_SAMPLER_H
#define QN_SAMPLE_SAMPLER_H

#include "src/base/match.h"
#include "src/sample/cands.h"
#include "src/sample/random.h"

/** What a sampler asks of a vocabulary. */
typedef struct qn_sample_vocab {
    int32_t n_vocab;
    qn_status (*text)(const void *user, int32_t id, qn_str *out); /* control tokens by their name */
    const void *user;
} qn_sample_vocab;

/** qn_sampler_open without a model. */
qn_status qn_sampler_open_vocab(qn_sampler **out, const qn_sample_vocab *vocab, const qn_sample_opts *opts, qn_err *err);
/** Run the chain and fill the candidates' probabilities, without drawing. @return borrowed until the next call on the sampler */
qn_status qn_sampler_weigh(qn_sampler *s, const float *logits, const qn_cands **out, qn_err *err);
/** qn_sampler_pick with the extremes of each QN_RANK_GROUP logits, or NULL. The same token. */
qn_status qn_sampler_pick_grouped(qn_sampler *s, const float *logits, const qn_extremes *group, int32_t *token, qn_err *err);

/* ---- guesses: what a drafter does with the sampler of the text it continues ---- */

/** Tokens accepted in one guess. */
enum { QN_GUESS_MAX = 16 };
/** Remember the random stream, the tokens looked back on, everything that choosing changes. */
void qn_sampler_guess_begin(qn_sampler *s);
/** Go back to what was remembered. No pick that follows can tell that there was a guess. */
void qn_sampler_guess_end(qn_sampler *s);
/**
 * qn_sampler_pick_grouped, and how far another model's logits may be from these until it picks another token with the same random number: 0 (as
 * good as chance) to 1. Highest probability: tanh(m / 2), m the distance of the two highest logits. Drawn: twice the distance of the
 * random number from the nearer end of the token's interval, at most 1.
 */
qn_status qn_sampler_guess(qn_sampler *s, const float *logits, const qn_extremes *group, int32_t *token, double *sure, qn_err *err);

/* ---- options ---- */

enum { QN_MAX_STAGES = 9 };
typedef enum qn_stage_id {
    QN_STAGE_PENALTIES, QN_STAGE_DRY, QN_STAGE_TOP_N_SIGMA, QN_STAGE_TOP_K, QN_STAGE_TYPICAL, QN_STAGE_TOP_P, QN_STAGE_MIN_P, QN_STAGE_XTC,
    QN_STAGE_TEMPERATURE,
} qn_stage_id;

/** Copy the caller's options, of whatever size its header gave them, fill in defaults that zero stands for, and check every range. */
qn_status qn_sample_opts_check(qn_sample_opts *out, const qn_sample_opts *in, int32_t n_vocab, qn_err *err);
/** @param stage [QN_MAX_STAGES] */
qn_status qn_sample_order_parse(const char *order, qn_stage_id *stage, int32_t *n, qn_err *err);

/* ---- tokens looked back on ---- */

typedef struct qn_past_token {
    int32_t id;
    bool breaks; /* a sequence breaker ends in its text */
} qn_past_token;

/** The last tokens, at least `window` of them where there were as many. */
typedef struct qn_past {
    qn_past_token *token; /* [n], oldest first */
    size_t n, cap, window;
    bool keeps_all;       /* nothing is dropped: what is there will be gone back to */
} qn_past;

void qn_past_add(qn_past *p, qn_past_token t, bool *no_memory);

/* ---- samplers ---- */

/**
 * Repetition penalty of CTRL (Keskar et al. 2019): the logit of a token seen is divided by `repeat` when positive, multiplied when not.
 * Frequency and presence penalty of OpenAI's API: logit -= count * frequency + (count > 0) * presence.
 * @param count [n_vocab] how often each token is in the window
 */
void qn_penalise(qn_cands *c, const int32_t *count, float repeat, float frequency, float presence);

typedef struct qn_dry {
    float multiplier, base;
    int32_t allowed_length;
    int32_t *z;       /* scratch [past's cap]; grows              */
    size_t z_cap;
    int32_t *longest; /* scratch [n_vocab], all zero between calls */
} qn_dry;
/**
 * "Don't repeat yourself" (p-e-w, text-generation-webui pull request 5677): a token that would continue a repetition of n tokens that
 * are in the last `window` already loses multiplier * base^(n - allowed_length) once n >= allowed_length. Breakers end a repetition.
 * All lengths come from one Z-function over the reversed window: linear.
 */
void qn_dry_apply(qn_dry *d, qn_cands *c, const qn_past *past, size_t window, bool *no_memory);

/** Tang et al. 2024 (arXiv 2411.07641): keep logits within n standard deviations (of all candidates) of the highest. */
void qn_cut_top_n_sigma(qn_cands *c, float n);
/** Fan et al. 2018: keep the k highest. */
void qn_cut_top_k(qn_cands *c, int32_t k);
/** Meister et al. 2022: those whose surprise is nearest the entropy, until their probabilities reach p. */
void qn_cut_typical(qn_cands *c, float p);
/** Holtzman et al. 2020: the highest until their probabilities reach p. */
void qn_cut_top_p(qn_cands *c, float p);
/** Nguyen et al. 2024 (arXiv 2407.01082): probability at least p times the highest. */
void qn_cut_min_p(qn_cands *c, float p);
/** "Exclude top choices" (p-e-w, text-generation-webui pull request 6335): with `probability`, all of at least `threshold` but the least
 *  probable of them go. Draws once whether or not it applies. */
void qn_cut_xtc(qn_cands *c, float probability, float threshold, qn_random *r);
/** Divide by the temperature; at or below QN_COLD only the best stays. */
#define QN_COLD 1e-6f
void qn_heat(qn_cands *c, double temperature);
/** Entropy-based temperature: T = lo + (hi - lo) * (entropy / log n)^exponent, with lo and hi at `temperature` -+ `range`, lo >= 0. */
double qn_dynamic_temperature(qn_cands *c, float temperature, float range, float exponent);
/** Mirostat 2 (Basu et al. 2020): keep those whose surprise in bits is at most mu, and the best. */
void qn_cut_mirostat(qn_cands *c, double mu);

#endif
