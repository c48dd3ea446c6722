/**
 * quern: run large language models from GGUF files on a CPU.
 *
 * The whole public interface. Everything is a model (a file, immutable once open), an engine (a model made ready for this
 * machine's CPU), or a session (one timeline of text). Rules that hold throughout:
 *
 *  - A function that can fail returns a qn_status and, where `err` is not NULL, writes one sentence that says what and where.
 *  - The library never prints, exits, aborts, reads the environment or keeps mutable globals.
 *  - `xxx_close` accepts a pointer to NULL, and sets the pointer to NULL.
 *  - Text is UTF-8 with a length in bytes; it may hold NUL. Strings handed out end in a NUL that the length leaves out.
 *  - "Borrowed" memory stays the caller's; memory handed out belongs to the named object, until the named event.
 *  - A qn_file, qn_model, qn_template is immutable: any number of threads may use it. A qn_engine serves sessions and requests of any number
 *    of threads. A qn_session, qn_sampler serves one thread at a time, except where a function says otherwise.
 *  - Option structs begin with `size`: set it to sizeof, or use the QN_..._INIT macro; zero means the default in every field. Fields are only ever
 *    added at the end: a program built with an older header works with a newer library, and one that sets a field which the library does not
 *    know is told so (QN_ERR_UNSUPPORTED). Structs that the library fills end in `reserved` where later versions may have more to tell.
 */
#ifndef QUERN_H
#define QUERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define QN_API
#else
#define QN_API __attribute__((visibility("default")))
#endif

#define QN_VERSION_MAJOR 0
#define QN_VERSION_MINOR 1
#define QN_VERSION_PATCH 0

/** "0.1.0": the version of the library that is linked, which may differ from the header's. */
QN_API const char *qn_version(void);

/* ---- status ------------------------------------------------------------------------------------------------------- */

typedef enum qn_status {
    QN_OK = 0,
    QN_ERR_NOMEM,       /* memory could not be had                                           */
    QN_ERR_IO,          /* the system refused to open, read, write or map a file             */
    QN_ERR_FORMAT,      /* the bytes are not what they should be: file, template, JSON       */
    QN_ERR_UNSUPPORTED, /* valid, but of a kind quern does not know; the sentence names it   */
    QN_ERR_ARG,         /* an argument outside its range                                     */
    QN_ERR_NOT_FOUND,   /* no such key, tensor, token                                        */
    QN_ERR_TYPE,        /* a key is there with another type                                  */
    QN_ERR_CTX_FULL,    /* more positions than the session's context holds                   */
    QN_ERR_CANCELLED,   /* qn_session_cancel was called, or a progress function said stop    */
    QN_ERR_TEMPLATE,    /* a chat template failed or called raise_exception                  */
    QN_ERR_LIMIT,       /* a budget of steps, depth or size ran out                          */
    QN_ERR_NUMERIC,     /* the model computed NaN or no finite logit                         */
} qn_status;

/** What went wrong, in one sentence without a newline. */
typedef struct qn_err {
    qn_status status;
    char text[500];
} qn_err;

/** A short English name, e.g. "out of memory". Never NULL. */
QN_API const char *qn_status_name(qn_status s);

/** A run of bytes that something else owns. `ptr[len]` is not readable unless the function says so. */
typedef struct qn_str {
    const char *ptr;
    size_t len;
} qn_str;

/** Progress of something slow: `done` of `total` bytes. Return false to stop it (QN_ERR_CANCELLED). */
typedef bool (*qn_progress_fn)(void *user, uint64_t done, uint64_t total);

/** What a person should know although nothing failed: one sentence, borrowed for the call. */
typedef void (*qn_log_fn)(void *user, const char *text);

/* ---- file: what a GGUF holds -------------------------------------------------------------------------------------- */

/** The value types of GGUF metadata, with their numbers in the file. */
typedef enum qn_vtype {
    QN_V_U8 = 0, QN_V_I8, QN_V_U16, QN_V_I16, QN_V_U32, QN_V_I32, QN_V_F32, QN_V_BOOL, QN_V_STRING, QN_V_ARRAY,
    QN_V_U64, QN_V_I64, QN_V_F64,
} qn_vtype;

/** One metadata value. Read scalars with the qn_value_as_* functions, array elements with qn_value_at. */
typedef struct qn_value {
    qn_vtype type;
    qn_vtype elem;        /* QN_V_ARRAY: type of the elements                                */
    uint64_t count;       /* QN_V_ARRAY: number of elements; else 1                          */
    const uint8_t *data;  /* the encoded bytes in the mapped file, checked to be complete    */
    size_t n_bytes;
} qn_value;

typedef struct qn_tensor_info {
    qn_str name;
    int32_t type;             /* number in the file; known to quern or not                   */
    const char *type_name;    /* "Q4_K"; "type 99" is never here: opening refuses it         */
    int32_t n_dims;           /* 1 .. 4                                                      */
    int64_t dims[4];          /* [0] is the row length; absent ones are 1                    */
    uint64_t offset;          /* of its first byte, in its file                              */
    uint64_t n_bytes;
    int32_t i_shard;          /* which file of a split set, 0-based                          */
} qn_tensor_info;

typedef struct qn_file qn_file;

/** Open and check a GGUF file (version 2 or 3), memory-mapped. Any shard of a split set opens the whole set.
 *  @return QN_ERR_IO, QN_ERR_FORMAT (the sentence says what the file looks like), QN_ERR_UNSUPPORTED, QN_ERR_NOMEM. */
QN_API qn_status qn_file_open(qn_file **out, const char *path, qn_err *err);
QN_API void qn_file_close(qn_file **file);

QN_API int32_t qn_file_version(const qn_file *file);
QN_API int32_t qn_file_n_shards(const qn_file *file);
QN_API uint64_t qn_file_bytes(const qn_file *file);      /* of all shards                    */
QN_API int64_t qn_file_n_keys(const qn_file *file);
QN_API int64_t qn_file_n_tensors(const qn_file *file);

