/* Which names of tokenizer.ggml.pre mean which passes. The expressions are those of the models' own tokenizer files. */
#include "src/token/pre.h"

#include <string.h>

#define LETTER QN_C_LETTER
#define RANGES(a) .ranges = (a), .n_ranges = (int32_t)(sizeof(a) / sizeof *(a))

/* ---- sets ---- */

static const qn_cp_range line_feed[] = { { '\n', '\n' } };

/* [\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff] as DeepSeek writes it; the last range stops before the surrogates. */
static const qn_cp_range deepseek_cjk[] = { { 0x800, 0x9fa5 }, { 0xac00, 0xd7ff } };
/* Ideographs, hiragana and katakana. */
static const qn_cp_range cjk_kana[] = { { 0x3040, 0x30ff }, { 0x4e00, 0x9fa5 } };

/* Letters of scripts with case, as DeepSeek LLM lists them. */
static const qn_cp_range cased_letters[] = {
    { 'A', 'Z' },         { 'a', 'z' },         { 0xb5, 0xb5 },       { 0xc0, 0xd6 },       { 0xd8, 0xf6 },       { 0xf8, 0x1ba },
    { 0x1bc, 0x1bf },     { 0x1c4, 0x293 },     { 0x295, 0x2af },     { 0x370, 0x373 },     { 0x376, 0x377 },     { 0x37b, 0x37d },
    { 0x37f, 0x37f },     { 0x386, 0x386 },     { 0x388, 0x38a },     { 0x38c, 0x38c },     { 0x38e, 0x3a1 },     { 0x3a3, 0x3f5 },
    { 0x3f7, 0x481 },     { 0x48a, 0x52f },     { 0x531, 0x556 },     { 0x10a0, 0x10c5 },   { 0x13a0, 0x13f5 },   { 0x13f8, 0x13fd },
    { 0x1c90, 0x1cba },   { 0x1cbd, 0x1cbf },   { 0x1d00, 0x1d2b },   { 0x1d6b, 0x1d77 },   { 0x1d79, 0x1d9a },   { 0x1e00, 0x1f15 },
    { 0x1f18, 0x1f1d },   { 0x1f20, 0x1f45 },   { 0x1f48, 0x1f4d },   { 0x1f50, 0x1f57 },   { 0x1f59, 0x1f59 },   { 0x1f5b, 0x1f5b },
    { 0x1f5d, 0x1f5d },   { 0x1f5f, 0x1f7d },   { 0x1f80, 0x1fb4 },   { 0x1fb6, 0x1fbc },   { 0x1fbe, 0x1fbe },   { 0x1fc2, 0x1fc4 },
    { 0x1fc6, 0x1fcc },   { 0x1fd0, 0x1fd3 },   { 0x1fd6, 0x1fdb },   { 0x1fe0, 0x1fec },   { 0x1ff2, 0x1ff4 },   { 0x1ff6, 0x1ffc },
    { 0x2102, 0x2102 },   { 0x2107, 0x2107 },   { 0x210a, 0x2113 },   { 0x2115, 0x2115 },   { 0x2119, 0x211d },   { 0x2124, 0x2124 },
    { 0x2126, 0x2126 },   { 0x2128, 0x2128 },   { 0x212a, 0x212d },   { 0x212f, 0x2134 },   { 0x2139, 0x2139 },   { 0x213c, 0x213f },
    { 0x2145, 0x2149 },   { 0x214e, 0x214e },   { 0x2183, 0x2184 },   { 0x2c00, 0x2c7b },   { 0x2c7e, 0x2ce4 },   { 0x2ceb, 0x2cee },
    { 0x2cf2, 0x2cf3 },   { 0xa640, 0xa66d },   { 0xa680, 0xa69b },   { 0xa722, 0xa76f },   { 0xa771, 0xa787 },   { 0xa78b, 0xa78e },
    { 0xab70, 0xabbf },   { 0xfb00, 0xfb06 },   { 0xfb13, 0xfb17 },   { 0xff21, 0xff3a },   { 0xff41, 0xff5a },   { 0x10400, 0x1044f },
    { 0x104b0, 0x104d3 }, { 0x104d8, 0x104fb }, { 0x10c80, 0x10cb2 }, { 0x10cc0, 0x10cf2 }, { 0x118a0, 0x118df }, { 0x1e900, 0x1e943 },
};
/* [!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002] */
static const qn_cp_range deepseek_marks[] = {
    { '!', '/' }, { ':', '~' }, { 0x2018, 0x201f }, { 0x3000, 0x3002 }, { 0xff01, 0xff0f }, { 0xff1a, 0xff5e },
};

