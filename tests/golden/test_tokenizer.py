"""Ids of `quern tokenize` against independent tokenizers: the samples of tests/data/tokenizer, and the vectors and edge corpus of refs/tokenizer."""
import gzip
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import DEFAULT_MODEL, SOURCE, Skip, cached_model, main, quern, ref  # noqa: E402

SAMPLES = os.path.join(SOURCE, "tests", "data", "tokenizer")
KINDS = ("bpe", "spm", "wordpiece", "unigram", "mask", "wordpiece_cased", "wordpiece_accents", "wordpiece_stripped", "unigram_plain")
SEPARATOR = "\n__ggml_vocab_test__\n"
# Vocabularies whose text does not come back whole: BERT's is normalised, the others have no token for some bytes or normalise to NFC.
LOSSY = {"bert-bge", *(k for k in KINDS if k != "bpe" and k != "spm")}
MODELS = {"smollm2": DEFAULT_MODEL, "gemma3": "gemma3-270m-q4_k_m.gguf"}


def tokenize(model, requests):
    lines = "".join(json.dumps(r) + "\n" for r in requests)
    answers = [json.loads(x) for x in quern("tokenize", "-m", model, "--jsonl", stdin=lines.encode()).splitlines()]
    assert len(answers) == len(requests), f"{len(answers)} answers to {len(requests)} lines"
    return [a["ids"] for a in answers]


def decode(model, lists):
    lines = "".join(json.dumps({"ids": x}) + "\n" for x in lists)
    return [json.loads(x)["text"] for x in quern("tokenize", "-m", model, "--decode", "--jsonl", stdin=lines.encode()).splitlines()]


def check(name, model, records):
    """Ids equal `ids`, or `alt` where the original tokenizer's ids differ: then those are what we want."""
    got = tokenize(model, [{k: r[k] for k in ("text", "add_special", "parse_special")} for r in records])
    wrong = [(r, g) for r, g in zip(records, got) if g != r.get("alt", r["ids"])]
    assert not wrong, f"{name}: {len(wrong)} of {len(records)} differ, first {wrong[0][0]['text']!r}: {wrong[0][1]}"
    return got


def jsonl(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def test_samples():
    for kind in KINDS:
        records = jsonl(os.path.join(SAMPLES, kind + ".jsonl"))
        assert len(records) >= 40
        model = os.path.join(SAMPLES, kind + ".gguf")
        ids = check(kind, model, records)
        if kind in LOSSY:
            continue
        plain = [(r, i) for r, i in zip(records, ids) if not r["add_special"] and not r["parse_special"]]
        for (r, _), text in zip(plain, decode(model, [i for _, i in plain])):
            if "\u2581" not in r["text"] and not any("\u0300" <= c <= "\u036f" or c in "\u030a\u212b\u1161\u11ab\u1112" for c in r["text"]):
                assert text == r["text"], f"{kind}: {r['text']!r} came back as {text!r}"


def unpacked():
    """(name, path) of each vocabulary of the reference data, in a temporary folder that lives as long as the generator."""
    folder = ref("tokenizer")
    if not folder:
        raise Skip("no reference data (refs/tokenizer)")
    with tempfile.TemporaryDirectory(prefix="quern-vocab-") as tmp:
        for f in sorted(os.listdir(folder)):
            if f.endswith(".gguf.gz"):
                name = f[len("ggml-vocab-"):-len(".gguf.gz")]
                path = os.path.join(tmp, name + ".gguf")
                with gzip.open(os.path.join(folder, f)) as z, open(path, "wb") as out:
                    shutil.copyfileobj(z, out)
                yield name, path
                os.unlink(path)


def test_vectors_and_edge_corpus():
    n_vectors = n_edge = 0
    for name, path in unpacked():
        vectors = ref("tokenizer", f"ggml-vocab-{name}.gguf.inp")
        if vectors:
            with open(vectors, encoding="utf-8", newline="") as f:
                texts = f.read().split(SEPARATOR)
            with open(vectors[:-4] + ".out") as f:
                want = [[int(x) for x in line.split()] for line in f.read().split("\n")]
            n = min(len(texts), len(want))
            assert n > 40
            check(name, path, [{"text": t, "add_special": False, "parse_special": False, "ids": i} for t, i in zip(texts[:n], want[:n])])
            n_vectors += n
        records = jsonl(ref("tokenizer", "edge", name + ".jsonl"))
        check(name, path, records)
        n_edge += len(records)
    print(f"        {n_vectors} vectors, {n_edge} edge cases")
    assert n_vectors > 500 and n_edge > 10000


def test_edge_corpus_of_models():
    folder = ref("tokenizer")
    if not folder:
        raise Skip("no reference data (refs/tokenizer)")
    ran, why = 0, ""
    for name, file in MODELS.items():
        try:
            path = cached_model(file)
        except Skip as e:
            why = e
            continue
        check(name, path, jsonl(ref("tokenizer", "edge", name + ".jsonl")))
        ran += 1
    if not ran:
        raise Skip(why)


if __name__ == "__main__":
    main(globals())