/** Key number `i` in file order, of the first shard. @return false when i is outside [0, n_keys). */
QN_API bool qn_file_key_at(const qn_file *file, int64_t i, qn_str *key, qn_value *value);
/** @return false when there is no such key. */
QN_API bool qn_file_key(const qn_file *file, const char *key, qn_value *value);
/** @return false when i is outside [0, n_tensors). */
QN_API bool qn_file_tensor_at(const qn_file *file, int64_t i, qn_tensor_info *info);
/** @return index of the tensor, or -1. */
QN_API int64_t qn_file_tensor_find(const qn_file *file, const char *name);
/** Decode rows [row, row + n_rows) of tensor `i` to float32. A tensor has dims[1]*dims[2]*dims[3] rows.
 *  @param out  [n_rows][dims[0]] */
QN_API qn_status qn_file_rows_f32(const qn_file *file, int64_t i, int64_t row, int64_t n_rows, float *out, qn_err *err);

/** Scalars, with conversion where no bit is lost (any integer type into int64 when it fits; f32 into f64). Else QN_ERR_TYPE. */
QN_API qn_status qn_value_as_i64(const qn_value *v, int64_t *out);
QN_API qn_status qn_value_as_f64(const qn_value *v, double *out);
QN_API qn_status qn_value_as_bool(const qn_value *v, bool *out);
QN_API qn_status qn_value_as_str(const qn_value *v, qn_str *out);
/** "u32", "string", "array" ... */
QN_API const char *qn_vtype_name(qn_vtype t);

/** Walks the elements of an array value from the first; strings and nested arrays have no constant size, so there is no index. */
typedef struct qn_value_iter {
    const uint8_t *at, *end;
    uint64_t left;
    qn_vtype elem;
} qn_value_iter;
QN_API qn_value_iter qn_value_iterate(const qn_value *array);
/** @return false at the end. */
QN_API bool qn_value_next(qn_value_iter *it, qn_value *elem);

/* ---- model -------------------------------------------------------------------------------------------------------- */

typedef struct qn_model qn_model;

typedef struct qn_model_opts {
    size_t size;
    bool vocab_only;          /* metadata and vocabulary; no weights. An engine on it is refused                     */
    int32_t n_threads;        /* that pack the weights; 0: as many as the machine gives this process                 */
    qn_progress_fn progress;  /* called from the opening thread                                                      */
    void *progress_user;
    qn_log_fn log;            /* of the model and of engines on it, from the thread that opens them; may be NULL     */
    void *log_user;
    const char *quantize;     /* a name from qn_quantize_type_at: matrices become its main format while they are loaded, where that is smaller;
                                 NULL: as they are in the file                                                       */
} qn_model_opts;
#define QN_MODEL_OPTS_INIT { sizeof(qn_model_opts), false, 0, NULL, NULL, NULL, NULL, NULL }

/** How the vectors of a text's tokens become one. */
typedef enum qn_pooling {
    QN_POOLING_NONE = 0,      /* a vector for each token                                     */
    QN_POOLING_MEAN,          /* of all tokens                                               */
    QN_POOLING_LAST,
    QN_POOLING_FIRST,         /* where a CLS token stands                                    */
    QN_POOLING_RANK,          /* the scores that the model's classifier gives, one a label: no vector */
    QN_POOLING_MODEL,         /* the model's own: qn_model_info.pooling                      */
} qn_pooling;

typedef struct qn_model_info {
    const char *arch;         /* "llama". Owned by the model                                                         */
    const char *name;         /* general.name or ""                                                                  */
    int32_t n_vocab, n_layer, n_embd, n_head, n_head_kv, n_ctx_train;
    uint64_t n_params;
    uint64_t file_bytes;      /* of the tensors in the file                                                          */
    uint64_t weight_bytes;    /* in memory                                                                           */
    qn_pooling pooling;       /* that the file asks for; where it does not say, MEAN of an encoder and LAST of others   */
    int32_t n_labels;         /* scores of QN_POOLING_RANK; 0: the model has no classifier                           */
    bool is_encoder;          /* all tokens of a text see each other: it has embeddings, and no next token           */
    uint64_t reserved[2];     /* zero                                                        */
} qn_model_info;

/** Map, check and pack a model. `opts` may be NULL. The file's name and the tensor or key at fault are in the error's sentence. */
QN_API qn_status qn_model_open(qn_model **out, const char *path, const qn_model_opts *opts, qn_err *err);
/** Close it after every engine and sampler on it. */
QN_API void qn_model_close(qn_model **model);
QN_API void qn_model_get_info(const qn_model *model, qn_model_info *out);
/** The file behind the model; owned by the model. */
QN_API const qn_file *qn_model_file(const qn_model *model);

/* ---- tokens ------------------------------------------------------------------------------------------------------- */

enum {
    QN_TOK_SPECIAL = 1, /* add the BOS, EOS, CLS, SEP that the model's metadata asks for     */
    QN_TOK_PARSE = 2,   /* the text of control tokens ("<|im_end|>") becomes those tokens    */
};

/** Bytes [begin, end) of a text. */
typedef struct qn_range {
    size_t begin, end;
} qn_range;

/**
 * Text to token ids. Any bytes are accepted, invalid UTF-8 included; time is linear in `text.len` up to a logarithm.
 *
 * @param plain    [n_plain] byte ranges [begin, end) of `text`, ascending and disjoint, in which QN_TOK_PARSE does not apply: what
 *                 users wrote stays text. Token merges do not stop at their borders. May be NULL with n_plain 0.
 * @param ids      [cap]; may be NULL with cap 0
 * @param n        out: number of tokens of the text; when n > cap, the first cap were written and the status is QN_ERR_LIMIT
 */
QN_API qn_status qn_tokenize(const qn_model *model, qn_str text, int flags, const qn_range *plain, size_t n_plain, int32_t *ids,
                             size_t cap, size_t *n, qn_err *err);

/**
 * A query and a document as one text, as the model's classifier was trained on it: by the file's template for pairs where it has one
 * (tokenizer.chat_template.rerank), else with the special tokens that stand at the ends and between the parts. Neither part is looked through for special
 * tokens.
 * @param n        out: as from qn_tokenize
 * @param n_first  out: tokens of the first part where the model has a token type of its own for the second, else 0
 * @return as from qn_tokenize; QN_ERR_LIMIT where there are more than cap
 */
