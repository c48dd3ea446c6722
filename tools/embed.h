/* The parts of `quern embed`: texts come in, vectors or scores go out. */
#ifndef QUERN_EMBED_H
#define QUERN_EMBED_H

#include "cli_common.h"
#include "cli_out.h"
#include "cli_tokens.h"

/** A text and where it comes from. */
typedef struct embed_text {
    const char *text, *query; /* of a line of JSON for free(); query NULL: it is no pair           */
    size_t len, query_len;
    bool is_owned;            /* `text` and `query` are this text's own                            */
    bool has_ids;             /* the line gave token ids                                           */
    cli_ids ids;
    int32_t n_first;          /* of a pair, as in qn_embed_text                                    */
    int32_t number;           /* argument or line, from 1                                          */
} embed_text;

typedef struct embed_texts {
    embed_text *text;         /* [n]                                                               */
    int32_t n;
    size_t cap;
    char *bytes;              /* of the file                                                       */
    const char *unit;         /* "text" or "line": what `number` counts                            */
} embed_texts;

/** One text an argument. @return -1 to go on, else the exit code, after a message */
int embed_texts_of_arguments(embed_texts *t, const cli_rest *argument);
/** One text a line of a file ("-": stdin); with `json` a line is a string, an array of token ids, or an object. @return as above */
int embed_texts_of_file(embed_texts *t, const char *path, bool json);
/** Put a text in front of each. @return as above */
int embed_texts_add_prefix(embed_texts *t, const char *prefix);
/** Give every text without a query this one. @return as above */
int embed_texts_add_query(embed_texts *t, const char *query);
/** @param parse  the texts of control tokens become those tokens. @return as above */
int embed_texts_tokenize(embed_texts *t, const qn_model *model, bool parse);
/** Texts of more than n_ctx tokens are cut (control tokens at their end stay), or refused. @return as above */
int embed_texts_fit(embed_texts *t, const qn_model *model, int32_t n_ctx, bool truncate);
void embed_texts_free(embed_texts *t);

typedef enum embed_form { EMBED_TEXT = 0, EMBED_JSON, EMBED_RAW } embed_form;

/** Where results go, and what has gone. */
typedef struct embed_out {
    cli_out file;
    embed_form form;
    const char *model;        /* general.name                                                      */
    qn_pooling pooling;       /* as chosen, never QN_POOLING_MODEL                                 */
    bool normalized;
    int32_t width;            /* floats of a vector                                                */
    int32_t n_written;        /* results                                                           */
    uint64_t n_tokens;
} embed_out;

const char *embed_pooling_name(qn_pooling p);
void embed_out_begin(embed_out *o);
/** The result of one text: [n_rows][width]; n_rows is 1 but for QN_POOLING_NONE. */
void embed_out_result(embed_out *o, float *x, int32_t n_rows, size_t n_tokens);
/** Cosine similarities of vectors of length 1: a number of two, a matrix of more. @param x  [n][width] */
void embed_out_similarity(embed_out *o, const float *x, int32_t n);
void embed_out_end(embed_out *o);

#endif
