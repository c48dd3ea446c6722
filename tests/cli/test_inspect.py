"""quern inspect: text, JSON, --dump and --key over files made here, wrong files, and outputs that close or fill up."""
import json
import math
import os
import pty
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from gguf_file import (  # noqa: E402
    ARRAY, BOOL, F32, F64, I8, I16, I32, I64, STRING, U8, U16, U32, U64, text, value)
from support import QUERN, cached_model, main, quern  # noqa: E402


def gguf(keys=(), tensors=(), version=3):
    """keys: (name, type, value); tensors: (name, dims, type number, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    data = b""
    for name, kind, v in keys:
        head += text(name) + struct.pack("<I", kind) + value(kind, v)
    for name, dims, kind, raw in tensors:
        head += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    return head + bytes(-len(head) % 32) + data if tensors else head


class File:
    """A file of these bytes, gone after the `with`."""

    def __init__(self, raw, name="m.gguf"):
        self.folder = tempfile.TemporaryDirectory(prefix="quern-inspect-")
        self.path = os.path.join(self.folder.name, name)
        with open(self.path, "wb") as f:
            f.write(raw)

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        self.folder.cleanup()


FLOATS = struct.pack("<8f", 0, -0.0, 1.5, -2, 1e-40, 3.25, math.inf, 0.1)
KEYS = [
    ("general.architecture", STRING, "llama"), ("u8", U8, 255), ("i8", I8, -128), ("u16", U16, 65535), ("i16", I16, -32768), ("u32", U32, 2**32 - 1),
    ("i32", I32, -2**31), ("f32", F32, 0.1), ("bool", BOOL, 1), ("u64", U64, 2**64 - 1), ("i64", I64, -2**63), ("f64", F64, 0.1),
    ("nan", F32, math.nan), ("inf", F64, -math.inf), ("bytes", STRING, b"a\xff\xe2\x82b\x00\x1b[31m"), ("words", ARRAY, (STRING, ["x", "y", b"\xfe"])),
    ("nested", ARRAY, (ARRAY, [(U8, [1, 2]), (BOOL, []), (STRING, ["z"])])), ("numbers", ARRAY, (I32, list(range(100)))),
]
MODEL = gguf(KEYS, [("a.weight", [4, 2], 0, FLOATS), ("b.weight", [3], 24, struct.pack("<3b", -1, 0, 127))])


def test_json():
    with File(MODEL) as path:
        j = json.loads(quern("inspect", path, "--json"))
    m = j["metadata"]
    assert j["version"] == 3 and j["shards"] == 1 and j["file_bytes"] == len(MODEL)
    for name, kind, v in KEYS:
        if kind in (U8, I8, U16, I16, U32, I32, I64):
            assert m[name] == v, name
    assert m["u64"] == str(2**64 - 1) and m["bool"] is True and m["f64"] == 0.1
    assert struct.pack("<f", m["f32"]) == struct.pack("<f", 0.1)
    assert m["nan"] == "NaN" and m["inf"] == "-Infinity"
    assert m["bytes"] == "a\ufffd\ufffd\ufffdb\0\x1b[31m"
    assert m["words"] == ["x", "y", "\ufffd"] and m["nested"] == [[1, 2], [], ["z"]] and m["numbers"] == list(range(100))
    assert j["metadata_types"]["words"] == "string[]" and j["metadata_types"]["u8"] == "u8" and list(m) == [k[0] for k in KEYS]
    a, b = j["tensors"]
    assert a == {"name": "a.weight", "type": "F32", "dims": [4, 2], "offset": a["offset"], "bytes": 32, "shard": 0}
    assert MODEL[a["offset"]:a["offset"] + 32] == FLOATS and b["dims"] == [3]
    assert j["parameters"] == 11 and j["tensor_bytes"] == 35 and abs(j["bits_per_weight"] - 35 * 8 / 11) < 1e-12
    assert j["types"] == [{"type": "F32", "tensors": 1, "weights": 8, "bytes": 32, "bits_per_weight": 32.0},
                          {"type": "I8", "tensors": 1, "weights": 3, "bytes": 3, "bits_per_weight": 8.0}]


def test_json_limits():
    with File(MODEL) as path:
        j = json.loads(quern("inspect", path, "--json", "--max-array", 3, "--keys-only"))
    assert j["metadata"]["numbers"] == {"elem": "i32", "count": 100} and j["metadata"]["words"] == ["x", "y", "\ufffd"]
    assert "tensors" not in j and "types" not in j


def test_text():
    with File(MODEL) as path:
        out = quern("inspect", path)
        full = quern("inspect", path, "--full")
    assert b"\x1b" not in out + full and b"\0" not in out + full, "a terminal must not obey a file"
    assert rb"a\xff\xe2\x82b\x00\x1b[31m" in out
    for line in ("GGUF version 3", "Metadata: 18 keys", "Tensors: 2", "[0, 1, 2, 3, 4, ... (100)]", "4 x 2", "[[1, 2], [], [\"z\"]]"):
        assert line in out.decode(), f"{line}\n{out.decode()}"
    assert "98, 99]" in full.decode()
    row = next(line.split() for line in out.decode().splitlines() if line.split()[:1] == ["f32"])
    assert row[1:] == ["f32", "0.1"], row  # the shortest number that reads back


def test_long_strings_are_cut_between_characters():
    long = "é" * 500
    with File(gguf([("s", STRING, "x" + long)])) as path:
        out = quern("inspect", path).decode()
        assert long not in out and "(1001 bytes)" in out and "\\x" not in out
        assert long in quern("inspect", path, "--full").decode()


def test_dump():
    with File(MODEL) as path:
        assert quern("inspect", path, "--dump", "a.weight") == FLOATS
        assert quern("inspect", path, "--dump", "b.weight") == struct.pack("<3f", -1, 0, 127)
        code, out, err = quern("inspect", path, "--dump", "c.weight", code=None)
    assert (code, out) == (1, b"") and "c.weight" in err


def test_dump_in_pieces():
    for dims in ([70000, 3], [3, 70000], [1, 5, 7, 3001]):
        n = math.prod(dims)
        raw = struct.pack(f"<{n}i", *range(n))
        with File(gguf([], [("t", dims, 26, raw)])) as path:
            assert quern("inspect", path, "--dump", "t") == struct.pack(f"<{n}f", *range(n))


def test_key():
    template = "{% for m in messages %}\n\x1b{{ m }}{% endfor %}"
    with File(gguf([("tokenizer.chat_template", STRING, template), ("n", U32, 7), ("list", ARRAY, (U8, [1, 2]))])) as path:
        assert quern("inspect", path, "--key", "tokenizer.chat_template") == template.encode()
        assert quern("inspect", path, "--key", "n") == b"7\n" and quern("inspect", path, "--key", "list") == b"[1, 2]\n"
        assert quern("inspect", path, "--key", "absent", code=None)[0] == 1


def test_output_that_fails():
    big = gguf([], [("t", [1 << 20], 24, bytes(1 << 20))])
    with File(big) as path:
        for args in (["--dump", "t"], ["--json"], []):
            with open("/dev/full", "wb") as full:
                p = subprocess.run([QUERN, "inspect", path, *args], stdout=full, stderr=subprocess.PIPE, timeout=60)
            assert p.returncode == 1 and p.stderr.startswith(b"quern: cannot write to stdout") and p.stderr.count(b"\n") == 1, p.stderr
        p = subprocess.Popen([QUERN, "inspect", path, "--dump", "t"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.read(10)
        p.stdout.close()
        err = p.stderr.read()
        p.stderr.close()
        assert p.wait(60) == 1 and err.startswith(b"quern: cannot write to stdout"), err


def test_no_binary_on_a_terminal():
    ours, theirs = pty.openpty()
    with File(MODEL) as path:
        p = subprocess.run([QUERN, "inspect", path, "--dump", "a.weight"], stdout=theirs, stderr=subprocess.PIPE, timeout=60)
    os.close(theirs)
    os.close(ours)
    assert p.returncode == 2 and b"--dump writes binary" in p.stderr


def expect_fault(raw, sentence, *args):
    with File(raw) as path:
        code, out, err = quern("inspect", path, *args, code=None)
    assert code == 1 and out == b"" and sentence in err and err.count("\n") == 1, f"{code} {out[:80]} {err}"


def test_wrong_files():
    expect_fault(b"", "the file is empty")
    expect_fault(b"<!DOCTYPE html><html></html>", "an HTML page", "--json")
    expect_fault(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "a Git LFS pointer")
    expect_fault(gguf(version=1), "GGUF version 1")
    expect_fault(b"GGUF\0\0\0\3" + bytes(16), "big-endian")
    for n in (len(MODEL) // 2, MODEL.index(b"b.weight"), len(MODEL) - 30):
        expect_fault(MODEL[:n], "", "--json")
        expect_fault(MODEL[:n], "", "--dump", "a.weight")
    expect_fault(MODEL[:len(MODEL) - 30], "tensor 'b.weight' (3 bytes at offset 32 of the data) ends past the end of the file")
    expect_fault(gguf([], [("t", [4], 99, bytes(16))]), "tensor 't' has type 99")
    code, out, err = quern("inspect", "/nonexistent/m.gguf", code=None)
    assert code == 1 and out == b"" and "/nonexistent/m.gguf" in err


def test_splits():
    def shard(i, n, tensors):
        return gguf([("split.no", U16, i), ("split.count", U16, n), ("split.tensors.count", I32, 2)], tensors)
    with tempfile.TemporaryDirectory(prefix="quern-inspect-") as folder:
        for i, tensors in enumerate(([], [("a", [8], 0, FLOATS)], [("b", [8], 0, FLOATS)])):
            with open(f"{folder}/m-{i + 1:05}-of-00003.gguf", "wb") as f:
                f.write(shard(i, 3, tensors))
        for i in range(3):
            j = json.loads(quern("inspect", f"{folder}/m-{i + 1:05}-of-00003.gguf", "--json"))
            assert j["shards"] == 3 and [(t["name"], t["shard"]) for t in j["tensors"]] == [("a", 1), ("b", 2)]
        assert quern("inspect", f"{folder}/m-00001-of-00003.gguf", "--dump", "b") == FLOATS
        os.remove(f"{folder}/m-00003-of-00003.gguf")
        code, _, err = quern("inspect", f"{folder}/m-00001-of-00003.gguf", code=None)
        assert code == 1 and "m-00003-of-00003.gguf" in err
    with File(MODEL, "x-00001-of-00013.gguf") as path:  # a whole model under the name of a shard
        assert json.loads(quern("inspect", path, "--json"))["shards"] == 1


def test_usage():
    assert quern("inspect", code=None)[0] == 2
    assert quern("inspect", "--nonsense", "x", code=None)[0] == 2
    assert quern("inspect", "x", "--max-array", "-1", code=None)[0] == 2
    help_text = quern("inspect", "--help").decode()
    for option in ("--json", "--dump", "--key", "--full", "--keys-only", "--max-array", "--ctx", "--chunk"):
        assert option in help_text


def test_memory_of_what_is_not_supported():
    with File(MODEL) as path:  # names llama, and has nothing of it
        why = json.loads(quern("inspect", path, "--json"))["memory"]["error"]
        assert "llama." in why and f"Memory: {why}" in quern("inspect", path).decode()
        code, out, err = quern("inspect", path, "--json", "--ctx", 5, code=None)
        assert code == 1 and why in err and json.loads(out)["memory"] == {"error": why}
    with File(gguf([("general.architecture", STRING, b"x\x1b\xff")])) as path:
        out = quern("inspect", path)
        assert b"\x1b" not in out and out.count(b"Memory:") == 1
        assert "error" in json.loads(quern("inspect", path, "--json"))["memory"]


def test_a_real_model():
    j = json.loads(quern("inspect", cached_model(), "--json"))
    assert j["parameters"] == 134515008 and len(j["tensors"]) == 272 and len(j["metadata"]["tokenizer.ggml.tokens"]) == 49152
    assert [(t["type"], t["bits_per_weight"]) for t in j["types"]] == [("Q4_1", 5.0), ("Q8_0", 8.5), ("F32", 32.0)]
    memory = [json.loads(quern("inspect", cached_model(), "--json", "--ctx", n))["memory"] for n in (1024, 2048)]
    kv = 2 * 2 * 30 * 3 * 64  # K and V, bytes of F16, layers, heads, width
    assert memory[1]["kv_bytes"] - memory[0]["kv_bytes"] == 1024 * kv and memory[0]["kv_bytes"] >= 1024 * kv
    assert memory[0]["ctx"] == 1024 and memory[0]["weight_bytes"] >= 96000000
    assert all(m["total_bytes"] == m["weight_bytes"] + m["kv_bytes"] + m["scratch_bytes"] for m in memory)
    with open(cached_model(), "rb") as f:
        raw = f.read()
    expect_fault(raw[:len(raw) // 2], "it is cut short")
    expect_fault(raw[:-1], "it is cut short", "--json")


main(globals())