QN_API qn_status qn_tokenize_pair(const qn_model *model, qn_str query, qn_str document, int32_t *ids, size_t cap, size_t *n, size_t *n_first,
                                  qn_err *err);

/** The bytes of one token as it appears in running text; may be part of a character. Control tokens: their name when `special`, else
 *  nothing. Owned by the model. @return QN_ERR_ARG when id is outside [0, n_vocab). */
QN_API qn_status qn_token_text(const qn_model *model, int32_t id, bool special, qn_str *out);

/** Token ids to the bytes of the text, as the reference tokenizers do (SPM drops the space it put in front).
 *  @param out  [cap]; *n is the length of the whole text, QN_ERR_LIMIT when it is above cap */
QN_API qn_status qn_detokenize(const qn_model *model, const int32_t *ids, size_t n_ids, bool special, char *out, size_t cap, size_t *n,
                               qn_err *err);

/** Ids of the named roles, or -1: "bos", "eos", "eot", "unk", "sep", "pad", "cls", "mask". */
QN_API int32_t qn_token_id(const qn_model *model, const char *role);
/** Does this token end an answer (EOS, EOT, EOM or a known end marker)? */
QN_API bool qn_token_is_end(const qn_model *model, int32_t id);
QN_API bool qn_token_is_control(const qn_model *model, int32_t id);

/* ---- chat template ------------------------------------------------------------------------------------------------ */

typedef struct qn_template qn_template;

/** Budgets of one render; zero means the default. */
typedef struct qn_template_limits {
    size_t size;
    uint64_t max_steps;       /* evaluation steps, default 10 million                        */
    uint64_t max_bytes;       /* of output and of any string made on the way, default 64 MiB */
    int32_t max_depth;        /* of nesting and calls, default 200                           */
} qn_template_limits;

/** Compile a Jinja chat template as Hugging Face's transformers would. The source is copied. */
QN_API qn_status qn_template_open(qn_template **out, qn_str source, const qn_template_limits *limits, qn_err *err);
/** The template a model should be prompted with: the file's; else its family's; else a stated default (ChatML). */
QN_API qn_status qn_template_of_model(qn_template **out, const qn_model *model, qn_err *err);
QN_API void qn_template_close(qn_template **t);
/** Where it came from: "file", "family gemma", "default chatml", "given". Owned by the template. */
QN_API const char *qn_template_source(const qn_template *t);

/** Rendered text, and which of its bytes came out of the conversation and not from the template. */
typedef struct qn_prompt {
    char *text;               /* ends in NUL                                                 */
    size_t len;
    qn_range *plain;          /* [n_plain] for qn_tokenize                                   */
    size_t n_plain;
} qn_prompt;

/** Render. `context_json` is an object with the variables ("messages", "tools", "add_generation_prompt", "bos_token" ...). Strings inside
 *  "messages", "tools" and "documents" are marked as plain in the result.
 *  @param now  seconds since 1970 for strftime_now, read as UTC
 *  @return QN_ERR_TEMPLATE with the template's own words when it calls raise_exception; QN_ERR_LIMIT when a budget ran out. */
QN_API qn_status qn_template_render(const qn_template *t, qn_str context_json, int64_t now, qn_prompt *out, qn_err *err);
QN_API void qn_prompt_free(qn_prompt *p);

/* ---- engine and session ------------------------------------------------------------------------------------------- */

typedef struct qn_engine qn_engine;
typedef struct qn_session qn_session;

typedef struct qn_engine_opts {
    size_t size;
    int32_t n_threads;        /* 0: physical cores that affinity and the cgroup quota allow; more than there are CPUs count as these */
    int32_t n_ctx;            /* positions a session can hold; 0: min(trained, 4096)         */
    int32_t n_chunk;          /* prompt tokens a step, 1 .. 4096; 0: 512. An encoder reads a text in one step: 1 .. n_ctx; 0: n_ctx */
    const char *cpu;          /* highest instruction set level: "scalar", "avx2" ...; NULL: all the machine has */
    bool exact;               /* only kernels whose results are the same on every level      */
    bool profile;             /* time every stage: see qn_engine_stage_at                    */
    int32_t act_bits;         /* of activations that meet quantised weights: 16 (0: the same) follows float32 to its margins; 8 is what most
                                 programs compute with: faster prompts, and a divergence of some thousandths of a nat */
    int32_t n_sessions;       /* requests that run side by side, 1 .. 4096; 0: 1. The KV cache has room for as many timelines of n_ctx positions;
                                 more sessions may be open: they share it */
    uint64_t kv_memory;       /* bytes of the KV cache, in place of what n_sessions take; 0: as they take */
    const char *cache_type_k; /* how keys are kept, a name from qn_cache_types in any case; NULL: F16, or F32 where a model needs it.
                                 Q8_0 takes half of F16's memory at next to no loss, Q4_0 a quarter at a loss that shows */
    const char *cache_type_v; /* how values are kept                                         */
    const qn_model *draft_model; /* speculation: proposes tokens, which are evaluated together and kept while they are what the sampler chooses:
                                 the same text, sooner. Its vocabulary must be the model's. Borrowed like the model. NULL: none */
    bool draft_ngram;         /* the same without a model: what followed in the text where its last tokens have stood before */
    int32_t draft_max;        /* tokens in a draft, 1 .. 16; 0: 8. There are fewer where they do not pay */
} qn_engine_opts;
#define QN_ENGINE_OPTS_INIT { sizeof(qn_engine_opts), 0, 0, 0, NULL, false, false, 0, 0, 0, NULL, NULL, NULL, false, 0 }

typedef struct qn_memory_plan {
    uint64_t weight_bytes;    /* packed weights                                                                      */
    uint64_t kv_bytes;        /* KV blocks for n_ctx positions of each of the sessions                               */
    uint64_t scratch_bytes;   /* activations of one chunk, logits                                                    */
    uint64_t reserved[4];     /* zero                                                        */
} qn_memory_plan;
/** What a model and an engine with these options will take, computed from the file's header alone. n_ctx, n_chunk, n_threads, n_sessions and the cache's
 *  types count; kv_memory does not.
 *  @param opts  may be NULL
 *  @return as from qn_model_open and qn_engine_open */
