"""Tiny random models of many architectures against logits from elsewhere (refs/arch): normalised mean squared error within the index's limits.

Which architectures there are is asked of the program itself: a model that it refuses as unsupported is counted and named, never an error, except
for those in REQUIRED.
"""
import array
import json
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import support
from support import Skip

REQUIRED = {"llama", "qwen2", "qwen3", "gemma3", "mistral3", "phi2", "phi3", "gemma", "gemma2", "olmo2", "granite", "starcoder2", "gpt2", "gptneox", "falcon",
            "stablelm", "command-r", "cohere2", "smollm3", "internlm2", "glm4", "exaone4", "llama-moe", "qwen2moe", "qwen3moe", "olmoe", "granitemoe-moe",
            "gpt-oss", "deepseek2", "gemma3n", "mamba", "mamba2", "qwen35", "qwen3next", "lfm2", "granitehybrid"}


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
        if m["output"] != "logits":
            refused.append(m["name"])
            continue
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
        nmse = error(model, reference, idx["sequences"], options)
        passed.append(f"{name} {nmse:.1e}")
        if not nmse <= m[limit_key]:
            wrong.append(f"{name}: NMSE {nmse:.3g} is above {m[limit_key]:g}")
    print(f"{' '.join(options) or 'default'}: {len(passed)} run: {', '.join(passed)}\n{len(refused)} not supported: {', '.join(refused)}", flush=True)
    assert not wrong, "\n  ".join(["", *wrong])


def test_default_numerics():
    compare("suggested_nmse_limit")


def test_exact_numerics():
    compare("suggested_nmse_limit_f32_activations", "--exact")


if __name__ == "__main__":
    support.main(globals())
