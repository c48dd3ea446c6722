/* Bytes of tokens in, text for people out: whole UTF-8 characters, and nothing of a stop string. */
#ifndef QN_RUN_TEXTOUT_H
#define QN_RUN_TEXTOUT_H

#include "src/base/match.h"
#include "src/base/mem.h"

/**
 * Of several stop strings the one that starts earliest ends the text, wherever tokens are cut: when one is complete while another that
 * began before it is still open, the bytes that follow decide. Invalid bytes come out as U+FFFD, one for each maximal part of a
 * character, as Unicode advises.
 */
typedef struct qn_textout {
    qn_matcher stops;
    qn_buf held;        /* bytes taken in and not let out                      */
    qn_buf text;        /* what the last call let out                          */
    uint64_t n_taken;   /* bytes taken in since the start                      */
    uint64_t stop_at;   /* first byte of the stop string; UINT64_MAX: none yet */
    int32_t i_stop;     /* which, or -1                                        */
    bool stopped;       /* i_stop is final                                     */
} qn_textout;

/** @return QN_ERR_ARG for an empty stop string; QN_ERR_NOMEM */
qn_status qn_textout_open(qn_textout *t, const char *const *stops, int32_t n_stops, qn_err *err);
void qn_textout_close(qn_textout *t);
/** Take in bytes (ignored once stopped). @param text out: what may be shown, valid until the next call; may be empty */
qn_status qn_textout_put(qn_textout *t, const char *bytes, size_t n, qn_str *text, qn_err *err);
/** There is no more: let out the rest up to a stop string. An unfinished character becomes U+FFFD. */
qn_status qn_textout_end(qn_textout *t, qn_str *text, qn_err *err);

#endif