QN_API qn_status qn_memory_estimate(const qn_file *file, const qn_engine_opts *opts, qn_memory_plan *out, qn_err *err);

typedef struct qn_engine_info {
    const char *cpu;          /* level in use. Static                                        */
    int32_t n_threads, n_ctx, n_chunk, n_sessions;
    uint64_t kv_bytes, scratch_bytes;
    const char *cache_type_k, *cache_type_v; /* "F16". Static                                */
    uint64_t reserved[4];     /* zero                                                        */
} qn_engine_info;

/** The model is borrowed and must outlive the engine. @return QN_ERR_ARG for an unknown level or one this CPU lacks. */
QN_API qn_status qn_engine_open(qn_engine **out, const qn_model *model, const qn_engine_opts *opts, qn_err *err);
QN_API void qn_engine_close(qn_engine **engine);
QN_API void qn_engine_get_info(const qn_engine *engine, qn_engine_info *out);
/** Names of the formats that keys and values can be kept in. @return their number; writes at most cap of them. Static strings. */
QN_API int32_t qn_cache_types(const char **names, int32_t cap);
/** Names of the levels this CPU can run, lowest first. @return their number; writes at most cap of them. Static strings. */
QN_API int32_t qn_cpu_levels(const char **names, int32_t cap);

/** The most 16-bit multiply-adds a second that one thread does in a level's products of quantised weights, measured on the calling thread
 *  for some 20 ms. @param level NULL: the highest. @return QN_ERR_ARG as from qn_engine_open */
QN_API qn_status qn_cpu_peak(const char *level, double *mul_adds_per_second, qn_err *err);

/** What a step must read and multiply at least: `n` tokens of one timeline from `position` on. Nothing is evaluated.
 *  @param n          1 .. n_chunk; position + n <= n_ctx
 *  @param n_outputs  of its last tokens, logits are wanted: 0 .. n
 *  @param bytes      out: of weights and KV cache, each read once a step */
QN_API qn_status qn_engine_cost(const qn_engine *engine, int32_t position, int32_t n, int32_t n_outputs, double *bytes, double *mul_adds,
                                qn_err *err);

/** One stage of the forward pass, and what it has cost since the last reset. */
typedef struct qn_stage_info {
    const char *name;         /* "qkv", "attend" ... Static                                  */
    int32_t i_layer;          /* -1: outside the layers                                      */
    uint64_t n_runs;
    double seconds;           /* of all runs, until the last thread was done                 */
    double bytes;             /* of weights and KV cache that had to be read                 */
    double mul_adds;
    uint64_t reserved[4];     /* zero                                                        */
} qn_stage_info;
/** Stages in the order they run; 0 for an engine opened without `profile`. */
QN_API int32_t qn_engine_stage_count(const qn_engine *engine);
/** @return false outside [0, count). Not while a session of the engine evaluates. */
QN_API bool qn_engine_stage_at(const qn_engine *engine, int32_t i, qn_stage_info *out);
QN_API void qn_engine_stage_reset(qn_engine *engine);

/** The engine is borrowed and must outlive the session. The position starts at 0. */
QN_API qn_status qn_session_open(qn_session **out, qn_engine *engine, qn_err *err);
QN_API void qn_session_close(qn_session **s);

/**
 * Evaluate `n` tokens that follow the session's position.
 *
 * @param tokens  [n] ids, each in [0, n_vocab). Borrowed for the call.
 * @param n       1 ..; cut into chunks of the engine's n_chunk
 * @param logits  [n_vocab] float32 for the last token, natural log scale, not normalised. NULL skips the output head.
 * @return QN_OK; QN_ERR_CTX_FULL or QN_ERR_ARG: nothing was evaluated; QN_ERR_CANCELLED: finished chunks stay.
 */
QN_API qn_status qn_session_eval(qn_session *s, const int32_t *tokens, int32_t n, float *logits, qn_err *err);
/** The same with the logits of all tokens: `logits` is [n][n_vocab]. */
QN_API qn_status qn_session_eval_all(qn_session *s, const int32_t *tokens, int32_t n, float *logits, qn_err *err);
/** Tokens evaluated so far. */
QN_API int32_t qn_session_position(const qn_session *s);
/** Go to the longest prefix of `tokens` that is evaluated already, in this session or any other of the engine, forgetting the rest, and say how
 *  long it is. Of other sessions, whole blocks of 16 tokens count, open or closed, as long as their memory was not needed. What a sliding
 *  window has let go of cannot be gone back to: the prefix is shorter then. */
QN_API int32_t qn_session_rewind(qn_session *s, const int32_t *tokens, int32_t n);
/** Become a copy of another session of the same engine. What both have is held once, until one of them goes its own way.
 *  @return QN_ERR_ARG for sessions of different engines */
QN_API qn_status qn_session_fork(qn_session *s, const qn_session *from, qn_err *err);

/** Write what a session has evaluated to a file, whole or not at all: it grows under a temporary name beside `path`, goes to the disk and is renamed. It
 *  holds tokens, keys, values and states (some kB a token), and is good for the same model file, cache formats and act_bits.
 *  @param note  text of the caller's that is kept with it, such as the conversation; may be empty
 *  @return QN_ERR_IO, QN_ERR_NOMEM */
QN_API qn_status qn_session_save(const qn_session *s, const char *path, qn_str note, qn_err *err);
/**
 * Become a session that was saved: nothing is evaluated again.
 * @param note  out: the session's, until it is closed or loads another; may be NULL
 * @return QN_ERR_ARG: it is of another model, or was kept or evaluated otherwise; QN_ERR_FORMAT: no saved session, or a damaged one; QN_ERR_UNSUPPORTED:
 *         of a version that is not known; QN_ERR_CTX_FULL: it has no room here; QN_ERR_IO, QN_ERR_NOMEM, and as from qn_file_open. The session is as
 *         before, or empty where memory or blocks ran out
 */
QN_API qn_status qn_session_load(qn_session *s, const char *path, qn_str *note, qn_err *err);

