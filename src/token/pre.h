/* Pre-tokenizers: cut text into the words within which BPE merges. What models publish as regular expressions is done here by linear
 * scanners: a rule is one pass over the text, a family of scanners with its parameters; a pre-tokenizer is a list of passes, each
 * cutting the pieces that the one before it left. */
#ifndef QN_TOKEN_PRE_H
#define QN_TOKEN_PRE_H

#include "src/base/err.h"
#include "src/token/uni.h"

/** Text made ready: code points and their classes. */
typedef struct qn_scan {
    const uint32_t *cp;  /* [n] */
    const uint16_t *cls; /* [n] QN_C_* */
    size_t n;
} qn_scan;

/** A match [begin, end). */
typedef struct qn_span {
    size_t begin, end;
} qn_span;

struct qn_pre_rule;

/**
 * The first match of a rule at or after `from` within [from, end), which is never empty; `end` is the end of the text to the rule.
 * @param memo  one word of the rule's own, 0 at the start of a text: how far something was looked ahead, so that nothing is looked at
 *              more than a constant number of times
 * @return false when there is none
 */
typedef bool (*qn_pre_find)(const struct qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);

/** What ends a run of "other" characters (neither space, letter nor number). */
typedef enum qn_pre_tail {
    QN_TAIL_NONE = 0,
    QN_TAIL_NEWLINES,       /* [\r\n]*  */
    QN_TAIL_NEWLINES_SLASH, /* [\r\n/]* */
    QN_TAIL_ONE,            /* [\r\n/]? */
} qn_pre_tail;

typedef struct qn_pre_rule {
    qn_pre_find find;
    uint16_t in;               /* runs: classes that belong, beside `ranges`                                                 */
    uint16_t mark;             /* words: QN_C_MARK where marks belong to words, else 0                                       */
    uint16_t lead;             /* runs: one character of these classes may go in front (QN_C_SPACE for \s?)                  */
    bool lead_blank;           /* runs: one U+0020 may go in front (" ?")                                                    */
    bool invert;               /* runs: all but `in` and `ranges`                                                            */
    bool contractions;         /* words: 's 't 're 've 'm 'll 'd in any case                                                 */
    bool cascade;              /* words: white space in powers of two                                                        */
    bool lone_newlines;        /* punctuation words: [\r\n] instead of \s*[\r\n]+                                            */
    bool no_han;               /* cased words: ideographs are runs of their own                                              */
    bool phrases;              /* words: letters joined by single blanks are one word                                        */
    bool to_boundary;          /* digits: only where a word ends behind them                                                 */
    int32_t max;               /* numbers and runs: at most so many characters a match; 0: any number                        */
    qn_pre_tail tail;
    const qn_cp_range *ranges; /* [n_ranges] runs: ascending                                                                 */
    int32_t n_ranges;
} qn_pre_rule;

/* The families. Each file says which expression it stands for. */
bool qn_pre_gpt2(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_words(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_cased(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_punct(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_run(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_triple(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_thousands(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_group_starts(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_trailing_space(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_sentinel(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_image(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);
bool qn_pre_blanks(const qn_pre_rule *r, const qn_scan *t, size_t from, size_t end, size_t *memo, qn_span *out);

/* Shared by families. */
/** End of the run of characters with any of these classes that begins at i. */
static inline size_t qn_scan_while(const qn_scan *t, size_t i, size_t end, uint16_t classes)
{
    while (i < end && (t->cls[i] & classes)) i++;
    return i;
}
/** End of the run of characters with none of these classes. */
static inline size_t qn_scan_until(const qn_scan *t, size_t i, size_t end, uint16_t classes)
{
    while (i < end && !(t->cls[i] & classes)) i++;
    return i;
}
/** End of 's 't 'm 'd 're 've 'll at i, else i. @param fold  in any case */
size_t qn_scan_contraction(const qn_scan *t, size_t i, size_t end, bool fold);
/** End of the white space at i as \s*[\r\n]+|\s+(?!\S)|\s+ takes it (t->cls[i] is a space): up to behind the last newline, else all
 *  but the last where something follows. @param newlines  whether the first alternative is there */
size_t qn_scan_space(const qn_scan *t, size_t i, size_t end, bool newlines);
/** End of what a tail takes at i. */
size_t qn_scan_tail(const qn_scan *t, size_t i, size_t end, qn_pre_tail tail);

enum { QN_PRE_PASSES = 6 };

/** Facts about a value of tokenizer.ggml.pre. */
enum {
    QN_PRE_WHOLE = 1 << 0,   /* a word that is a token is that token, whatever the merges say                                  */
    QN_PRE_BOS = 1 << 1,     /* add a BOS unless the file says no                                                              */
    QN_PRE_NFC = 1 << 2,     /* the original normalises to NFC first                                                           */
    QN_PRE_RAW = 1 << 3,     /* merges work on characters, not on bytes; blanks are U+2581; bytes are <0xHH>                   */
    QN_PRE_NO_BOS = 1 << 4,  /* there is no BOS, whatever default                                                              */
    QN_PRE_LSTRIP = 1 << 5,  /* white space before the mask token belongs to it                                                */
};

typedef struct qn_pre {
    const char *name;
    const qn_pre_rule *rules; /* [n_rules], at most QN_PRE_PASSES */
    int32_t n_rules;
    int32_t flags;
} qn_pre;

/** The pre-tokenizer of that name, or NULL. */
const qn_pre *qn_pre_find_name(qn_str name);
/** Number `i` of the table, or NULL behind the last. */
const qn_pre *qn_pre_at(int32_t i);

/** Walks the words of a text, front to back: constant memory, no recursion. */
typedef struct qn_pre_walk {
    const qn_pre *pre;
    const qn_scan *text;
    qn_span open[QN_PRE_PASSES + 1]; /* what level k has still to cut                              */
    qn_span match[QN_PRE_PASSES];    /* found, with the gap before it handed out first             */
    size_t memo[QN_PRE_PASSES];
    int32_t level;
} qn_pre_walk;
void qn_pre_begin(qn_pre_walk *w, const qn_pre *pre, const qn_scan *text);
/** @return false at the end */
bool qn_pre_next(qn_pre_walk *w, qn_span *word);

#endif
