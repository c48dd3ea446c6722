"""Make tests/data/tokenizer: a tiny vocabulary of each kind, and the ids that independent tokenizers give for some texts.

    python3 tests/data/make_tokenizers.py

Needs Hugging Face's `tokenizers` (0.23) and `sentencepiece` (0.2), which train the vocabularies and are the judges. <kind>.gguf is the
vocabulary, <kind>.jsonl has lines of {"text", "add_special", "parse_special", "ids"}."""
import io
import json
import os
import struct

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as spm_pb
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer")
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

LINES = """The mill turns while the river runs, and the miller counts his sacks of grain in the evening light.
A quern is a stone tool for hand-grinding a wide variety of materials, most of all grain.
She said: "It's late, we'll go; they've gone, I'd wait, don't you?" Nobody answered, of course.
Numbers: 1 22 333 4444 55555, 3.14159, 1,000,000, 2026-01-15 and 0x7fff are cut into tokens as well.
def grind(grain, stones=2):\n    for stone in range(stones):\n        grain = [x for x in grain if x != stone]\n    return grain
Die Mühle dreht sich, solange der Fluß fließt; über größere Mühlen weiß der Müller nichts.
Le moulin tourne tant que la rivière coule, et le meunier a déjà compté ses sacs à l'été dernier.
El molino gira mientras corre el río, ¿y quién cuenta los sacos por la mañana?
Мельница крутится, пока течёт река, и мельник считает мешки с зерном.
Ο μύλος γυρίζει όσο τρέχει το ποτάμι.
磨坊在河水流动时转动，磨坊主在傍晚数着粮食袋子。石磨是研磨谷物的工具。
川が流れる間、水車は回る。粉屋は夕方に袋を数える。
강이 흐르는 동안 물레방아가 돌아간다.
चक्की अनाज पीसती है और नदी बहती रहती है।
الطاحونة تدور ما دام النهر يجري.
""".strip().split("\n")

TEXTS = LINES + [
    "", " ", "  ", "   three blanks", "a", " a", "a ", "Hello world", "hello  world", "\n", "\n\n", "\t\ttabs", "line one\nline two\r\nline three\n",
    "it's IT'S they'LL don't 's", "1", "12", "123", "1234", "12345678901", "x=1;y=22;z=333", "é", "e\u0301", "ﬁne ﬂoor", "Ångström A\u030angstro\u0308m",
    "ÀÉÎÕÜ àéîõü", "STRASSE straße ẞ", "İstanbul ıstanbul", "ΑΒΓ ΣΊΣΥΦΟΣ", "한국어 \u1112\u1161\u11ab", "नमस्ते दुनिया", "שלום עולם", "🙂", "👩\u200d👩\u200d👧 family",
    "a\u0000b", "\u0001\u0002", "soft\u00adhyphen zero\u200bwidth", "\ufeffbom", "\u2581literal \u2581\u2581", "wide\u3000space nbsp\u00a0space", "...!?;:--", "C++ a->b && c||d",
    "https://example.org/a?b=c&d=%20e", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a" * 101 + " b", "x" * 100, "日本語のテキスト", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐐀",
    "<|im_start|>user\nhi<|im_end|>", "a <|im_end|> b", "<tool>call</tool> <tool>", "<s> a </s>", "[CLS] a [SEP][MASK]", "<unk>", "<0x41>", "<pad>x",
]


# What BERT's normaliser changes: capitals, accents (composed and not, of several), ideographs, controls.
NORMALIZED = LINES + ["ÀÉÎÕÜ àéîõü", "A\u030angstro\u0308m \u1e69 s\u0323\u0307", "İstanbul ISTANBUL ıstanbul", "ΑΒΓ ΣΊΣΥΦΟΣ ΐ", "STRASSE straße ẞ", "ǅ ǆ Ǆ", "Ω Å",
                      "磨坊abc磨坊", "\u2f00\u4e00\uf900x", "한국어 \u1112\u1161\u11ab", "日本語のテキスト", "a\u0000b\u0001c\ufffdd", "soft\u00adhyphen\u200b", "C++ a->b $5 ^ `",
                      "नमस्ते", "שָׁלוֹם", "İ̇ ɐ̃́", "x" * 101, "𝔘𝔫𝔦 𐐀", "[MASK] [mask]", "Ünïcödé\u3000wide"]

# White space around tokens that take it, and around those that do not.
AROUND = ["a [MASK] b", "a[MASK]b", "a  \t\n[MASK]  b", "[MASK]", " [MASK] ", "[MASK][MASK]", "[MASK] [MASK]", "a [SEP] b", " [CLS]  a [SEP]", "a\u00a0[MASK]\u00a0b",
          "a\u3000[MASK]", "a\u2028 [MASK]", "\u00e9 [MASK]", "[MASK", "a <tool> b", "a <tool>  <tool>b", "  <tool>"]