/**
 * The hidden states of a text: what the model's last norm gives, before the logits. The session's earlier text is forgotten; it holds this one then.
 * @param tokens  [n], 1 .. n_ctx; of an encoder 1 .. n_chunk too
 * @param unit_length  each vector is scaled to length 1; scores are left as they are
 * @param out     [n_embd]; [n][n_embd] with QN_POOLING_NONE, [n_labels] with QN_POOLING_RANK
 * @return as from qn_session_eval; QN_ERR_UNSUPPORTED: QN_POOLING_RANK of a model without a classifier; QN_ERR_NUMERIC: the result is not finite
 */
QN_API qn_status qn_session_embed(qn_session *s, const int32_t *tokens, int32_t n, qn_pooling pooling, bool unit_length, float *out, qn_err *err);

/** A text of qn_engine_embed. */
typedef struct qn_embed_text {
    const int32_t *tokens;    /* [n] borrowed for the call                                   */
    int32_t n;                /* 1 .. n_ctx; of an encoder 1 .. n_chunk too                  */
    int32_t n_first;          /* of a pair: tokens of the first part, where the model tells the parts apart (qn_tokenize_pair); 0: it is no pair */
} qn_embed_text;

typedef struct qn_embed_opts {
    size_t size;
    qn_pooling pooling;
    bool unit_length;         /* each vector is scaled to length 1; scores are left as they are */
    qn_progress_fn progress;  /* in tokens; called before every step and at the end          */
    void *progress_user;
} qn_embed_opts;
#define QN_EMBED_OPTS_INIT { sizeof(qn_embed_opts), QN_POOLING_NONE, false, NULL, NULL }

/**
 * Embeddings of many texts: as many as fit are evaluated side by side, n_chunk tokens a step. A text's vector does not depend on the others. Sessions and
 * requests of the engine go on between the steps; the blocks of the KV cache that they leave free are what this works with.
 * @param out  [n_texts][n_embd]; [n_labels] a text with QN_POOLING_RANK; with QN_POOLING_NONE [n_embd] for each token of each text
 * @return QN_ERR_ARG, QN_ERR_CTX_FULL: a text cannot be, the sentence tells its index, nothing was evaluated; QN_ERR_UNSUPPORTED, QN_ERR_NUMERIC as from
 *         qn_session_embed; QN_ERR_CANCELLED: by `progress`
 */
QN_API qn_status qn_engine_embed(qn_engine *engine, const qn_embed_text *texts, int32_t n_texts, const qn_embed_opts *opts, float *out, qn_err *err);

/** Stop an evaluation or generation that runs in another thread, within one chunk. May be called from a signal handler. */
QN_API void qn_session_cancel(qn_session *s);

/* ---- sampling ----------------------------------------------------------------------------------------------------- */

typedef struct qn_logit_bias {
    int32_t id;
    float bias;               /* added to the logit; -INFINITY bans the token                */
} qn_logit_bias;

/** Every field's off value is written beside it; QN_SAMPLE_OPTS_INIT has the defaults. */
typedef struct qn_sample_opts {
    size_t size;
    uint64_t seed;            /* QN_SEED_RANDOM: drawn from the system; read back the one in use with qn_sampler_seed */
    float temperature;        /* 0: greedy                                                   */
    float dyn_temp_range;     /* 0: off. Entropy moves the temperature within +- this        */
    float dyn_temp_exponent;  /* default 1                                                   */
    int32_t top_k;            /* 0: off                                                      */
    float top_p;              /* 1 or 0: off                                                 */
    float min_p;              /* 0: off                                                      */
    float typical_p;          /* 1 or 0: off                                                 */
    float top_n_sigma;        /* 0: off                                                      */
    float xtc_probability;    /* 0: off                                                      */
    float xtc_threshold;      /* default 0.1; above 0.5: off                                 */
    float repeat_penalty;     /* 1 or 0: off                                                 */
    float frequency_penalty;  /* 0: off                                                      */
    float presence_penalty;   /* 0: off                                                      */
    int32_t penalty_last_n;   /* tokens looked back on; 0: off; -1: all                      */
    float dry_multiplier;     /* 0: off                                                      */
    float dry_base;           /* default 1.75                                                */
    int32_t dry_allowed_length; /* default 2                                                 */
    int32_t dry_last_n;       /* -1: all; 0: off                                             */
    const char *const *dry_breakers; /* [n_dry_breakers] NUL-ended; NULL: newline, colon, double quote, star */
    int32_t n_dry_breakers;
    int32_t mirostat;         /* 0: off; 2: mirostat 2                                       */
    float mirostat_tau;       /* target surprise in bits, default 5                          */
    float mirostat_eta;       /* learning rate, default 0.1                                  */
    const qn_logit_bias *bias; /* [n_bias]                                                   */
    int32_t n_bias;
    const char *order;        /* names joined by ';'; NULL: qn_sampler_default_order()       */
} qn_sample_opts;
#define QN_SEED_RANDOM UINT64_MAX
/** Fill `o` with the defaults: temperature 0.8, top_k 40, top_p 0.95, min_p 0.05, everything else off. */
QN_API void qn_sample_opts_init(qn_sample_opts *o);
/** "penalties;dry;top_n_sigma;top_k;typical_p;top_p;min_p;xtc;temperature" */
QN_API const char *qn_sampler_default_order(void);

typedef struct qn_sampler qn_sampler;
/** @param model  for the texts of DRY's breakers and n_vocab; borrowed. Options and what they point to are copied.
 *  @return QN_ERR_ARG names the option that is out of range, NaN, or the unknown name in `order`. */
QN_API qn_status qn_sampler_open(qn_sampler **out, const qn_model *model, const qn_sample_opts *opts, qn_err *err);
QN_API void qn_sampler_close(qn_sampler **s);
QN_API uint64_t qn_sampler_seed(const qn_sampler *s);
/** A token that counts for penalties: prompt tokens, and each generated one after it is chosen. */
QN_API void qn_sampler_accept(qn_sampler *s, int32_t token);
/** Forget accepted tokens and restart the random stream from the seed. */
QN_API void qn_sampler_reset(qn_sampler *s);
/** Choose a token. @param logits [n_vocab], unchanged. @return QN_ERR_NUMERIC: NaN, or nothing left to choose from. */
QN_API qn_status qn_sampler_pick(qn_sampler *s, const float *logits, int32_t *token, qn_err *err);