/* Symbols of ASCII beside \p{P}; Falcon's set has the grave accent, the default set has not. */
static const qn_cp_range ascii_symbols[] = { { '$', '$' }, { '+', '+' }, { '<', '>' }, { '^', '^' }, { '|', '|' }, { '~', '~' } };
static const qn_cp_range ascii_symbols_grave[] = {
    { '$', '$' }, { '+', '+' }, { '<', '>' }, { '^', '^' }, { '`', '`' }, { '|', '|' }, { '~', '~' },
};

/* What ends a word of BLOOM, beside white space: ( ) | . , ! ? and the full stops and commas of other scripts. */
static const qn_cp_range bloom_stops[] = {
    { '!', '!' },       { '(', ')' },       { ',', ',' },       { '.', '.' },       { '?', '?' },       { '|', '|' },
    { 0x60c, 0x60c },   { 0x6d4, 0x6d4 },   { 0x964, 0x964 },   { 0x2026, 0x2026 }, { 0x3001, 0x3002 }, { 0xff0c, 0xff0c },
};

/* Youtu: Hangul, full-width punctuation, bopomofo. */
static const qn_cp_range youtu_hangul[] = { { 0x3131, 0x318e }, { 0xac00, 0xd7a3 } };
static const qn_cp_range youtu_marks[] = {
    { 0x2014, 0x2014 }, { 0x2018, 0x2019 }, { 0x201c, 0x201d }, { 0x2026, 0x2026 }, { 0x3001, 0x303f }, { 0xfe30, 0xfe4f },
    { 0xff01, 0xff01 }, { 0xff0c, 0xff0c }, { 0xff1a, 0xff1b },
};
static const qn_cp_range youtu_bopomofo[] = { { 0x3105, 0x312f } };

/* AFMoE: scripts that are written without blanks. */
static const qn_cp_range afmoe_scripts[] = {
    { 0xe40, 0xe7f },   { 0xe80, 0xeff },   { 0x1000, 0x109f }, { 0x1100, 0x11ff }, { 0x1780, 0x17ff }, { 0x2f00, 0x2fdf },
    { 0x3040, 0x30ff }, { 0x3400, 0x4dbf }, { 0x4e00, 0x9fff }, { 0xa9e0, 0xa9ff }, { 0xaa60, 0xaa7f }, { 0xac00, 0xd7af },
    { 0xf900, 0xfaff }, { 0xff65, 0xff9f },
};

/* ---- passes ---- */

#define GPT2 { .find = qn_pre_gpt2 }
#define NUMBERS(n) { .find = qn_pre_run, .in = QN_C_NUMBER, .max = (n) }
#define CL100K(n) .find = qn_pre_words, .contractions = true, .max = (n), .tail = QN_TAIL_NEWLINES
#define O200K(n) .find = qn_pre_cased, .max = (n), .tail = QN_TAIL_NEWLINES_SLASH
#define LINES { .find = qn_pre_run, .invert = true, RANGES(line_feed) }
#define EACH_NEWLINE { .find = qn_pre_run, .in = QN_C_NEWLINE, .max = 1 }