# Normalisation of the Unigram vocabulary.
RULES = [("\ufb01", "fi"), ("\ufb02", "fl"), ("e\u0301", "é"), ("\u3000", " "), ("\u00a0", " "), ("\n", " "), ("\t", " "), ("\r", " "), ("\u00ad", ""), ("\u0001", "")]


def gguf(path, keys):
    types = {"u32": 4, "i32": 5, "f32": 6, "bool": 7, "str": 8, "u8": 0}
    codes = {"u32": "I", "i32": "i", "f32": "f", "bool": "?", "u8": "B"}
    out = io.BytesIO()

    def string(s):
        b = s if isinstance(s, bytes) else s.encode()
        out.write(struct.pack("<Q", len(b)) + b)

    def value(kind, v):
        string(v) if kind == "str" else out.write(struct.pack("<" + codes[kind], v))

    out.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)))
    for key, kind, v in keys:
        string(key)
        if isinstance(v, list):
            out.write(struct.pack("<IIQ", 9, types[kind], len(v)))
            for x in v:
                value(kind, x)
        else:
            out.write(struct.pack("<I", types[kind]))
            value(kind, v)
    with open(path, "wb") as f:
        f.write(out.getvalue())


def write(name, keys, encode, texts=TEXTS):
    head = [("general.architecture", "str", "llama"), ("general.name", "str", "made for tests")]
    gguf(os.path.join(OUT, name + ".gguf"), head + [("tokenizer.ggml." + k, t, v) for k, t, v in keys])
    n = 0
    with open(os.path.join(OUT, name + ".jsonl"), "w") as f:
        for text in texts:
            for special, parse in ((False, False), (True, False), (False, True)):
                ids = encode(text, special, parse)
                if ids is not None:
                    n += 1
                    f.write(json.dumps({"text": text, "add_special": special, "parse_special": parse, "ids": ids}) + "\n")
    print(name, n, "lines")


def with_specials(tokenizer, controls, text, special, parse):
    """Hugging Face finds all added tokens always: without parse_special, ask only about texts without control tokens."""
    if not parse and any(c in text for c in controls):
        return None
    return tokenizer.encode(text, add_special_tokens=special).ids


def make_bpe():
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
                                   r"\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(LINES * 4, trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    controls = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    t.add_special_tokens([AddedToken(c, normalized=False, special=True) for c in controls])
    t.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("</tool>", normalized=False)])
    data = json.loads(t.to_str())
    n = t.get_vocab_size()
    types = [CONTROL if t.id_to_token(i) in controls else USER if "tool>" in t.id_to_token(i) else NORMAL for i in range(n)]
    bos = t.token_to_id("<|endoftext|>")
    t.post_processor = processors.TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", bos)])
    write("bpe", [("model", "str", "gpt2"), ("pre", "str", "qwen2"), ("tokens", "str", [t.id_to_token(i) for i in range(n)]),
                  ("token_type", "i32", types), ("merges", "str", [" ".join(m) for m in data["model"]["merges"]]),
                  ("bos_token_id", "u32", bos), ("eos_token_id", "u32", t.token_to_id("<|im_end|>")), ("add_bos_token", "bool", True)],
          lambda text, special, parse: with_specials(t, controls, text, special, parse))


def make_mask():
    """ModernBERT: of its tokens the mask takes the white space before it, the others none."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    controls = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.add_special_tokens([AddedToken(c, normalized=False, special=True, lstrip=c == "[MASK]") for c in controls])
    t.add_tokens([AddedToken("<tool>", normalized=False)])
    data, n = json.loads(t.to_str()), t.get_vocab_size()
    tokens = [t.id_to_token(i) for i in range(n)]
    cls, sep = t.token_to_id("[CLS]"), t.token_to_id("[SEP]")
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    write("mask", [("model", "str", "gpt2"), ("pre", "str", "modern-bert"), ("tokens", "str", tokens),
                   ("token_type", "i32", [CONTROL if x in controls else USER if x == "<tool>" else NORMAL for x in tokens]),
                   ("merges", "str", [" ".join(m) for m in data["model"]["merges"]]), ("bos_token_id", "u32", cls), ("eos_token_id", "u32", sep),
                   ("add_bos_token", "bool", True), ("add_eos_token", "bool", True)],
          lambda text, special, parse: with_specials(t, controls, text, special, parse), AROUND + LINES[:5])


def make_wordpiece(name="wordpiece", texts=TEXTS, lowercase=True, strip_accents=None, keys=()):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    controls = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(LINES, trainers.WordPieceTrainer(vocab_size=600, special_tokens=controls, show_progress=False))
    n = t.get_vocab_size()
    tokens = [t.id_to_token(i) for i in range(n)]
    pieces = [x if x in controls else x[2:] if x.startswith("##") else "\u2581" + x for x in tokens]
    cls, sep = t.token_to_id("[CLS]"), t.token_to_id("[SEP]")
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    write(name, [("model", "str", "bert"), ("tokens", "str", pieces), ("token_type", "i32", [CONTROL if x in controls else NORMAL for x in tokens]),
                        ("unknown_token_id", "u32", t.token_to_id("[UNK]")), ("seperator_token_id", "u32", sep), ("padding_token_id", "u32", 0),
                        ("cls_token_id", "u32", cls), ("mask_token_id", "u32", t.token_to_id("[MASK]")), *keys],
          lambda text, special, parse: with_specials(t, controls, text, special, parse), texts)


def make_normalizers():
    """The same with every switch of BERT's normaliser."""
    lower, strip = "normalizer.lowercase", "normalizer.strip_accents"
    make_wordpiece("wordpiece_cased", NORMALIZED, False, None, [(lower, "bool", False)])
    make_wordpiece("wordpiece_accents", NORMALIZED, True, False, [(lower, "bool", True), (strip, "bool", False)])
    make_wordpiece("wordpiece_stripped", NORMALIZED, False, True, [(lower, "bool", False), (strip, "bool", True)])