/* ---- generation --------------------------------------------------------------------------------------------------- */

typedef enum qn_finish {
    QN_FINISH_STOP = 0,       /* end token or stop string                                    */
    QN_FINISH_LENGTH,         /* max_tokens, or the context is full                          */
    QN_FINISH_CANCELLED,
    QN_FINISH_ERROR,
} qn_finish;

/** New text, whole UTF-8 characters only, never part of a stop string. Return false to end the answer (QN_FINISH_CANCELLED). */
typedef bool (*qn_text_fn)(void *user, const char *text, size_t len);

typedef struct qn_generate_opts {
    size_t size;
    int32_t max_tokens;       /* 0 or less: until the context is full                        */
    const char *const *stop;  /* [n_stop] NUL-ended strings that end the answer and are not part of it */
    int32_t n_stop;
    bool ignore_end;          /* go on past end tokens                                       */
    bool special;             /* control tokens appear in the text                           */
    qn_text_fn on_text;       /* may be NULL                                                 */
    void *user;
    void (*on_token)(void *user, int32_t id); /* may be NULL; each token as it is chosen, an end token too */
    bool slide;               /* a full context goes on: its first tokens stay, the older half of the others goes, the rest is evaluated again */
    int32_t n_keep;           /* first tokens that stay, rounded up to 16, at most half of the context */
    void (*on_drop)(void *user, const int32_t *tokens, int32_t n); /* may be NULL; the tokens that go, borrowed for the call */
} qn_generate_opts;

typedef struct qn_generate_result {
    qn_finish finish;
    int32_t n_prompt;         /* tokens of the prompt                                        */
    int32_t n_cached;         /* of these, not evaluated again                               */
    int32_t n_generated;      /* the end token included                                      */
    double prompt_seconds, generate_seconds, first_token_seconds;
    int32_t stop_index;       /* which stop string, or -1                                    */
    int32_t n_drafted;        /* tokens that were proposed                                   */
    int32_t n_accepted;       /* of these, what was chosen                                   */
    double queue_seconds;     /* of a request, until it first ran. The other times count from the beginning, this one included */
    int32_t n_preempted;      /* how often a request gave its blocks away and was evaluated anew */
    double slowest_seconds;   /* the longest wait between a token and the next               */
    double draft_gain;        /* time that the answer would have taken without drafts over that it took, as measured steps tell; 0: not known */
    int32_t n_draft_steps;    /* steps that had proposals                                    */
    uint64_t reserved[2];     /* zero                                                        */
} qn_generate_result;

/** Bring the session to exactly `prompt` (reusing the prefix it has), then generate.
 *  @param prompt   [n_prompt], 1 ..
 *  @param sampler  chooses; prompt tokens are accepted into it first. Reset it between unrelated prompts.
 *  @return QN_ERR_CTX_FULL: the prompt has no room; nothing was evaluated. On cancel: QN_OK with QN_FINISH_CANCELLED. */
QN_API qn_status qn_session_generate(qn_session *s, const int32_t *prompt, int32_t n_prompt, qn_sampler *sampler,
                                     const qn_generate_opts *opts, qn_generate_result *result, qn_err *err);

/* ---- requests: many answers at once ------------------------------------------------------------------------------- */

/*
 * Requests of any thread go into one queue. A thread of the engine takes steps for all of them: each mixes the next tokens of answers with
 * pieces of prompts, n_chunk tokens together. A request joins at the next step after it has been submitted, when blocks of the KV cache are free
 * for its prompt. Where blocks run out, the request that came last among those of the lowest priority gives its own away and is evaluated anew
 * later. No text depends on what runs beside it.
 */

typedef struct qn_request qn_request;

typedef struct qn_request_opts {
    size_t size;
    const int32_t *prompt;    /* [n_prompt] copied                                           */
    int32_t n_prompt;
    const qn_sample_opts *sampling; /* copied; NULL: the defaults. Choice i draws from seed + i */
    int32_t max_tokens;       /* as in qn_generate_opts, like the next four                  */
    const char *const *stop;
    int32_t n_stop;
    bool ignore_end;
    bool special;
    int32_t n_choices;        /* answers to the prompt, which is evaluated once: 1 .. 128; 0: 1 */
    int32_t priority;         /* the highest go first; among equals who came first           */
    /* On the engine's thread, which waits for them; may be NULL. They may submit and cancel requests, and close this one in on_end. */
    bool (*on_text)(void *user, int32_t i_choice, const char *text, size_t len); /* false: this choice ends (QN_FINISH_CANCELLED) */
    void (*on_token)(void *user, int32_t i_choice, int32_t id);
    void (*on_end)(void *user, int32_t i_choice, const qn_generate_result *result, const qn_err *err); /* err: NULL unless it failed */
    void *user;
} qn_request_opts;

/** Queue a request. From any thread.
 *  @param out  a handle for the functions below, to be closed before the engine
 *  @return QN_ERR_ARG, QN_ERR_CTX_FULL: an option or the prompt cannot be; nothing was queued */
QN_API qn_status qn_engine_submit(qn_engine *engine, const qn_request_opts *opts, qn_request **out, qn_err *err);

/** What is new in a choice of a request without on_text. */
typedef struct qn_event {
    int32_t i_choice;
    const char *text;         /* [len] and a NUL; the request's, until the next call of qn_request_next */
    size_t len;
    bool ended;               /* this was the choice's last                                  */
    qn_generate_result result; /* of an ended one                                            */
    qn_err err;               /* of one with QN_FINISH_ERROR                                 */
} qn_event;
/** Wait for news for at most `seconds` (0: do not wait; below 0: without end). One thread at a time. @return false: there are none */
QN_API bool qn_request_next(qn_request *r, double seconds, qn_event *out);
/** Wait until all choices have ended. @return false: not within `seconds` (as above) */
QN_API bool qn_request_wait(qn_request *r, double seconds);
/** All choices end before the next step, with QN_FINISH_CANCELLED. From any thread. */
QN_API void qn_request_cancel(qn_request *r);
/** Cancels what still runs, and waits for its end. */
QN_API void qn_request_close(qn_request **r);

/* ---- statistics --------------------------------------------------------------------------------------------------- */

