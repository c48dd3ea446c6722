"""Tiny random models of many architectures against logits from elsewhere (refs/arch): normalised mean squared error within the index's limits.

Which architectures there are is asked of the program itself: a model that it refuses as unsupported is counted and named, never an error, except
for those in REQUIRED.
"""
import array
import json
import math
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import gguf_file
import support
from support import Skip

REQUIRED = {"llama", "qwen2", "qwen3", "gemma3", "mistral3", "phi2", "phi3", "gemma", "gemma2", "olmo2", "granite", "starcoder2", "gpt2", "gptneox", "falcon",
            "stablelm", "command-r", "cohere2", "smollm3", "internlm2", "glm4", "exaone4", "llama-moe", "qwen2moe", "qwen3moe", "olmoe", "granitemoe-moe",
            "gpt-oss", "deepseek2", "gemma3n", "mamba", "mamba2", "qwen35", "qwen3next", "lfm2", "granitehybrid", "bert"}


def index():
    path = support.ref("arch", "index.json")
    if not path:
        raise Skip("the reference models (refs/arch) are not here")
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def supported(model):
    """Can the program run it? Anything but a clean refusal is an error."""
    code, err = support.try_logits(model)
    assert code in (0, 1), f"{model}: exit code {code}\n{err}"
    assert code == 0 or len(err.strip().splitlines()) == 1, f"{model}: not one line:\n{err}"
    return code == 0, err.strip()


def hidden(model, sequences, options, pooling="none"):
    """Vectors of all sequences, one after another, by `quern embed`."""
    lines = "".join(json.dumps(s["tokens"]) + "\n" for s in sequences).encode()
    out = array.array("f")
    out.frombytes(support.quern("embed", model, "--jsonl", "--pooling", pooling, "--no-normalize", "--raw", *options, stdin=lines))
    return out


def nmse(x, y):
    assert len(x) == len(y), f"{len(x)} values, the reference has {len(y)}"
    return math.fsum((a - b) * (a - b) for a, b in zip(x, y)) / math.fsum(b * b for b in y)


def pooled(rows, width, sequences, how):
    """What pooling makes of reference rows [all tokens][width]."""
    out, at = [], 0
    for s in sequences:
        n = len(s["tokens"])
        own = [rows[(at + i) * width:(at + i + 1) * width] for i in range(n)]
        at += n
        out += {"cls": own[0], "last": own[-1], "mean": [math.fsum(c) / n for c in zip(*own)]}[how]
    return out


def error(model, reference, sequences, options):
    """NMSE over all rows of all sequences."""
    num = den = 0.0
    at = 0
    for s in sequences:
        with support.Logits(model, s["tokens"], *options) as out:
            x = out.all()
        y = reference[at:at + len(x)]
        at += len(x)
        assert len(y) == len(x), f"{model}: {len(x)} values, the reference has {len(y)}"
        num += math.fsum((a - b) * (a - b) for a, b in zip(x, y))
        den += math.fsum(b * b for b in y)
    assert at == len(reference), f"{model}: {at} values, the reference has {len(reference)}"
    return num / den


def compare(limit_key, *options):
    idx = index()
    wrong, passed, refused = [], [], []
    for m in idx["models"]:
        model, name = support.ref("arch", m["file"]), m["name"]
        ok, message = supported(model)
        if not ok:
            refused.append(name)
            if name in REQUIRED:
                wrong.append(f"{name} is refused: {message}")
            continue
        reference = array.array("f")
        with open(support.ref("arch", m["reference"]), "rb") as f:
            reference.frombytes(f.read())
        is_encoder = m["output"] == "embeddings"
        e = nmse(hidden(model, idx["sequences"], options), reference) if is_encoder else error(model, reference, idx["sequences"], options)
        passed.append(f"{name} {e:.1e}")
        if not e <= m[limit_key]:
            wrong.append(f"{name}: NMSE {e:.3g} is above {m[limit_key]:g}")
        for how in ("mean", "cls", "last") if is_encoder else ():
            e = nmse(hidden(model, idx["sequences"], options, how), pooled(reference, m["n_embd"], idx["sequences"], how))
            if not e <= m[limit_key]:
                wrong.append(f"{name}, pooling {how}: NMSE {e:.3g} is above {m[limit_key]:g}")
    print(f"{' '.join(options) or 'default'}: {len(passed)} run: {', '.join(passed)}\n{len(refused)} not supported: {', '.join(refused)}", flush=True)
    assert not wrong, "\n  ".join(["", *wrong])


def test_default_numerics():
    compare("suggested_nmse_limit")


def test_exact_numerics():
    compare("suggested_nmse_limit_f32_activations", "--exact")


# What a file that does not name a key means: the model, the key, and the value that stands for it (None: that of the reference file).
LEFT_OUT = [("gemma2", "attn_logit_softcapping", 50.0), ("gemma2", "final_logit_softcapping", 30.0), ("lfm2", "attention.head_count_kv", None),
            ("granitehybrid", "attention.head_count_kv", None), ("qwen2", "rope.freq_base", 10000.0), ("gpt2", "attention.head_count_kv", None)]


def without_key(raw, name):
    """The file with this key under a name that nobody reads."""
    assert raw.count(name) == 1
    return raw.replace(name, name[:-1] + b"#")


def with_float(raw, name, value):
    at = raw.index(name) + len(name)
    assert struct.unpack_from("<I", raw, at)[0] == 6, "float32"
    return raw[:at + 4] + struct.pack("<f", value) + raw[at + 8:]


def test_what_files_leave_out():
    tokens = index()["sequences"][0]["tokens"]
    for model, key, value in LEFT_OUT:
        name = f"{model}.{key}".encode()
        with open(support.ref("arch", model + ".gguf"), "rb") as f:
            raw = f.read()
        rows = []
        with gguf_file.Folder() as folder:
            for content in without_key(raw, name), raw if value is None else with_float(raw, name, value):
                with open(folder.path("m.gguf"), "wb") as f:
                    f.write(content)
                with support.Logits(folder.path("m.gguf"), tokens) as out:
                    rows.append(list(out.all()))
        assert rows[0] == rows[1], f"{model} without {key} is another model than with {value}"


if __name__ == "__main__":
    support.main(globals())
