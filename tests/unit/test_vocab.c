/* Opening vocabularies: what is wrong is named, what is odd is bearable, roles, ends and switches are those of the file. */
#include "src/token/vocab.h"
#include "tests/common/vocab_make.h"

#include <math.h>

static char alphabet[256][3];

/* A byte-level vocabulary with two merges, a control token and a user-defined one. */
static void make_bpe(vocab_make *m)
{
    *m = (vocab_make){ .model = "gpt2", .pre = "gpt-2" };
    make_alphabet(m, alphabet, qn_byte_to_alpha);
    make_token(m, "ab", QN_T_NORMAL, 0);          /* 256 */
    make_token(m, "abc", QN_T_NORMAL, 0);         /* 257 */
    make_token(m, "<|im_end|>", QN_T_CONTROL, 0); /* 258 */
    make_token(m, "<note>", QN_T_USER, 0);        /* 259 */
    make_merge(m, "a b");
    make_merge(m, "ab c");
}

/* A SentencePiece vocabulary without byte tokens. */
static void make_spm(vocab_make *m)
{
    *m = (vocab_make){ .model = "llama", .scores = true, .no_merges = true };
    make_token(m, "<unk>", QN_T_UNKNOWN, 0);
    make_token(m, "<s>", QN_T_CONTROL, 0);
    make_token(m, "</s>", QN_T_CONTROL, 0);
    make_token(m, QN_BLANK, QN_T_NORMAL, -3); /* 3 */
    make_token(m, "a", QN_T_NORMAL, -4);
    make_token(m, "b", QN_T_NORMAL, -5);
    make_token(m, "ab", QN_T_NORMAL, -1);
    make_token(m, QN_BLANK "a", QN_T_NORMAL, -2); /* 7 */
}

static void expect_ids(const qn_vocab *v, qn_str text, int flags, const char *want)
{
    int32_t ids[256];
    size_t n;
    qn_err err;
    if (qn_vocab_tokenize(v, text, flags, NULL, 0, ids, 256, &n, &err) != QN_OK) fail_msg("%s", err.text);
    char got[2048] = "";
    for (size_t i = 0; i < n; i++) snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d", i ? " " : "", ids[i]);
    if (strcmp(got, want)) fail_msg("\"%.*s\": %s, not %s", QN_STR_ARG(text), got, want);
}

static void expect_made(const vocab_make *m, qn_str text, int flags, const char *want)
{
    qn_file *f;
    qn_vocab *v;
    qn_err err;
    if (make_open(m, &f, &v, &err) != QN_OK) fail_msg("%s", err.text);
    expect_ids(v, text, flags, want);
    qn_vocab_close(&v);
    qn_file_close(&f);
}

static void expect_refused(const vocab_make *m, qn_status want, const char *part)
{
    qn_file *f;
    qn_vocab *v;
    qn_err err;
    const qn_status s = make_open(m, &f, &v, &err);
    if (s != want || v || !strstr(err.text, part)) fail_msg("%d \"%s\", not %d with \"%s\"", s, s == QN_OK ? "" : err.text, want, part);
}

static void test_refused(void **state)
{
    (void)state;
    vocab_make *m = malloc(sizeof *m);
    make_bpe(m);
    m->model = "morse";
    expect_refused(m, QN_ERR_UNSUPPORTED, "\"morse\"");
    make_bpe(m);
    m->pre = "no-such-pre";
    expect_refused(m, QN_ERR_UNSUPPORTED, "\"no-such-pre\"");
    make_bpe(m);
    m->n = 0;
    expect_refused(m, QN_ERR_NOT_FOUND, "tokenizer.ggml.tokens");
    make_bpe(m);
    m->no_merges = true;
    expect_refused(m, QN_ERR_NOT_FOUND, "tokenizer.ggml.merges");
    make_spm(m);
    m->score[5] = (float)NAN;
    expect_refused(m, QN_ERR_FORMAT, "NaN for token 5");
    make_bpe(m);
    make_set(m, "bos_token_id", 1, true);
    expect_refused(m, QN_ERR_TYPE, "bos_token_id");
    make_bpe(m);
    make_set(m, "add_bos_token", 7, false);
    expect_refused(m, QN_ERR_TYPE, "add_bos_token");
    free(m);
}