enum { QN_HISTOGRAM_BUCKETS = 64 };

/** How often a value was how large. Bucket i counts those at most qn_histogram_bound(i) and above the bound before; two make an octave. */
typedef struct qn_histogram {
    uint64_t n;
    double sum;
    uint64_t bucket[QN_HISTOGRAM_BUCKETS];
} qn_histogram;
/** 2^-17 for bucket 0, 2^((i - 34) / 2) for bucket i, infinity for the last. */
QN_API double qn_histogram_bound(int32_t i);
/** The value that a share `q` (0 .. 1) of all are at most, to the width of its bucket; 0 where there are none. */
QN_API double qn_histogram_quantile(const qn_histogram *h, double q);

/** The engine's totals since it was opened: of answers of sessions (qn_session_generate) and of choices of requests. */
typedef struct qn_engine_stats {
    int32_t n_waiting, n_running; /* choices of requests now                                 */
    uint64_t n_requests, n_ended; /* answers                                                 */
    uint64_t n_steps;         /* for answers                                                 */
    uint64_t n_prompt, n_cached, n_generated, n_drafted, n_accepted; /* tokens of answers that have ended */
    uint64_t n_preempted;
    qn_histogram queue_seconds;       /* of requests, until they first ran                   */
    qn_histogram first_token_seconds; /* from the call to the first token                    */
    qn_histogram token_seconds;       /* between a token and the next                        */
    qn_histogram step_answers;        /* that a step worked for                              */
    qn_histogram step_tokens;         /* that a step evaluated                               */
    int32_t n_blocks, n_blocks_free, n_blocks_idle; /* of the KV cache: of the layers that have least left. Idle: nobody's, kept for prompts to come */
    uint64_t reserved[8];     /* zero                                                        */
} qn_engine_stats;
QN_API void qn_engine_get_stats(qn_engine *engine, qn_engine_stats *out);

/* ---- importance data ---------------------------------------------------------------------------------------------- */

/** The mean square of every input of a model's matrices over a text: what --imatrix of quantising weights errors with. */
typedef struct qn_imatrix qn_imatrix;

typedef struct qn_imatrix_opts {
    size_t size;
    int32_t n_ctx;            /* tokens of a chunk, each evaluated by itself; 0: 512         */
    int32_t n_chunks;         /* so many of the text at most; 0: all                         */
    int32_t n_threads;        /* as in qn_engine_opts                                        */
    const char *cpu;          /* as in qn_engine_opts                                        */
    bool head;                /* the matrix of the logits too                                */
    const char *text_name;    /* noted in the file; may be NULL                              */
    qn_progress_fn progress;  /* in tokens; called before every chunk and at the end         */
    void *progress_user;
} qn_imatrix_opts;
#define QN_IMATRIX_OPTS_INIT { sizeof(qn_imatrix_opts), 0, 0, 0, NULL, false, NULL, NULL, NULL }

typedef struct qn_imatrix_info {
    int64_t n_tensors;
    uint32_t n_chunks, chunk_tokens; /* of the text it was made from; 0: unknown             */
    uint64_t reserved[4];     /* zero                                                        */
} qn_imatrix_info;

/** Evaluate a text and collect. It is cut as llama-imatrix does: tokens of plain text, chunks of n_ctx, the first token of each replaced by BOS
 *  where the model puts one in front; the rest is left out.
 *  @param opts  may be NULL
 *  @return QN_ERR_ARG: the text is shorter than a chunk; QN_ERR_CANCELLED: by `progress` */
QN_API qn_status qn_imatrix_collect(qn_imatrix **out, const qn_model *model, qn_str text, const qn_imatrix_opts *opts, qn_err *err);
/** Read a file of llama.cpp's: GGUF, or the older ".dat". @return QN_ERR_IO, QN_ERR_FORMAT, QN_ERR_UNSUPPORTED, QN_ERR_NOMEM */
QN_API qn_status qn_imatrix_load(qn_imatrix **out, const char *path, qn_err *err);
/** Write a GGUF file of the kind that llama.cpp reads, whole or not at all. */
QN_API qn_status qn_imatrix_save(const qn_imatrix *imatrix, const char *path, qn_err *err);
QN_API void qn_imatrix_close(qn_imatrix **imatrix);
QN_API void qn_imatrix_get_info(const qn_imatrix *imatrix, qn_imatrix_info *out);
/** Mean squares of the inputs of a tensor.
 *  @param n       inputs of one matrix: the tensor's dims[0]
 *  @param values  out: [n] for each matrix of the tensor, in order; owned by the imatrix
 *  @return QN_OK; QN_ERR_NOT_FOUND: none for this tensor; QN_ERR_FORMAT: there is another number of them. *values is NULL then */
QN_API qn_status qn_imatrix_find(const qn_imatrix *imatrix, qn_str tensor, int64_t n, const float **values);

/* ---- quantising --------------------------------------------------------------------------------------------------- */

/** A model file made smaller: which format each tensor gets is planned when it is opened, from the header alone; qn_quantize_run does the work.
 *  Tensors that are not quantised by their nature (norms, biases, small tables) are copied as they are. */
typedef struct qn_quantize qn_quantize;

/** A type that a file can be given. */
typedef struct qn_quantize_type {
    const char *name;         /* "Q4_K_M". Static                                            */
    const char *format;       /* of most of its tensors: "Q4_K"                              */
    const char *about;        /* one line: what goes beyond that format                      */
} qn_quantize_type;
/** @return false outside [0, number of types). Largest first. */
QN_API bool qn_quantize_type_at(int32_t i, qn_quantize_type *out);

