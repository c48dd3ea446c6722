"""Encoders, and a decoder that embeds, against their descriptions in double precision (tests/common/tiny_encoder.py): hidden states of every token, pooled
vectors, scores. The error is the normalised mean square; with half floats for keys and values, the default, nearly all of it is theirs."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import gguf_file as g  # noqa: E402
from support import main, quern  # noqa: E402
from tiny_encoder import ARCHS, Encoder, gelu, silu  # noqa: E402
from tiny_words import BYTES, UNIGRAM  # noqa: E402

LIMIT = {"F32": 1e-9, "F16": 1e-5}
TEXTS = ["a b c", "z", "q w e r t y u i o p a s d f g h j k l z x c v b n m a b c d e f g"]  # one longer than any window


class Model:
    def __init__(self, arch, extra=(), **options):
        self.folder, self.net, self.words = g.Folder(), Encoder(arch, **options), None
        self.path, self.words = self.folder.path("model.gguf"), self.net.words
        self.net.write(self.path, extra)

    def rows(self, *args, cache="F32"):
        raw = quern("embed", self.path, *args, "--raw", "--no-normalize", "--exact", "--cache-type", cache)
        return list(struct.unpack(f"<{len(raw) // 4}f", raw))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.__exit__()


def nmse(x, want):
    assert len(x) == len(want), (len(x), len(want))
    return sum((a - b) ** 2 for a, b in zip(x, want)) / sum(b * b for b in want)


def near(x, want, what, cache="F32"):
    error = nmse(x, want)
    assert error < LIMIT[cache], f"{what}: {error:.2e}"
    return error


def check(arch, what="", **options):
    """Every token of every text, then the mean of each."""
    with Model(arch, **options) as m:
        hidden = [m.net.hidden(m.words.wrapped(t)) for t in TEXTS]
        hidden = [v for rows in hidden for row in rows for v in row]
        errors = [near(m.rows(*TEXTS, "--pooling", "none", cache=c), hidden, f"{arch} {what}", c) for c in ("F32", "F16")]
        near(m.rows(*TEXTS, "--pooling", "mean"), [v for t in TEXTS for v in m.net.embedding(m.words.wrapped(t), "mean")], f"{arch} {what}, mean")
        print(f"        {arch} {what}: {errors[0]:.1e}, with F16 keys and values {errors[1]:.1e}", flush=True)


def test_every_architecture():
    for arch in ARCHS:
        check(arch)


def test_variants():
    """What files of one architecture may have or not."""
    check("bert", "of one token type", types=1)
    check("bert", "without token types", types=0)
    check("bert", "with grouped queries and one matrix for q, k and v", n_head=4, n_head_kv=2, fused=True)
    check("bert", "of XLM-RoBERTa's vocabulary", words=UNIGRAM, types=1)
    check("bert", "of RoBERTa's", words=BYTES, types=1)
    check("nomic-bert-moe", "of XLM-RoBERTa's vocabulary", words=UNIGRAM, types=1)
    check("jina-bert-v2", "with a gate of its own, six heads", gate="own", n_embd=48, n_head=6)
    check("jina-bert-v2", "without a gate", gate=None)
    check("jina-bert-v2", "for code", qk_norm="wide", twice=True)
    check("modern-bert", "with SiLU", act=silu, keys=[(".hidden_activation", g.STRING, "silu")])
    check("modern-bert", "with a norm in the first layer", first_norm=True)
    check("modern-bert", "of another pattern", n_layer=4, bases=[160000, 1000, 160000, 1000], windows=[0, 9, 0, 9],
          keys=[(".attention.sliding_window_pattern", g.U32, 2)])
    check("modern-bert", "without windows", bases=[160000] * 3, windows=None)
    check("gemma-embedding", "with wide heads, one of keys", n_head=3, n_head_kv=1, head_dim=24)
    check("gemma-embedding", "with matrices behind the pooling", dense=80)
    check("eurobert", "with grouped queries", n_head=4, n_head_kv=1)
    check("qwen3", "of bytes", words=BYTES)


def test_long_text():
    """Windows that cross the parts in which positions are taken; one row alone is the same bits as among all."""
    text = " ".join(chr(97 + i * i % 26) for i in range(300))
    with Model("modern-bert", n_ctx=320, n_layer=2, bases=[160000, 10000], windows=[0, 71]) as m:
        rows = m.net.hidden(m.words.wrapped(text))
        got = m.rows(text, "--pooling", "none")
        near(got, [v for row in rows for v in row], "a long text")
        for chunk in ((), ("--chunk", "310")):
            assert m.rows(text, "--pooling", "cls", *chunk) == got[:32] and m.rows("a", text, "--pooling", "last", *chunk)[32:] == got[-32:]


def test_dense_layers():
    """EmbeddingGemma's matrices behind the pooling, quantised like any other: near the float ones, the same bits on any number of threads and at any level."""
    with Model("gemma-embedding", dense=96) as m:
        want = m.rows(*TEXTS)
        small = m.folder.path("small.gguf")
        quern("quantize", m.path, small, "q8_0")
        assert g.inspect(small)["by_name"]["dense_2.weight"]["type"] == "Q8_0"
        m.path = small
        whole = m.rows(*TEXTS)
        assert 0 < nmse(whole, want) < 1e-3, nmse(whole, want)
        for options in (("-t", "1"), ("-t", "3"), ("--cpu", "scalar")):
            assert m.rows(*TEXTS, *options) == whole, options
        assert [x for t in TEXTS for x in m.rows(t)] == whole


