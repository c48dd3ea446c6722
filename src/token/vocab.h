/* The inside of a vocabulary, shared by the files of this folder. */
#ifndef QN_TOKEN_VOCAB_H
#define QN_TOKEN_VOCAB_H

#include "src/token/token.h"
#include "src/token/trie.h"
#include "src/token/work.h"

/** Values of tokenizer.ggml.token_type. */
typedef enum qn_tok_type {
    QN_T_NORMAL = 1,
    QN_T_UNKNOWN = 2,
    QN_T_CONTROL = 3,
    QN_T_USER = 4,
    QN_T_UNUSED = 5,
    QN_T_BYTE = 6,
} qn_tok_type;

/** What a token is beside its type. */
enum {
    QN_TOK_END = 1 << 0,    /* ends an answer                                                */
    QN_TOK_LSTRIP = 1 << 1, /* white space before it belongs to it                           */
    QN_TOK_RSTRIP = 1 << 2, /* white space behind it belongs to it                           */
    QN_TOK_GUARD = 1 << 3,  /* user-defined, but not found in what users wrote               */
};

/** Text put in longer special tokens than this is not looked for: it bounds the work per byte of text. */
#define QN_SPECIAL_MAX 256
/** The same for pieces of Unigram and WordPiece. */
#define QN_PIECE_MAX 512

typedef enum qn_role {
    QN_ROLE_BOS = 0, QN_ROLE_EOS, QN_ROLE_EOT, QN_ROLE_EOM, QN_ROLE_UNK, QN_ROLE_SEP, QN_ROLE_PAD, QN_ROLE_CLS, QN_ROLE_MASK,
    QN_N_ROLES,
} qn_role;

struct qn_vocab;

/** A kind of tokenizer: how a stretch of text between special tokens becomes ids. */
typedef struct qn_tok_kind {
    const char *model;            /* value of tokenizer.ggml.model */
    int32_t role[QN_N_ROLES];     /* ids where the file names none */
    bool add_bos, add_eos;        /* where the file does not say   */
    bool add_space;               /* a blank in front of text, where the file does not say */
    bool always_sep;              /* special tokens are CLS and SEP, always */
    bool byte_level;              /* texts of tokens are in GPT-2's alphabet of bytes */
    /** Tables beside those of every vocabulary. */
    qn_status (*open)(struct qn_vocab *v, const qn_file *file, qn_err *err);
    /** @param first  the text is at the start, or behind a special token */
    qn_status (*encode)(const struct qn_vocab *v, qn_work *w, qn_str text, bool first, qn_ids *out, qn_err *err);
} qn_tok_kind;

/** One slot of the table from text to id. */
typedef struct qn_text_slot {
    uint32_t tag; /* bits of the hash */
    int32_t id1;  /* id + 1; 0: free  */
} qn_text_slot;

/** One slot of the table of merges. */
typedef struct qn_pair_slot {
    int32_t left1; /* left id + 1; 0: free */
    int32_t right;
    uint32_t rank;
    int32_t id;
} qn_pair_slot;

struct qn_vocab {
    const qn_tok_kind *kind;
    const qn_pre *pre;
    int32_t n;
    qn_str *text;        /* [n] as in the file; points into it                     */
    qn_str *shown;       /* [n] as in running text                                 */
    char *shown_bytes;   /* what `shown` points to where the file's text is not it */
    float *score;        /* [n] or NULL */
    uint8_t *type;       /* [n] qn_tok_type */
    uint8_t *flags;      /* [n] QN_TOK_* */
    int32_t role[QN_N_ROLES];
    bool add_bos, add_eos, add_space;
    bool add_sep;        /* between two texts, beside the EOS of the first                */
    bool merge_spaces;   /* Unigram: runs of blanks are one */
    bool lowercase, strip_accents; /* WordPiece */
    bool nfc, raw;
    bool joins_blank[256]; /* SPM: some piece has U+2581 behind this byte */
    int32_t byte_id[256]; /* token of a byte, or -1 */
    char byte_text[256];  /* what byte tokens show  */
    size_t max_len;       /* of the texts that can be looked up */
    bool twins;           /* some tokens have the same text     */
    qn_text_slot *slot;   /* [n_slots], a power of two */
    size_t n_slots;
    qn_pair_slot *pair;   /* [n_pairs], a power of two */
    size_t n_pairs;
    qn_trie special;      /* control, unknown and user-defined tokens */
    qn_trie pieces;       /* Unigram, WordPiece */
    qn_trie user;         /* Unigram: user-defined tokens, which its normaliser leaves alone */
    double unk_score;     /* Unigram */
    const uint8_t *charsmap; /* Unigram: [charsmap_bytes], in the file */
    size_t charsmap_bytes;
};

extern const qn_tok_kind qn_kind_bpe, qn_kind_bpe_raw, qn_kind_whitespace, qn_kind_spm, qn_kind_wordpiece, qn_kind_unigram;

/** Is this token found in ordinary text (not control, unknown or a byte)? */
static inline bool qn_type_is_text(uint8_t type)
{
    return type == QN_T_NORMAL || type == QN_T_USER || type == QN_T_UNUSED;
}

/** Id of the token of ordinary text with exactly these bytes, or -1. */
int32_t qn_vocab_find(const qn_vocab *v, const char *text, size_t len);
/** The same in two steps, so that memory can be asked for in between: the hash of a text, and the search. */
uint64_t qn_vocab_hash(const char *text, size_t len);
int32_t qn_vocab_find_hashed(const qn_vocab *v, const char *text, size_t len, uint64_t hash);
/** The first token of the table whose text may have this hash, or -1: the texts are not looked at. */
int32_t qn_vocab_guess(const qn_vocab *v, uint64_t hash);
/** As qn_vocab_find, for a token of any type. */
int32_t qn_vocab_find_any(const qn_vocab *v, const char *text, size_t len);
/** Build the table from text to id. */
qn_status qn_vocab_index(qn_vocab *v, qn_err *err);
/** Roles, end tokens, stripping, and the trie of special tokens. */
qn_status qn_vocab_specials(qn_vocab *v, const qn_file *file, qn_err *err);
/** Build `shown`. */
qn_status qn_vocab_show(qn_vocab *v, qn_err *err);

/** One byte of text: its token, else the unknown token, else nothing, as the reference tokenizers do (Falcon has no token for 0x03). */
void qn_vocab_byte(const qn_vocab *v, unsigned char byte, qn_ids *out);

/** GPT-2's alphabet: the code point that stands for a byte, and back (-1: none). */
uint32_t qn_byte_to_alpha(unsigned char byte);
int32_t qn_alpha_to_byte(uint32_t cp);

/** Value of exactly "<0xHH>", or -1. */
int32_t qn_byte_token_value(qn_str text);

/** U+2581, which stands for a blank in the pieces of SentencePiece. */
#define QN_BLANK "\xe2\x96\x81"

#endif