typedef struct qn_quantize_opts {
    size_t size;
    const char *type;         /* a name from qn_quantize_type_at, in any case; never NULL    */
    const char *output_type;  /* format of the output head, e.g. "Q8_0"; NULL: the type's own choice */
    const char *embedding_type; /* format of the token embeddings; NULL: the type's own choice */
    /** Format of one tensor, or NULL for the type's own choice. Asked for the tensors that would be quantised. May be NULL. */
    const char *(*tensor_type)(void *user, const qn_tensor_info *tensor);
    void *tensor_type_user;
    const qn_imatrix *imatrix; /* importance data, borrowed until the close; NULL: every weight counts the same */
    const char *imatrix_name; /* of its file, noted in the new one; may be NULL              */
    int32_t n_threads;        /* 0: as many as the machine gives this process                */
    bool pure;                /* every matrix gets the type's main format                    */
    bool no_fallback;         /* rows that are no multiple of a format's block are an error, not a reason to take another format */
    bool keep_split;          /* as many files as the source has; else they become one       */
    bool allow_requantize;    /* quantise what is quantised already                          */
    qn_progress_fn progress;  /* bytes of the source. Called from the thread that called qn_quantize_run */
    void *progress_user;
} qn_quantize_opts;
#define QN_QUANTIZE_OPTS_INIT { sizeof(qn_quantize_opts), NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, false, false, false, false, NULL, NULL }

/** Plan. Strings and `tensor_type` in `opts` are needed for the call alone.
 *  @return QN_ERR_ARG: an unknown type or format, one that cannot be written, or rows that no_fallback forbids; QN_ERR_UNSUPPORTED: the source
 *          is quantised already; as from qn_file_open. The sentence names the tensor */
QN_API qn_status qn_quantize_open(qn_quantize **out, const char *path, const qn_quantize_opts *opts, qn_err *err);
QN_API void qn_quantize_close(qn_quantize **q);
/** The source; owned by `q`. */
QN_API const qn_file *qn_quantize_file(const qn_quantize *q);

/** A tensor of the new file, which has the index it has in the source. */
typedef struct qn_quantize_tensor {
    qn_tensor_info source;
    const char *type_name;    /* that it gets                                                */
    const char *wanted;       /* that was meant for it; another one where the rows are no multiple of its block */
    uint64_t n_bytes;         /* that it takes                                               */
    bool has_importance;
    double error;             /* root of the mean square of the change over that of the weights; 0 until qn_quantize_run */
    uint64_t reserved[4];     /* zero                                                        */
} qn_quantize_tensor;
/** @return false outside [0, qn_file_n_tensors). */
QN_API bool qn_quantize_tensor_at(const qn_quantize *q, int64_t i, qn_quantize_tensor *out);

typedef struct qn_quantize_totals {
    uint64_t n_weights;
    uint64_t source_bytes, tensor_bytes; /* of all tensors, before and after                 */
    uint64_t file_bytes;      /* of all new files                                            */
    int32_t n_files;
    int32_t n_quantized, n_substituted;  /* tensors that get another format; of these, that get another than was meant */
    int32_t n_without_importance;        /* that get another format without importance data, where there is some for others */
    uint64_t reserved[4];     /* zero                                                        */
} qn_quantize_totals;
QN_API void qn_quantize_get_totals(const qn_quantize *q, qn_quantize_totals *out);

/**
 * Write the file. It grows under a temporary name beside `path`, goes to the disk and is renamed; after an error or a cancel nothing is left of
 * it, and what was there under the name still is. Weights pass through in pieces: memory does not grow with the model.
 * @param path  "x.gguf"; several files (keep_split) are "x-00001-of-00003.gguf" and so on
 * @return QN_ERR_ARG: `path` leads to the source; QN_ERR_IO: the sentence says what was refused and, on a full disk, the bytes that are needed
 *         and free; QN_ERR_NUMERIC names the tensor and row of a NaN or an infinity; QN_ERR_CANCELLED
 */
QN_API qn_status qn_quantize_run(qn_quantize *q, const char *path, qn_err *err);

/* ---- GPTQ --------------------------------------------------------------------------------------------------------- */

/** Linear algebra that the library does not bring with it; the program has it from LAPACK. */
typedef struct qn_linalg {
    /** h += x^T x, of which the upper triangle counts. @param x [n_rows][n], one row every x_stride floats  @param h [n][n] */
    void (*gram)(void *user, int64_t n, int64_t n_rows, const float *x, int64_t x_stride, float *h);
    /** The upper triangle of a symmetric matrix a becomes the upper triangle of u, where a^-1 = u^T u. @return false: a is not positive definite */
    bool (*factor)(void *user, int64_t n, double *a);
    void *user;
} qn_linalg;

/** Quantising against a text (GPTQ, Frantar et al. 2022): layer by layer, what rounding a weight does to a layer's results is made good by
 *  the weights that are rounded after it, on the inputs that the layers before it, quantised already, give. Files are of the same formats and sizes. */
typedef struct qn_gptq qn_gptq;

typedef struct qn_gptq_opts {
    size_t size;
    qn_str text;              /* of the kind that the model will meet; some ten thousand tokens do. Needed for qn_gptq_open alone */
    int32_t n_ctx;            /* tokens of a window, each evaluated by itself; 0: 512        */
    int32_t n_chunks;         /* so many windows at most; 0: all                             */
    int32_t n_threads;        /* as in qn_engine_opts                                        */
    const char *cpu;          /* as in qn_engine_opts                                        */
    double damping;           /* of the inputs' mean square, added to every one; 0: QN_GPTQ_DAMPING */
    bool act_order;           /* columns of large inputs first, on scales that are searched before */
    qn_linalg linalg;         /* must be there                                               */
    qn_progress_fn progress;  /* in windows times matrices; called between pieces of work    */
    void *progress_user;
} qn_gptq_opts;
#define QN_GPTQ_DAMPING 0.01

/**
 * Take over the matrices of the layers in the next qn_quantize_run of `q`. The model is loaded, and the text goes through it as the run asks for
 * layers: memory for the whole model and some 30 kB a token are needed.
 * @param q     borrowed; close this before it
 * @param path  the file that `q` was opened with
 * @return QN_ERR_ARG: no linear algebra, a text shorter than a window; as from qn_model_open and qn_engine_open. Errors while layers are
 *         quantised come from qn_quantize_run: QN_ERR_NUMERIC where a matrix reads nothing but zeros or what is not finite; QN_ERR_CANCELLED
 */
QN_API qn_status qn_gptq_open(qn_gptq **out, qn_quantize *q, const char *path, const qn_gptq_opts *opts, qn_err *err);
QN_API void qn_gptq_close(qn_gptq **gptq);

#ifdef __cplusplus
}
#endif
#endif