def test_last_token():
    """Qwen 3 Embedding: the last token, which is the one that ends a text, whether the file says so or not."""
    for extra in ([], [("qwen3.pooling_type", g.U32, 3)]):
        with Model("qwen3", extra, words=BYTES) as m:
            near(m.rows(*TEXTS), [v for t in TEXTS for v in m.net.embedding(m.words.wrapped(t), "last")], "last token")


def scores_of(m, query, how, pair=None):
    out = quern("embed", m.path, "--query", query, *TEXTS[:2], "--exact", "--cache-type", "F32").decode()
    want = [m.net.scores(*(pair or m.words.pair)(query, t), how=how) for t in TEXTS[:2]]
    near([float(x) for line in out.splitlines() for x in line.split()], [x for row in want for x in row], f"scores of {m.net.arch}")


def test_scores():
    """Rerankers of XLM-RoBERTa's vocabulary (BGE M3) and of RoBERTa's, Jina's, without a last matrix, ModernBERT's, whose classifier reads the mean."""
    rank = [("bert.pooling_type", g.U32, 4)]
    for words in (UNIGRAM, BYTES):
        with Model("bert", rank, words=words, types=1, labels=1) as m:
            scores_of(m, "a b", "cls")
    with Model("jina-bert-v2", [("jina-bert-v2.pooling_type", g.U32, 4)], labels=1, pooler="alone") as m:
        scores_of(m, "a", "cls")
    for extra, how in (([], "mean"), ([("modern-bert.classifier.pooling_type", g.U32, 1)], "mean"), ([("modern-bert.classifier.pooling_type", g.U32, 2)], "cls")):
        for pooler in (True, False):
            with Model("modern-bert", extra + [("modern-bert.pooling_type", g.U32, 4)], labels=2, pooler=pooler, cls_act=gelu) as m:
                scores_of(m, "q w e", how)


def test_scores_of_a_decoder():
    """Qwen 3 Reranker: the pair in the file's own words, and of its last token the probabilities of yes and no."""
    template = "a {query} b {document} c<|endoftext|>"
    extra = [("qwen3.pooling_type", g.U32, 4), ("tokenizer.chat_template.rerank", g.STRING, template)]
    with Model("qwen3", extra, words=BYTES, labels=2, pooler=False) as m:
        scores_of(m, "q w e", "last", lambda q, d: (m.words.ids(f"a {q} b {d} c") + [0], None))
        probabilities = json.loads(quern("embed", m.path, "--query", "a", "b", "--json"))["results"][0]["scores"]
        assert len(probabilities) == 2 and abs(sum(probabilities) - 1) < 1e-6, probabilities


if __name__ == "__main__":
    main(globals())