static const qn_pre_rule gpt2[] = { GPT2 };
static const qn_pre_rule starcoder[] = { NUMBERS(1), GPT2 };
static const qn_pre_rule falcon[] = {
    { .find = qn_pre_run, .in = QN_C_PUNCT, RANGES(ascii_symbols_grave) }, GPT2, { .find = qn_pre_triple },
};
static const qn_pre_rule defaults[] = {
    { .find = qn_pre_run, .in = QN_C_PUNCT, RANGES(ascii_symbols) }, GPT2, NUMBERS(0), { .find = qn_pre_triple },
};
static const qn_pre_rule llama3[] = { { CL100K(3) } };
static const qn_pre_rule qwen2[] = { { CL100K(1) } };
static const qn_pre_rule qwen35[] = { { CL100K(1), .mark = QN_C_MARK } };
static const qn_pre_rule jais2[] = { { CL100K(3), .cascade = true } };
static const qn_pre_rule laguna[] = { LINES, { CL100K(1) } };
static const qn_pre_rule minicpm5[] = { NUMBERS(3), { CL100K(0) } };
static const qn_pre_rule ufakzeka[] = { { .find = qn_pre_words, .max = 1, .tail = QN_TAIL_NEWLINES } };
static const qn_pre_rule seed_coder[] = { { .find = qn_pre_words, .contractions = true, .max = 1 } };
static const qn_pre_rule exaone_moe[] = {
    { .find = qn_pre_words, .contractions = true, .max = 1, .tail = QN_TAIL_ONE, .phrases = true },
};
static const qn_pre_rule gpt4o[] = { { O200K(3), .contractions = true } };
static const qn_pre_rule tekken[] = { { O200K(1) } };
static const qn_pre_rule kimi_k2[] = {
    { .find = qn_pre_cased, .contractions = true, .max = 3, .tail = QN_TAIL_NEWLINES, .no_han = true },
};
static const qn_pre_rule tiny_aya[] = {
    { .find = qn_pre_thousands, .in = QN_C_DIGIT, .to_boundary = true }, { O200K(3), .contractions = true },
};
static const qn_pre_rule youtu[] = {
    { .find = qn_pre_run, RANGES(youtu_hangul) },   { .find = qn_pre_run, RANGES(youtu_marks) },
    { .find = qn_pre_run, RANGES(youtu_bopomofo) }, { .find = qn_pre_run, RANGES(cjk_kana) },
    { O200K(1), .contractions = true },
};
static const qn_pre_rule deepseek_llm[] = {
    EACH_NEWLINE,
    { .find = qn_pre_run, .lead = QN_C_SPACE, RANGES(cased_letters) },
    { .find = qn_pre_run, .lead = QN_C_SPACE, RANGES(deepseek_marks) },
    { .find = qn_pre_trailing_space },
    { .find = qn_pre_run, RANGES(deepseek_cjk) },
    NUMBERS(0),
};
static const qn_pre_rule deepseek_coder[] = {
    EACH_NEWLINE,
    { .find = qn_pre_run, .lead = QN_C_SPACE, .in = LETTER },
    { .find = qn_pre_run, .lead = QN_C_SPACE, .in = QN_C_PUNCT },
    { .find = qn_pre_run, RANGES(deepseek_cjk) },
    NUMBERS(1),
};
static const qn_pre_rule deepseek_v3[] = {
    NUMBERS(3), { .find = qn_pre_run, RANGES(cjk_kana) }, { .find = qn_pre_punct, .tail = QN_TAIL_NEWLINES },
};
static const qn_pre_rule spark[] = {
    NUMBERS(3), { .find = qn_pre_run, RANGES(cjk_kana) }, { .find = qn_pre_punct, .lone_newlines = true }, NUMBERS(1),
};
static const qn_pre_rule afmoe[] = {
    { .find = qn_pre_thousands, .in = QN_C_NUMBER },
    { .find = qn_pre_run, RANGES(afmoe_scripts) },
    { .find = qn_pre_punct, .tail = QN_TAIL_NEWLINES },
};
static const qn_pre_rule bloom[] = { { .find = qn_pre_run, .in = QN_C_SPACE, .invert = true, .lead_blank = true, RANGES(bloom_stops) } };
static const qn_pre_rule viking[] = {
    { .find = qn_pre_run, .in = QN_C_SPACE, .invert = true, .lead_blank = true, RANGES(bloom_stops) }, NUMBERS(1),
};
static const qn_pre_rule superbpe[] = { NUMBERS(0), { .find = qn_pre_group_starts, .in = QN_C_DIGIT } };
static const qn_pre_rule chameleon[] = {
    { .find = qn_pre_sentinel },
    { .find = qn_pre_image },
    { .find = qn_pre_blanks },
    NUMBERS(1),
    { .find = qn_pre_run, .in = QN_C_PUNCT, RANGES(ascii_symbols_grave), .max = 1 },
    GPT2,
};
static const qn_pre_rule lines[] = { LINES };
static const qn_pre_rule words[] = { { .find = qn_pre_run, .in = QN_C_SPACE, .invert = true } };

/* ---- names ---- */

#define ROW(name, rules, flags) { (name), (rules), (int32_t)(sizeof(rules) / sizeof *(rules)), (flags) }
#define WHOLE QN_PRE_WHOLE
#define BOS QN_PRE_BOS
#define NFC QN_PRE_NFC
#define RAW QN_PRE_RAW
#define LSTRIP QN_PRE_LSTRIP

