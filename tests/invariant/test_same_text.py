"""The same bytes whatever the number of threads, the chunks a prompt is cut into, and the instruction set.

Over the default model (text) and over the tiny models of refs/arch that the program supports (logits, every bit).
"""
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
import support
from support import Skip

PROMPT = "Write one sentence about the sea, then count from one to ten, then say good night in French. " * 3
THREADS_AND_CHUNKS = [("-t", "1"), ("-t", "2"), ("-t", "3"), ("--chunk", "1"), ("--chunk", "16"), ("--chunk", "512"), ("-t", "3", "--chunk", "7")]
TINY = ["llama", "mistral3", "qwen2", "qwen3", "gemma3"]


def levels():
    """Instruction set levels of this machine, lowest first."""
    for line in support.quern("version").decode().splitlines():
        if line.startswith("levels:"):
            return line.split()[1:]
    raise AssertionError("quern version lists no levels")


def same(outputs):
    """`outputs`: {options: bytes}."""
    first = next(iter(outputs.values()))
    assert first.strip(), "no output at all"
    differing = [" ".join(o) for o, v in outputs.items() if v != first]
    assert not differing, f"differs from '{' '.join(next(iter(outputs)))}': {'; '.join(differing)}"


def text(*options, n=40):
    return support.quern("run", "-m", support.cached_model(), "-p", PROMPT, "-n", n, *options)


def test_text_threads_and_chunks():
    same({o: text("--temp", "0", *o) for o in [("-t", "2"), *THREADS_AND_CHUNKS]})


def test_text_sampled_with_a_seed():
    same({o: text("--temp", "0.9", "--seed", "11", *o) for o in [("-t", "2"), ("-t", "1"), ("-t", "3", "--chunk", "5")]})


def test_another_seed_is_another_text():
    assert text("--temp", "1", "--seed", "1") != text("--temp", "1", "--seed", "2"), "the seed changes nothing"


def test_text_levels():
    if len(levels()) < 2:
        raise Skip("this machine has one level")
    for exact in [(), ("--exact",)]:
        same({("--cpu", level): text("--temp", "0", "--cpu", level, *exact, n=16) for level in levels()})


def logits_digest(model, *options):
    ids = [1 + i * 7 % 300 for i in range(150)]
    with support.Logits(model, ids, *options) as out:
        return hashlib.sha256(out.bytes[:]).hexdigest()


def test_logits_of_tiny_models():
    if not support.ref("arch"):
        raise Skip("the reference models (refs/arch) are not here")
    for name in TINY:
        model = support.ref("arch", name + ".gguf")
        if support.try_logits(model)[0] != 0:
            print(f"  {name} is not supported")
            continue
        same({o: logits_digest(model, *o) for o in [("-t", "2"), *THREADS_AND_CHUNKS]})
        for exact in [(), ("--exact",)]:
            same({("--cpu", level, *exact): logits_digest(model, "--cpu", level, *exact) for level in levels()})


if __name__ == "__main__":
    support.main(globals())