/* Columns of the wrong element type, or too short for the tokens. */
static void test_columns(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        qn_vtype elem;
        uint64_t n;
        qn_status want;
    } cases[] = {
        { "tokenizer.ggml.scores", QN_V_U8, 3, QN_ERR_TYPE },     { "tokenizer.ggml.scores", QN_V_F64, 3, QN_ERR_TYPE },
        { "tokenizer.ggml.scores", QN_V_F32, 2, QN_ERR_FORMAT },  { "tokenizer.ggml.scores", QN_V_F32, 3, QN_OK },
        { "tokenizer.ggml.scores", QN_V_I32, 3, QN_OK },          { "tokenizer.ggml.token_type", QN_V_U8, 3, QN_ERR_TYPE },
        { "tokenizer.ggml.token_type", QN_V_F32, 3, QN_ERR_TYPE }, { "tokenizer.ggml.token_type", QN_V_I32, 2, QN_ERR_FORMAT },
        { "tokenizer.ggml.token_type", QN_V_I32, 4, QN_OK },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[] = "/tmp/quern-column-XXXXXX";
        close(mkstemp(path));
        qn_writer *w;
        qn_err err;
        static const uint8_t zeros[64];
        const qn_str tokens[] = { QN_LIT("<unk>"), QN_LIT("a"), QN_LIT("b") };
        assert_int_equal(qn_writer_open(&w, path, 32, &err), QN_OK);
        qn_writer_key_str(w, "tokenizer.ggml.model", QN_LIT("llama"));
        qn_writer_key_strings(w, "tokenizer.ggml.tokens", tokens, 3);
        qn_writer_key_array(w, cases[i].key, cases[i].elem, zeros, cases[i].n);
        assert_int_equal(qn_writer_close(&w, &err), QN_OK);
        qn_file *f;
        qn_vocab *v;
        assert_int_equal(qn_file_open(&f, path, &err), QN_OK);
        unlink(path);
        const qn_status s = qn_vocab_open(&v, f, &err);
        if (s != cases[i].want || (s != QN_OK && !strstr(err.text, cases[i].key))) fail_msg("case %zu: %d %s", i, s, err.text);
        qn_vocab_close(&v);
        qn_file_close(&f);
    }
}

static void test_plain(void **state)
{
    (void)state;
    vocab_make *m = malloc(sizeof *m);
    make_bpe(m);
    expect_made(m, QN_LIT("abc ab"), 0, "257 32 256");
    expect_made(m, QN_LIT(""), QN_TOK_SPECIAL, "");
    m->pre = NULL; /* as GPT-2 */
    expect_made(m, QN_LIT("abc ab"), 0, "257 32 256");
    make_spm(m);
    expect_made(m, QN_LIT("ab b"), QN_TOK_SPECIAL, "1 3 6 3 5");
    make_set(m, "add_space_prefix", 0, true);
    expect_made(m, QN_LIT("ab b"), 0, "6 3 5");
    make_set(m, "add_eos_token", 1, true);
    make_set(m, "add_bos_token", 0, true);
    expect_made(m, QN_LIT("a"), QN_TOK_SPECIAL, "4 2");
    make_spm(m); /* characters without bytes: one unknown token for the run */
    expect_made(m, QN_LIT("a\xc3\xa9z b"), 0, "7 0 3 5");
    free(m);
}

