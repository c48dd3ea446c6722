"""`quern perplexity` on a tiny model: against the raw logits, its file of probabilities, mistakes, damage."""
import json
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import QUERN, Logits, chat_model, main, quern  # noqa: E402

TEXT = "The quick brown fox jumps over the lazy dog, and 17 others watch it. " * 8
CTX = 16


def ids_of(text):
    return json.loads(quern("tokenize", "-m", chat_model(), "--jsonl",
                            stdin=json.dumps({"text": text, "add_special": True, "parse_special": False}).encode() + b"\n"))["ids"]


def expected(ids, n_chunks):
    """Mean of -ln p over the second half of every chunk, from `quern logits`."""
    bos = ids_of("")
    nll = []
    for c in range(n_chunks):
        chunk = ids[c * CTX:(c + 1) * CTX]
        chunk[:1] = bos or chunk[:1]
        with Logits(chat_model(), chunk) as rows:
            for i in range(CTX // 2, CTX - 1):
                row = rows.row(i)
                top = max(row)
                nll.append(top + math.log(sum(math.exp(x - top) for x in row)) - row[chunk[i + 1]])
    return nll


def perplexity(folder, *options, code=0, text=TEXT):
    path = os.path.join(folder, "text")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return quern("perplexity", "-m", chat_model(), "-f", path, "-c", CTX, *options, code=code)


def test_against_logits():
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        out = json.loads(perplexity(folder, "--json", "--chunks", 3))
        nll = expected(ids_of(TEXT), 3)
        mean = sum(nll) / len(nll)
        error = math.sqrt(sum((x - mean) ** 2 for x in nll) / len(nll) / (len(nll) - 1))
        assert out["positions"] == len(nll) == 3 * (CTX - 1 - CTX // 2) and out["chunks"] == 3 and out["context"] == CTX, out
        assert math.isclose(out["perplexity"], math.exp(mean), rel_tol=1e-5), (out, math.exp(mean))
        assert math.isclose(out["perplexity_error"], math.exp(mean) * error, rel_tol=1e-4), out
        for options in (("-t", 1), ("-t", 3), ("--chunk", 3)):
            again = json.loads(perplexity(folder, "--json", "--chunks", 3, *options))
            assert again["perplexity"] == out["perplexity"], options
        assert f"perplexity         {out['perplexity']:.4f} +- ".encode() in perplexity(folder, "--chunks", 3)


def test_divergence():
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        base = os.path.join(folder, "base")
        wrote = json.loads(perplexity(folder, "--json", "--kl-base", base))
        with open(base, "rb") as f:
            head = f.read(20)
            ids = struct.unpack(f"={wrote['chunks'] * CTX}i", f.read(4 * wrote["chunks"] * CTX))
        n_ctx, n_vocab, n_chunks = struct.unpack("=Iii", head[8:])
        assert head[:8] == b"_logits_" and (n_ctx, n_chunks) == (CTX, wrote["chunks"]) and list(ids) == ids_of(TEXT)[:len(ids)]
        assert os.path.getsize(base) == 20 + 4 * len(ids) + wrote["positions"] * 2 * (n_vocab + n_vocab % 2 + 4)
        same = json.loads(quern("perplexity", "-m", chat_model(), "--kl", base, "--json"))
        assert same["perplexity"] == wrote["perplexity"] and abs(same["kl_mean"]) < 1e-4 and same["top1_agreement_percent"] > 95, same
        rough = json.loads(perplexity(folder, "--json", "--kl", base, "--act-bits", 8))
        assert rough["kl_max"] >= rough["kl_p99"] >= rough["kl_median"] and rough["kl_mean_error"] >= 0 and rough["base_perplexity"] > 1, rough
        assert json.loads(quern("perplexity", "-m", chat_model(), "--kl", base, "--json", "--chunks", 2))["chunks"] == 2
        assert b"KL divergence" in quern("perplexity", "-m", chat_model(), "--kl", base)
        code, _, err = quern("perplexity", "-m", chat_model(), "--kl", base, "-c", CTX + 1, code=None)
        assert code == 1 and "chunks of" in err, err
        with open(os.path.join(folder, "other"), "w", encoding="utf-8") as f:
            f.write("another text " * 200)
        code, _, err = quern("perplexity", "-m", chat_model(), "--kl", base, "-f", os.path.join(folder, "other"), code=None)
        assert code == 1 and "not made from this text" in err, err
        damaged(folder, base, len(ids))


def damaged(folder, base, n_ids):
    """Every way that a file can be wrong is a sentence and exit code 1."""
    with open(base, "rb") as f:
        good = f.read()
    rows = 20 + 4 * n_ids
    cuts = [good[:n] for n in (0, 7, 19, 20, rows, len(good) - 1)] + [good + b"x"]
    heads = [good[:8] + struct.pack("=Iii", *h) + good[20:] for h in ((0, 5, 1), (2**31, 2**31 - 1, 2**31 - 1), (2**24, 0, -1), (CTX, -4, 3), (1, 1, 1))]
    n_vocab = struct.unpack("=i", good[12:16])[0]
    heads += [good[:8] + struct.pack("=Iii", c, n_vocab, n) + good[20:] for c, n in ((0, 1), (2, 1), (2**32 - 1, 1), (2**24, 2**31 - 1), (CTX, 0), (CTX, -1))]
    tokens = [good[:20] + struct.pack("=i", t) + good[24:] for t in (-1, n_vocab, 2**31 - 1)]
    steps = [good[:rows] + struct.pack("=ff", *h) + good[rows + 8:] for h in ((float("nan"), -1), (-1, -1), (1, 1), (0, float("inf")), (1e-4, 5))]
    path = os.path.join(folder, "damaged")
    for i, data in enumerate(cuts + heads + tokens + steps + [b"GGUF" + good[4:]]):
        with open(path, "wb") as f:
            f.write(data)
        code, out, err = quern("perplexity", "-m", chat_model(), "--kl", path, code=None)
        assert code == 1 and not out and err.startswith("quern: ") and err.count("\n") == 1, (i, code, err)


def test_signals():
    """A signal ends what takes long, with its own exit code and no file that is half written."""
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        text = os.path.join(folder, "text")
        with open(text, "w", encoding="utf-8") as f:
            f.write(TEXT * 2000)
        for command in (("perplexity", "--kl-base"), ("imatrix", "-o")):
            for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                p = subprocess.Popen([QUERN, command[0], "-m", chat_model(), "-f", text, "-c", "64", "-t", "1", command[1], os.path.join(folder, "out")],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                end = time.time() + 60  # a base file is there from the start, importance data from the end on
                while len(os.listdir(folder)) < 2 and p.poll() is None and time.time() < end and command[0] == "perplexity":
                    time.sleep(0.001)
                if command[0] == "imatrix":
                    time.sleep(1)
                assert p.poll() is None, f"{command[0]} was too fast: {p.communicate()}"
                p.send_signal(sig)
                _, err = p.communicate(timeout=60)
                assert p.returncode == 128 + sig, f"{command[0]}, {sig}: exit code {p.returncode}: {err.decode()}"
                assert os.listdir(folder) == ["text"], f"{command[0]}, {sig}: left behind"


def test_a_short_text_is_one_chunk():
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        text = os.path.join(folder, "text")
        for length in (30, 300):
            with open(text, "w", encoding="utf-8") as f:
                f.write(TEXT[:length])
            n = len(ids_of(TEXT[:length]))
            code, out, err = quern("perplexity", "-m", chat_model(), "-f", text, "--json", code=None)
            j = json.loads(out)
            assert code == 0 and (j["context"], j["chunks"]) == (n, 1) and f"{n} tokens" in err and err.count("\n") == 1, (j, err)
            given = json.loads(quern("perplexity", "-m", chat_model(), "-f", text, "--json", "-c", n))
            assert given["perplexity"] == j["perplexity"]
        with open(text, "w", encoding="utf-8"):
            pass
        code, out, err = quern("perplexity", "-m", chat_model(), "-f", text, code=None)
        assert code == 1 and not out and "one chunk of 4" in err, err


def test_mistakes():
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        for args, says in (((), "-f TEXT is missing"), (("--kl", "a", "--kl-base", "b"), "one of them"), (("-f", "x", "--kl-base", "-"), "stdout"),
                           (("-f", "x", "-c", "2"), "ctx")):
            code, _, err = quern("perplexity", *args, code=None)
            assert code == 2 and says in err, (args, err)
        base = os.path.join(folder, "base")
        text = os.path.join(folder, "text")
        with open(text, "w", encoding="utf-8") as f:
            f.write("A text of more than four tokens in any vocabulary, and of fewer than 512.")
        for args, says in ((("-f", text, "-c", 512, "--kl-base", base), "one chunk of 512"), (("-f", text + "x"), "text"), (("--kl", base), "No such file"),
                           (("-f", text, "-c", 4, "--kl-base", "/dev/full"), None)):
            code, _, err = quern("perplexity", "-m", chat_model(), *args, code=None)
            assert code == 1 and (says is None or says in err), (args, err)
        assert sorted(os.listdir(folder)) == ["text"], "nothing is left behind"
        code, _, err = quern("perplexity", "-m", chat_model(), "-f", text, "-c", 4, "--kl-base", os.path.join(folder, "no", "base"), code=None)
        assert code == 1 and "No such file" in err, err


main(globals())