/* The first row is for files that do not say: the split of GPT-2, which the originals of such files use. */
static const qn_pre table[] = {
    ROW("", gpt2, 0),
    ROW("default", defaults, 0),
    ROW("gpt-2", gpt2, 0),
    ROW("phi-2", gpt2, 0),
    ROW("mpt", gpt2, NFC),
    ROW("olmo", gpt2, NFC),
    ROW("jais", gpt2, 0),
    ROW("trillion", gpt2, 0),
    ROW("granite-docling", gpt2, 0),
    ROW("exaone4", gpt2, 0),
    ROW("gigachat", gpt2, 0),
    ROW("a.x-4.0", gpt2, 0),
    ROW("mellum", gpt2, 0),
    ROW("modern-bert", gpt2, LSTRIP),
    ROW("jina-es", gpt2, 0),
    ROW("jina-de", gpt2, 0),
    ROW("jina-v1-en", gpt2, 0),
    ROW("jina-v2-es", gpt2, LSTRIP),
    ROW("jina-v2-de", gpt2, LSTRIP),
    ROW("jina-v2-code", gpt2, LSTRIP),
    ROW("roberta-bpe", gpt2, 0),
    ROW("starcoder", starcoder, 0),
    ROW("refact", starcoder, 0),
    ROW("smollm", starcoder, 0),
    ROW("codeshell", starcoder, 0),
    ROW("exaone", starcoder, 0),
    ROW("minerva-7b", starcoder, 0),
    ROW("mellum2", starcoder, 0),
    ROW("command-r", starcoder, NFC),
    ROW("falcon", falcon, 0),
    ROW("llama3", llama3, WHOLE | BOS),
    ROW("llama-v3", llama3, WHOLE | BOS),
    ROW("llama-bpe", llama3, WHOLE | BOS),
    ROW("falcon3", llama3, WHOLE | BOS),
    ROW("falcon-h1", llama3, WHOLE | BOS),
    ROW("pixtral", llama3, WHOLE | BOS),
    ROW("midm-2.0", llama3, WHOLE | BOS),
    ROW("lfm2", llama3, WHOLE | BOS),
    ROW("jina-v5-nano", llama3, WHOLE | BOS),
    ROW("dbrx", llama3, 0),
    ROW("smaug-bpe", llama3, 0),
    ROW("glm4", llama3, QN_PRE_NO_BOS),
    ROW("chatglm-bpe", llama3, QN_PRE_NO_BOS),
    ROW("jais-2", jais2, 0),
    ROW("minicpm5", minicpm5, WHOLE),
    ROW("qwen2", qwen2, NFC),
    ROW("deepseek-r1-qwen", qwen2, 0),
    ROW("kormo", qwen2, 0),
    ROW("f2llmv2", qwen2, NFC),
    ROW("megrez", qwen2, NFC),
    ROW("stablelm2", qwen2, 0),
    ROW("hunyuan", qwen2, 0),
    ROW("solar-open", qwen2, 0),
    ROW("grok-2", qwen2, 0),
    ROW("qwen35", qwen35, NFC),
    ROW("bailingmoe", qwen2, 0),
    ROW("bailingmoe2", qwen2, 0),
    ROW("llada-moe", qwen2, 0),
    ROW("laguna", laguna, 0),
    ROW("ufakzeka", ufakzeka, 0),
    ROW("seed-coder", seed_coder, 0),
    ROW("exaone-moe", exaone_moe, 0),
    ROW("gpt-4o", gpt4o, 0),
    ROW("llama4", gpt4o, 0),
    ROW("kanana2", gpt4o, 0),
    ROW("talkie", gpt4o, 0),
    ROW("minimax-m2", gpt4o, 0),
    ROW("granite-embed-multi-97m", gpt4o, WHOLE),
    ROW("tiny_aya", tiny_aya, 0),
    ROW("cohere2moe", tiny_aya, 0),
    ROW("tekken", tekken, WHOLE | BOS),
    ROW("kimi-k2", kimi_k2, 0),
    ROW("youtu", youtu, WHOLE),
    ROW("deepseek-llm", deepseek_llm, 0),
    ROW("deepseek-coder", deepseek_coder, 0),
    ROW("deepseek-v3", deepseek_v3, 0),
    ROW("hunyuan-dense", deepseek_v3, 0),
    ROW("joyai-llm", deepseek_v3, 0),
    ROW("hy_v4", deepseek_v3, 0),
    ROW("spark2_5", spark, 0),
    ROW("afmoe", afmoe, 0),
    ROW("bloom", bloom, 0),
    ROW("poro-chat", bloom, 0),
    ROW("gpt3-finnish", bloom, 0),
    ROW("viking", viking, 0),
    ROW("superbpe", superbpe, 0),
    ROW("chameleon", chameleon, BOS),
    ROW("gemma4", lines, RAW | BOS),
    ROW("granite-embed-multi-311m", lines, RAW | BOS),
    ROW("sarvam-moe", lines, RAW),
    ROW("whitespace", words, RAW),
};

const qn_pre *qn_pre_at(int32_t i)
{
    return i >= 0 && (size_t)i < sizeof table / sizeof *table ? &table[i] : NULL;
}

const qn_pre *qn_pre_find_name(qn_str name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].name) == name.len && memcmp(table[i].name, name.ptr, name.len) == 0) return &table[i];
    return NULL;
}