static void test_lenient(void **state)
{
    (void)state;
    vocab_make *m = malloc(sizeof *m);
    make_bpe(m); /* merges of unknown pieces, into unknown pieces, or without a blank */
    make_merge(m, "ab x\xc3\xa9y");
    make_merge(m, "d e");
    make_merge(m, "nothing");
    make_merge(m, "");
    make_merge(m, " ");
    expect_made(m, QN_LIT("abcde"), 0, "257 100 101");
    make_bpe(m); /* one text twice: the lower id is found */
    make_token(m, "abc", QN_T_NORMAL, 0);
    make_token(m, "", QN_T_NORMAL, 0);
    expect_made(m, QN_LIT("abc"), 0, "257");
    make_bpe(m); /* BOS is asked for, but there is none; roles outside the vocabulary are none */
    make_set(m, "add_bos_token", 1, true);
    expect_made(m, QN_LIT("a"), QN_TOK_SPECIAL, "97");
    make_set(m, "bos_token_id", 100000, false);
    make_set(m, "eos_token_id", 0xffffffff, false);
    expect_made(m, QN_LIT("a"), QN_TOK_SPECIAL, "97");
    make_bpe(m); /* no token for the first byte of e acute, and no unknown token: left out */
    m->token[0xc3] = QN_LIT("[gone]");
    expect_made(m, QN_LIT("a\xc3\xa9"), 0, "97 169");
    make_set(m, "unknown_token_id", 257, false);
    expect_made(m, QN_LIT("a\xc3\xa9"), 0, "97 257 169");
    make_spm(m); /* names of bytes that are none, typed as bytes */
    make_token(m, "<0x-1>", QN_T_BYTE, 0);
    make_token(m, "<0xZZ>", QN_T_BYTE, 0);
    make_token(m, "<0x1FF>", QN_T_BYTE, 0);
    make_token(m, "<0x", QN_T_BYTE, 0);
    make_token(m, "<0xC3>", QN_T_BYTE, 0); /* 12 */
    expect_made(m, QN_LIT("a\xc3"), 0, "7 12");
    free(m);
}

static void test_no_tokenizer(void **state)
{
    (void)state;
    vocab_make *m = calloc(1, sizeof *m);
    m->no_merges = true;
    for (int named = 0; named < 2; named++) {
        qn_file *f;
        qn_vocab *v;
        qn_err err;
        m->model = named ? "no_vocab" : NULL;
        assert_int_equal(make_open(m, &f, &v, &err), QN_OK);
        assert_int_equal(qn_vocab_size(v), 0);
        assert_int_equal(qn_vocab_id(v, "bos"), -1);
        size_t n;
        assert_int_equal(qn_vocab_tokenize(v, QN_LIT("a"), 0, NULL, 0, NULL, 0, &n, &err), QN_ERR_UNSUPPORTED);
        qn_vocab_close(&v);
        qn_file_close(&f);
    }
    free(m);
}

static void test_ends(void **state)
{
    (void)state;
    vocab_make *m = malloc(sizeof *m);
    qn_file *f;
    qn_vocab *v;
    qn_err err;
    make_bpe(m); /* EOS is wrong in the file: the marker ends all the same; ordinary tokens are no markers */
    make_token(m, "<|end|>", QN_T_NORMAL, 0);
    make_set(m, "eos_token_id", 3, false);
    assert_int_equal(make_open(m, &f, &v, &err), QN_OK);
    assert_true(qn_vocab_is_end(v, 3));
    assert_true(qn_vocab_is_end(v, 258));
    assert_false(qn_vocab_is_end(v, 259));
    assert_false(qn_vocab_is_end(v, 260));
    assert_false(qn_vocab_is_end(v, -1));
    assert_false(qn_vocab_is_end(v, 1 << 30));
    assert_int_equal(qn_vocab_id(v, "eot"), 258);
    assert_int_equal(qn_vocab_id(v, "eos"), 3);
    assert_int_equal(qn_vocab_id(v, "pad"), -1);
    assert_int_equal(qn_vocab_id(v, "nonsense"), -1);
    assert_true(qn_vocab_is_control(v, 258));
    assert_false(qn_vocab_is_control(v, 259));
    qn_vocab_close(&v);
    qn_file_close(&f);

    make_bpe(m); /* channels: <|end|> closes one, <|return|> and <|call|> end the answer */
    m->type[258] = QN_T_NORMAL;
    const int32_t end = make_token(m, "<|end|>", QN_T_CONTROL, 0), ret = make_token(m, "<|return|>", QN_T_CONTROL, 0);
    const int32_t call = make_token(m, "<|call|>", QN_T_CONTROL, 0), s = make_token(m, "</s>", QN_T_USER, 0);
    assert_int_equal(make_open(m, &f, &v, &err), QN_OK);
    assert_false(qn_vocab_is_end(v, end));
    assert_true(qn_vocab_is_end(v, ret));
    assert_true(qn_vocab_is_end(v, call));
    assert_false(qn_vocab_is_end(v, s)); /* HTML's, where the file does not call it control */
    qn_vocab_close(&v);
    qn_file_close(&f);
    free(m);
}

