"""`quern embed`: vectors and scores as the model's description has them, whatever stands beside a text; every form in and out; what it refuses."""
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import gguf_file as g  # noqa: E402
from support import QUERN, main, quern, ref  # noqa: E402
from terminal import Terminal  # noqa: E402
from tiny_encoder import Encoder  # noqa: E402
from tiny_words import WORDPIECE  # noqa: E402

TEXTS = ["a b c", "z", "q w e r t y u i o p", "a b c d", "m m m"]


class Model:
    """A tiny BERT in a folder of its own."""

    def __init__(self, extra=(), **options):
        self.folder, self.net = g.Folder(), Encoder(**options)
        self.path = self.folder.path("model.gguf")
        self.net.write(self.path, extra)

    def file(self, name, data):
        path = self.folder.path(name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.__exit__()


def floats(raw, width=32):
    x = struct.unpack(f"<{len(raw) // 4}f", raw)
    return [list(x[i:i + width]) for i in range(0, len(x), width)]


def lines(out):
    return [[float(x) for x in line.split()] for line in out.decode().splitlines()]


def close(a, b, limit=2e-3):
    assert len(a) == len(b), (len(a), len(b))
    scale = max(1e-3, max(abs(x) for x in b))
    assert all(abs(x - y) <= limit * scale for x, y in zip(a, b)), f"{max(abs(x - y) for x, y in zip(a, b)) / scale:.2e}\n{a[:4]}\n{b[:4]}"


def unit(x):
    n = math.sqrt(sum(v * v for v in x))
    return [v / n for v in x]


def wrapped(text):
    return WORDPIECE.wrapped(text)


def test_pooling():
    with Model() as m:
        for text in TEXTS:
            rows = m.net.hidden(wrapped(text))
            want = {"mean": [sum(c) / len(rows) for c in zip(*rows)], "cls": rows[0], "last": rows[-1]}
            for how, x in want.items():
                close(lines(quern("embed", m.path, text, "--pooling", how))[0], unit(x))
                close(lines(quern("embed", m.path, text, "--pooling", how, "--no-normalize"))[0], x)
            assert quern("embed", m.path, text) == quern("embed", m.path, text, "--pooling", "mean"), "an encoder's default"
            got = floats(quern("embed", m.path, text, "--pooling", "none", "--raw", "--no-normalize"))
            assert len(got) == len(rows)
            for a, b in zip(got, rows):
                close(a, b)


def test_pooling_of_the_file():
    for number, name in ((0, "mean"), (1, "mean"), (2, "cls"), (3, "last")):
        with Model([("bert.pooling_type", g.U32, number)]) as m:
            assert quern("embed", m.path, *TEXTS) == quern("embed", m.path, *TEXTS, "--pooling", name), name
            assert json.loads(quern("embed", m.path, "a", "--json"))["pooling"] == name


def test_batch_is_alone():
    """No vector depends on its neighbours, the order, threads, steps or the level."""
    with Model() as m:
        many = [" ".join(chr(97 + (i * k + 7 * k) % 26) for k in range(1 + i * 5 % 41)) for i in range(300)]
        whole = quern("embed", m.path, "-f", m.file("in", "\n".join(many).encode()), "--exact", "--raw")
        rows = [whole[i:i + 128] for i in range(0, len(whole), 128)]
        assert len(rows) == len(many)
        for i in (0, 1, 57, 299):
            assert quern("embed", m.path, many[i], "--exact", "--raw") == rows[i], f"text {i} alone"
        back = quern("embed", m.path, "--exact", "--raw", stdin="\n".join(reversed(many)).encode())
        assert back == b"".join(reversed(rows))
        for options in (("-t", "1"), ("-t", "3"), ("--chunk", "64"), ("--chunk", "100"), ("--cpu", "scalar"), ("-c", "50")):
            assert quern("embed", m.path, "-f", m.folder.path("in"), "--exact", "--raw", *options) == whole, options


def test_forms():
    with Model() as m:
        text, raw = quern("embed", m.path, *TEXTS), quern("embed", m.path, *TEXTS, "--raw")
        assert [struct.pack("<32f", *x) for x in lines(text)] == [raw[i:i + 128] for i in range(0, len(raw), 128)], "nine digits are exact"
        j = json.loads(quern("embed", "-m", m.path, *TEXTS, "--json"))
        assert [d["embedding"] for d in j["data"]] == lines(text) and [d["index"] for d in j["data"]] == list(range(5))
        assert j["object"] == "list" and j["model"] == "tiny" and j["pooling"] == "mean" and j["normalized"] is True
        assert j["usage"]["total_tokens"] == sum(len(wrapped(t)) for t in TEXTS)
        out = m.folder.path("out")
        assert quern("embed", m.path, *TEXTS, "--raw", "-o", out) == b""
        with open(out, "rb") as f:
            assert f.read() == raw
        j = json.loads(quern("embed", m.path, "a b", "--json", "--pooling", "none", "--no-normalize"))
        assert len(j["data"][0]["embedding"]) == 4 and j["normalized"] is False


def test_texts_come_from_everywhere():
    with Model() as m:
        want = quern("embed", m.path, *TEXTS)
        data = "\n".join(TEXTS).encode()
        for given in (data, data + b"\n", data.replace(b"\n", b"\r\n")):
            assert quern("embed", m.path, stdin=given) == want
            assert quern("embed", m.path, "-f", "-", stdin=given) == want
            assert quern("embed", m.path, "-f", m.file("in", given)) == want
        some = [json.dumps(TEXTS[0]), json.dumps({"text": TEXTS[1]}), json.dumps({"input": TEXTS[2]}), "", json.dumps(wrapped(TEXTS[3])),
                json.dumps({"document": TEXTS[4]})]
        assert quern("embed", m.path, "--jsonl", stdin="\n".join(some).encode()) == want
        assert quern("embed", m.path, "--prefix", "a ", "b c", "c") == quern("embed", m.path, "a b c", "a c")
        assert len(lines(quern("embed", m.path, *["a"] * 1000))) == 1000, "any number of arguments"
        hidden = quern("embed", m.path, "a [SEP] b")
        assert hidden != quern("embed", m.path, "a [SEP] b", "--parse-special"), "a text's own words are no control tokens"
        assert quern("embed", m.path, "-f", m.file("nul", b"a\0 b\n")) == quern("embed", m.path, "a b"), "BERT's normaliser takes NUL away"
        assert len(lines(quern("embed", m.path, stdin=b"\xff\xfe\xc3\n"))) == 1, "any bytes are a text"


def test_similarity():
    with Model() as m:
        x = lines(quern("embed", m.path, *TEXTS))
        want = [[sum(a * b for a, b in zip(u, v)) for v in x] for u in x]
        one = quern("embed", m.path, TEXTS[0], TEXTS[1], "--similarity").decode()
        assert one.count("\n") == 1 and abs(float(one) - want[0][1]) < 2e-6
        got = lines(quern("embed", m.path, *TEXTS, "--similarity"))
        assert all(abs(a - b) < 2e-6 for u, v in zip(got, want) for a, b in zip(u, v)) and [got[i][i] for i in range(5)] == [1] * 5
        j = json.loads(quern("embed", m.path, *TEXTS, "--similarity", "--json"))["similarity"]
        assert len(j) == 5 and all(abs(a - b) < 1e-6 for u, v in zip(j, want) for a, b in zip(u, v))
        assert quern("embed", m.path, "a b", "a b", "--similarity") == b"1.000000\n"


def test_rank():
    cache = ("--cache-type", "F32")  # a score may be near zero
    for labels, pooler in ((1, True), (1, False), (3, True)):
        with Model(labels=labels, pooler=pooler, extra=[("bert.pooling_type", g.U32, 4)]) as m:
            got = lines(quern("embed", m.path, "--query", "a b", *TEXTS, *cache))
            for x, text in zip(got, TEXTS):
                close(x, m.net.scores(*WORDPIECE.pair("a b", text)))
            close(lines(quern("embed", m.path, "a b c", *cache))[0], m.net.scores(wrapped("a b c")))
            some = "".join(json.dumps({"query": "a b", "text": t}) + "\n" for t in TEXTS).encode()
            assert lines(quern("embed", m.path, "--jsonl", *cache, stdin=some)) == got
            j = json.loads(quern("embed", m.path, "--query", "a b", *TEXTS, "--json", *cache))
            assert [r["relevance_score"] if labels == 1 else r["scores"] for r in j["results"]] == [x[0] if labels == 1 else x for x in got]
            assert len(lines(quern("embed", m.path, "a b c", "--pooling", "mean"))[0]) == 32, "it has embeddings too"


def test_long_texts():
    long = " ".join("a" for _ in range(200))
    with Model() as m:
        code, out, err = quern("embed", m.path, "a", long, code=None)
        assert code == 1 and out == b"" and re.search(r"text 2 has 202 tokens and the context holds 64; --truncate", err), err
        got = quern("embed", m.path, long, "--truncate")
        assert got == quern("embed", m.path, " ".join("a" for _ in range(62))), "the first tokens and [SEP] stay"
        assert quern("embed", m.path, long, "--truncate", "-c", "10") == quern("embed", m.path, " ".join("a" for _ in range(8)))
        code, _, err = quern("embed", m.path, "a", "-c", "100", code=None)
        assert code == 0 or "this model has 64" in err, err


def refused(*args, code=1, words="", stdin=b""):
    got, out, err = quern("embed", *args, code=None, stdin=stdin)
    assert got == code and out == b"" and err.count("\n") == 1 and words in err, (args, got, out[:80], err)


def test_refusals():
    with Model() as m:
        p = m.path
        refused(p, "a", "", words="text 2 is empty")
        refused(p, stdin=b"a\n\nb\n", words="line 2 is empty")
        refused(p, stdin=b"", words="no text in stdin")
        refused(p, "-f", m.folder.path("none"), words="No such file")
        refused(p, "a", "--pooling", "rank", words="no classifier")
        refused(p, "--query", "a", "b", words="no classifier")
        refused(p, "a", "--pooling", "middle", code=2, words="none, mean, cls, last or rank")
        refused(p, "a", "--similarity", code=2, words="at least two")
        refused(p, "a", "b", "--similarity", "--pooling", "none", code=2)
        refused(p, "a", "--json", "--raw", code=2)
        refused(p, "a", "--jsonl", code=2)
        refused(p, "a", "-f", "x", code=2)
        refused(p, "a", "--cpu", "z80", code=2)
        refused(code=2, words="no model")
        refused(m.folder.path("none.gguf"), "a", words="no file")
        for bad in (b'{"text": 3}', b"nonsense", b'{"query": "a"}', b"[1, -1]", b"[1.5]", b'{"text": "a", "query": 1}', b"3"):
            refused(p, "--jsonl", stdin=bad, words="line 1")
        refused(p, "--jsonl", stdin=b"[9999]", words="9999")
        refused(p, "--jsonl", stdin=b"[]", words="no tokens")
        refused(p, "--jsonl", "--prefix", "a", stdin=b"[1]", words="no prefix")
        refused(p, "a", "-o", m.folder.path("no/out"), words="No such file")
        refused(p, "a", "-o", "/dev/full", words="No space")
        assert m.folder.names() == ["model.gguf"], m.folder.names()
    with Model(extra=[("bert.pooling_type", g.U32, 4)]) as m:
        refused(m.path, "a", words="--pooling chooses")
    with Model(extra=[("bert.pooling_type", g.U32, 5)]) as m:
        refused(m.path, "a", words="bert.pooling_type")


def test_decoder():
    """Any decoder has embeddings; the last token's is the default, and a text may be longer than a step."""
    path = ref("arch", "llama.gguf")
    if not path:
        return
    text = "The quick brown fox. " * 5
    assert quern("embed", path, text) == quern("embed", path, text, "--pooling", "last")
    for how in ("mean", "last", "cls"):
        whole = quern("embed", path, text, "x", text, "--pooling", how, "--raw", "--exact")
        assert quern("embed", path, text, "x", text, "--pooling", how, "--raw", "--exact", "--chunk", "7") == whole, how
        assert whole[:len(whole) // 3] == whole[-(len(whole) // 3):]


def test_terminal():
    with Model() as m:
        with Terminal("embed", m.path, "a b", "c", "--similarity") as t:
            t.expect(re.compile(rb"\x1b\[K-?0\.\d{6}\r\n$"))
        with Terminal("embed", m.path) as t:
            t.expect("no texts")
        with Terminal("embed", m.path, "a", "--raw") as t:
            t.expect("no text for a terminal")


def test_interrupt():
    """A signal leaves no file behind, and the exit code that tells it."""
    with Model(n_ctx=64) as m:
        big = m.file("big", b"a b c d e f g h i j k l m n o p\n" * 400000)
        out = m.folder.path("out")
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            p = subprocess.Popen([QUERN, "embed", m.path, "-f", big, "--raw", "-o", out], stderr=subprocess.PIPE)
            while len(m.folder.names()) < 3 and p.poll() is None:
                time.sleep(0.02)
            p.send_signal(sig)
            _, err = p.communicate(timeout=60)
            assert p.returncode == 128 + sig and sorted(m.folder.names()) == ["big", "model.gguf"], (p.returncode, err, m.folder.names())


if __name__ == "__main__":
    main(globals())