def train_sentencepiece(kind, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(sentence_iterator=iter(LINES * 2), model_writer=model, model_type=kind, minloglevel=2, **options)
    proto = spm_pb.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto, sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def sentencepiece_keys(proto, model):
    return [("model", "str", model), ("tokens", "str", [p.piece for p in proto.pieces]), ("scores", "f32", [p.score for p in proto.pieces]),
            ("token_type", "i32", [p.type for p in proto.pieces])]


def make_spm():
    proto, sp = train_sentencepiece("bpe", vocab_size=700, byte_fallback=True, remove_extra_whitespaces=False, normalization_rule_name="identity",
                                    user_defined_symbols=["<tool>", "</tool>"], split_digits=True, character_coverage=0.98)
    controls = ["<s>", "</s>", "<unk>"]

    def encode(text, special, parse):
        if any(c in text for c in controls + ["tool>"]):  # sentencepiece has no blank in front of text behind these
            return None
        return ([1] if special else []) + sp.encode(text)

    write("spm", sentencepiece_keys(proto, "llama") + [("bos_token_id", "u32", 1), ("eos_token_id", "u32", 2), ("unknown_token_id", "u32", 0)], encode)


def make_unigram():
    rules = os.path.join(OUT, "rules.tsv")
    with open(rules, "w") as f:
        for source, target in RULES:
            f.write(" ".join("%X" % ord(c) for c in source) + "\t" + " ".join("%X" % ord(c) for c in target) + "\n")
    proto, sp = train_sentencepiece("unigram", normalization_rule_tsv=rules, vocab_size=400, hard_vocab_limit=False, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=0.98)
    os.remove(rules)
    charsmap = list(proto.normalizer_spec.precompiled_charsmap)

    def encode(text, special, parse):
        if any(c in text for c in ("</s>", "<unk>", "<pad>")):
            return None
        return sp.encode(text) + ([1] if special else [])

    write("unigram", sentencepiece_keys(proto, "t5") + [("precompiled_charsmap", "u8", charsmap), ("add_space_prefix", "bool", True),
                                                        ("remove_extra_whitespaces", "bool", True), ("eos_token_id", "u32", 1),
                                                        ("unknown_token_id", "u32", 2), ("padding_token_id", "u32", 0)], encode)


def make_unigram_plain():
    """Unigram that changes nothing: no blank in front, runs of blanks as they are, and with symbols of its user."""
    proto, sp = train_sentencepiece("unigram", normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False, vocab_size=400,
                                    hard_vocab_limit=False, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=0.98,
                                    user_defined_symbols=["<tool>", "</tool>", "<tool>call"])

    def encode(text, special, parse):
        if any(c in text for c in ("</s>", "<unk>", "<pad>")):
            return None
        return sp.encode(text) + ([1] if special else [])

    write("unigram_plain", sentencepiece_keys(proto, "t5") + [("add_space_prefix", "bool", False), ("remove_extra_whitespaces", "bool", False),
                                                              ("eos_token_id", "u32", 1), ("unknown_token_id", "u32", 2), ("padding_token_id", "u32", 0)],
          encode, AROUND + [t for t in TEXTS if t not in LINES[5:]] + ["a<tool>call</tool>b", "<tool>calls <tool", "\u00e9\u00e9\u0107\u0107 \u0107", "  a  b  ", "<tool> a"])


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    make_bpe()
    make_mask()
    make_wordpiece()
    make_normalizers()
    make_spm()
    make_unigram()
    make_unigram_plain()