static void test_user_defined_marker_is_control(void **state)
{
    (void)state;
    vocab_make *m = malloc(sizeof *m);
    make_bpe(m);
    m->type[258] = QN_T_USER; /* "<|im_end|>" found in every text would let a user end his turn */
    expect_made(m, QN_LIT("a<note>"), 0, "97 259");
    expect_made(m, QN_LIT("a<|im_end|>"), QN_TOK_PARSE, "97 258");
    expect_made(m, QN_LIT("<|im_end|>"), 0, "60 124 105 109 95 101 110 100 124 62");
    make_token(m, "<|U|>", QN_T_USER, 0); /* 260: a template's token by its looks, found anywhere but in what users wrote */
    expect_made(m, QN_LIT("<|U|>a<|U|>"), 0, "260 97 260");
    qn_file *f;
    qn_vocab *v;
    int32_t ids[16];
    size_t n;
    const qn_range user = { 6, 17 };
    assert_int_equal(make_open(m, &f, &v, NULL), QN_OK);
    assert_int_equal(qn_vocab_tokenize(v, QN_LIT("<|U|>a<|U|><note>"), QN_TOK_PARSE, &user, 1, ids, 16, &n, NULL), QN_OK);
    assert_int_equal(n, 8);
    assert_int_equal(ids[0], 260);
    assert_int_equal(ids[7], 259);
    qn_vocab_close(&v);
    qn_file_close(&f);
    free(m);
}

static void test_strips(void **state)
{
    (void)state;
    vocab_make *m = malloc(sizeof *m);
    make_spm(m);
    m->arch = "phi3"; /* white space behind its special tokens belongs to them, but not behind <s> */
    make_token(m, "<|user|>", QN_T_CONTROL, 0); /* 8 */
    expect_made(m, QN_LIT("<|user|>\n\t a"), QN_TOK_PARSE, "8 7");
    expect_made(m, QN_LIT("<|user|>\xc2\xa0\xe3\x80\x80 a"), QN_TOK_PARSE, "8 7");
    expect_made(m, QN_LIT("<s> a"), QN_TOK_PARSE, "1 3 7");
    make_bpe(m);
    m->pre = "jina-v2-de"; /* white space before its mask token belongs to it */
    make_token(m, "<mask>", QN_T_CONTROL, 0); /* 260 */
    expect_made(m, QN_LIT("a \n<mask> a"), QN_TOK_PARSE, "97 260 32 97");
    expect_made(m, QN_LIT("a\xe3\x80\x80 \xc2\xa0<mask>"), QN_TOK_PARSE, "97 260");
    expect_made(m, QN_LIT("\xa0<mask> \x85 <mask>"), QN_TOK_PARSE, "160 260 32 133 260"); /* bytes that are no characters are no white space */
    expect_made(m, QN_LIT("<mask> <mask>"), QN_TOK_PARSE, "260 260");
    free(m);
}

static void test_raw(void **state)
{
    (void)state;
    vocab_make *m = calloc(1, sizeof *m);
    m->model = "gemma4";
    make_token(m, "<bos>", QN_T_CONTROL, 0);
    make_token(m, "a", QN_T_NORMAL, 0);
    make_token(m, QN_BLANK, QN_T_NORMAL, 0);
    make_token(m, QN_BLANK "a", QN_T_NORMAL, 0); /* 3 */
    make_token(m, "\n\n", QN_T_NORMAL, 0);
    make_token(m, "\xc3\xa9", QN_T_NORMAL, 0);
    make_token(m, "<0x0A>", QN_T_BYTE, 0); /* 6 */
    make_token(m, "<0xE6>", QN_T_BYTE, 0);
    make_merge(m, QN_BLANK " a");
    make_set(m, "bos_token_id", 0, false);
    expect_made(m, QN_LIT("a a\xc3\xa9"), QN_TOK_SPECIAL, "0 1 3 5");
    expect_made(m, QN_LIT("a\n\na\n"), 0, "1 4 1 6");
    expect_made(m, QN_LIT("\xe6 \n"), 0, "7 2 6");
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_lenient),
        cmocka_unit_test(test_no_tokenizer),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_user_defined_marker_is_control),
        cmocka_unit_test(test_strips),
        cmocka_unit_test(test_raw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
