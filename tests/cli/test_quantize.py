"""quern quantize: which tensor gets which type, what is kept, and that a run that fails leaves nothing behind."""
import array
import collections
import json
import math
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from gguf_file import ARRAY, F32, STRING, U16, U32, I32, Folder, inspect, write  # noqa: E402
from support import QUERN, Skip, main, quern, ref  # noqa: E402

TYPES = ("F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_1", "Q5_0", "Q4_K_M", "Q4_K_S", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS",
         "MXFP4", "MXFP4_MOE", "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K")
# The largest error of Gaussian weights that each format may make, relative; a third above what simple rounding gives.
WORST = {"F16": 0.0005, "BF16": 0.003, "Q8_0": 0.008, "Q6_K": 0.03, "Q5_K": 0.05, "Q5_1": 0.06, "Q5_0": 0.07, "Q4_K": 0.1, "Q4_1": 0.12,
         "Q4_0": 0.13, "IQ4_NL": 0.11, "IQ4_XS": 0.11, "MXFP4": 0.17, "Q3_K": 0.21, "Q2_K": 0.38}
LLAMA = (("general.architecture", STRING, "llama"), ("general.name", STRING, "test"), ("llama.block_count", U32, 4),
         ("llama.attention.head_count", U32, 8), ("llama.attention.head_count_kv", U32, 8), ("general.file_type", U32, 0),
         ("tokenizer.ggml.tokens", ARRAY, (STRING, ["a", "b", ""])))


def weights(n, seed=1, scale=0.02):
    r = random.Random(seed)
    return array.array("f", (r.gauss(0, scale) for _ in range(n))).tobytes()


def layers(n_layer, width, ffn, vocab, kind=0, n_kv=None, head=True, fill=False):
    """The tensors of a llama of this shape; zeros that take no room unless `fill`."""
    kv = n_kv or width
    shapes = {"attn_norm": (width,), "attn_q": (width, width), "attn_k": (width, kv), "attn_v": (width, kv), "attn_output": (width, width),
              "ffn_norm": (width,), "ffn_gate": (width, ffn), "ffn_up": (width, ffn), "ffn_down": (ffn, width)}
    t = [("token_embd.weight", (width, vocab)), ("output_norm.weight", (width,))] + ([("output.weight", (width, vocab))] if head else [])
    t += [(f"blk.{i}.{n}.weight", d) for i in range(n_layer) for n, d in shapes.items()]
    return [(n, d, kind if len(d) > 1 else 0, weights(math.prod(d), seed=i) if fill else None) for i, (n, d) in enumerate(t)]


def small(path, width=256, **more):
    """A whole model of random weights."""
    write(path, LLAMA, layers(2, width, 2 * width, 64, fill=True, **more))


def quantize(*args, code=0):
    """The report of a run as JSON, or (code, stderr) where it is to fail."""
    if code == 0:
        return json.loads(quern("quantize", *args, "--json"))
    got, _, err = quern("quantize", *args, code=None)
    assert got == code, f"exit code {got}, not {code}: {err}"
    return err


def counts(report):
    return dict(collections.Counter(t["to"] for t in report["tensors"]))


def to_of(report):
    return {t["name"]: t["to"] for t in report["tensors"]}


# ---- types ----

def gemma_270m(path):
    """A file of Gemma 3 270M's shape, in F16, of zeros that take no room."""
    shapes = {"attn_k": (640, 256), "attn_output": (1024, 640), "attn_q": (640, 1024), "attn_v": (640, 256), "ffn_down": (2048, 640),
              "ffn_gate": (640, 2048), "ffn_up": (640, 2048)}
    norms = {"attn_k_norm": 256, "attn_norm": 640, "attn_q_norm": 256, "ffn_norm": 640, "post_attention_norm": 640, "post_ffw_norm": 640}
    t = [("token_embd.weight", (640, 262144), 1, None), ("output_norm.weight", (640,), 0, None)]
    for i in range(18):
        t += [(f"blk.{i}.{n}.weight", d, 1, None) for n, d in shapes.items()]
        t += [(f"blk.{i}.{n}.weight", (d,), 0, None) for n, d in norms.items()]
    write(path, (("general.architecture", STRING, "gemma3"), ("gemma3.block_count", U32, 18), ("gemma3.attention.head_count", U32, 4),
                 ("gemma3.attention.head_count_kv", U32, 1)), t)


def test_types_are_those_of_llama_cpp():
    path = ref("quality", "llama_cpp.json")
    if not path:
        raise Skip("refs/quality is not there")
    with open(path, encoding="utf-8") as f:
        rows = [r for r in json.load(f)["rows"] if not r["imatrix"]]
    with Folder() as d:
        gemma_270m(d.path("m.gguf"))
        for r in rows:
            j = quantize(d.path("m.gguf"), r["type"], "--dry-run")
            assert counts(j) == r["tensor_types"], f"{r['type']}: {counts(j)}, not {r['tensor_types']}"
            assert j["tensor_bytes"] == r["tensor_bytes"]


def test_every_type_is_written_and_read():
    with Folder() as d:
        small(d.path("in.gguf"))
        for t in TYPES:
            plan = quantize(d.path("in.gguf"), t, "--dry-run")
            assert d.names() == ["in.gguf"]
            j = quantize(d.path("in.gguf"), d.path("out.gguf"), t)
            assert j["file_bytes"] == plan["file_bytes"] == os.path.getsize(d.path("out.gguf")), f"{t}: the plan's size is another"
            have = inspect(d.path("out.gguf"))
            for row in j["tensors"]:
                assert have["by_name"][row["name"]]["type"] == row["to"]
                worst = WORST.get(row["to"], 0)
                assert row["error"] <= worst, f"{t}: {row['name']} as {row['to']} has an error of {row['error']:.4f}, above {worst}"
                dump = array.array("f", quern("inspect", d.path("out.gguf"), "--dump", row["name"]))
                assert all(map(math.isfinite, dump)), f"{t}: {row['name']} is not finite"
            os.unlink(d.path("out.gguf"))


def test_error_is_the_change_of_the_weights():
    with Folder() as d:
        small(d.path("in.gguf"))
        j = quantize(d.path("in.gguf"), d.path("out.gguf"), "Q4_0")
        for row in j["tensors"]:
            a, b = (array.array("f", quern("inspect", d.path(f), "--dump", row["name"])) for f in ("in.gguf", "out.gguf"))
            want = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(x * x for x in a))
            assert abs(row["error"] - want) <= 1e-5 * want, f"{row['name']}: {row['error']}, not {want}"


def test_rows_that_are_no_multiple_of_256():
    with Folder() as d:
        small(d.path("in.gguf"), width=576)
        j = quantize(d.path("in.gguf"), d.path("out.gguf"), "Q4_K_M")
        q = next(t for t in j["tensors"] if t["name"] == "blk.0.attn_q.weight")
        assert (q["to"], q["wanted"]) == ("Q5_0", "Q4_K") and j["substituted"] == sum(t["to"] != t["wanted"] for t in j["tensors"]) > 0
        table = quern("quantize", d.path("in.gguf"), "Q4_K_M", "--dry-run").decode()
        assert "instead of Q4_K" in table and "rows of 576" in table
        err = quantize(d.path("in.gguf"), d.path("no.gguf"), "Q4_K_M", "--no-fallback", code=1)
        assert "576" in err and "256" in err and "Q5_0" in err and "weight'" in err
        j = quantize(d.path("in.gguf"), d.path("o2.gguf"), "Q8_0", "--tensor-type", "attn_q=q4_k")
        assert to_of(j)["blk.1.attn_q.weight"] == "Q5_0" and j["substituted"] == 2
        assert d.names() == ["in.gguf", "o2.gguf", "out.gguf"]


def test_tiny_rows_stay_floats():
    with Folder() as d:
        write(d.path("in.gguf"), LLAMA, [("blk.0.attn_q.weight", (14, 14), 0, weights(196)), ("blk.0.attn_k.weight", (14, 14), 1, bytes(392)),
                                         ("blk.0.attn_v.weight", (14, 14), 30, bytes(392))])
        j = quantize(d.path("in.gguf"), d.path("out.gguf"), "Q4_K_M")
        assert to_of(j) == {"blk.0.attn_q.weight": "F16", "blk.0.attn_k.weight": "F16", "blk.0.attn_v.weight": "BF16"}
        assert j["substituted"] == 3


def test_types_of_single_tensors():
    with Folder() as d:
        small(d.path("in.gguf"))
        j = quantize(d.path("in.gguf"), d.path("out.gguf"), "q4_k_s", "--tensor-type", r"^blk\.1\.ffn=q8_0", "--tensor-type", "ffn_up=Q5_K",
                     "--output-type", "q5_1", "--embedding-type", "F16")
        t = to_of(j)
        assert t["blk.1.ffn_up.weight"] == "Q8_0" and t["blk.0.ffn_up.weight"] == "Q5_K" and t["blk.0.ffn_gate.weight"] == "Q4_K"
        assert t["output.weight"] == "Q5_1" and t["token_embd.weight"] == "F16" and t["blk.0.ffn_norm.weight"] == "F32"
        pure = to_of(quantize(d.path("in.gguf"), "Q4_K_M", "--pure", "--dry-run"))
        assert {v for k, v in pure.items() if "norm" not in k} == {"Q4_K"}
        for bad in ("ffn", "=q8_0", "ffn=", "ffn[=q8_0"):
            quantize(d.path("in.gguf"), d.path("o.gguf"), "Q4_0", "--tensor-type", bad, code=2)
        assert "no_such" in quantize(d.path("in.gguf"), d.path("o.gguf"), "Q4_0", "--tensor-type", "no_such=q8_0", code=2)
        assert "q9_9" in quantize(d.path("in.gguf"), d.path("o.gguf"), "Q4_0", "--tensor-type", "ffn=q9_9", code=1)
        assert "Q4_K_M" in quantize(d.path("in.gguf"), d.path("o.gguf"), "Q9", code=2)
        assert d.names() == ["in.gguf", "out.gguf"]


def test_a_tied_head():
    with Folder() as d:
        small(d.path("in.gguf"), head=False)
        assert to_of(quantize(d.path("in.gguf"), "Q4_K_S", "--dry-run"))["token_embd.weight"] == "Q6_K"
        assert to_of(quantize(d.path("in.gguf"), "Q4_K_S", "--dry-run", "--output-type", "Q8_0"))["token_embd.weight"] == "Q8_0"


# ---- the file ----

def test_keys_stay():
    with Folder() as d:
        write(d.path("in.gguf"), LLAMA + (("general.alignment", U32, 128),), layers(1, 256, 256, 32, fill=True), align=128)
        quantize(d.path("in.gguf"), d.path("out.gguf"), "Q4_K_M")
        before, after = inspect(d.path("in.gguf"))["metadata"], inspect(d.path("out.gguf"))["metadata"]
        assert after.pop("general.file_type") == 15 and after.pop("general.quantization_version") == 2
        before.pop("general.file_type")
        assert before == after and after["general.alignment"] == 128
        assert all(t["offset"] % 128 == 0 for t in inspect(d.path("out.gguf"))["tensors"])


def test_threads_do_not_change_the_file():
    with Folder() as d:
        write(d.path("in.gguf"), LLAMA, [("blk.0.ffn_down.weight", (1024, 900), 0, weights(1024 * 900))])
        files = []
        for t in (1, 2, 5):
            report = quantize(d.path("in.gguf"), d.path("out.gguf"), "Q5_K_M", "-t", t)
            with open(d.path("out.gguf"), "rb") as f:
                files.append((f.read(), report["tensors"][0]["error"]))
        assert files[0] == files[1] == files[2]


def split_source(d):
    tensors = layers(2, 256, 512, 64, fill=True)
    cut = (0, 5, 11, len(tensors))
    for i in range(3):
        keys = (LLAMA if i == 0 else ()) + (("split.no", U16, i), ("split.count", U16, 3), ("split.tensors.count", I32, len(tensors)))
        write(d.path(f"in-{i + 1:05d}-of-00003.gguf"), keys, tensors[cut[i]:cut[i + 1]])
    write(d.path("whole.gguf"), LLAMA, tensors)
    return d.path("in-00002-of-00003.gguf")


def test_split_files_become_one_or_stay():
    with Folder() as d:
        source = split_source(d)
        for f in ("whole.gguf", source):
            quantize(d.path(f), d.path("out-" + os.path.basename(f)), "Q4_K_M")
        with open(d.path("out-whole.gguf"), "rb") as a, open(d.path("out-in-00002-of-00003.gguf"), "rb") as b:
            assert a.read() == b.read()
        j = quantize(source, d.path("kept.gguf"), "Q4_K_M", "--keep-split")
        parts = [d.path(f"kept-{i:05d}-of-00003.gguf") for i in (1, 2, 3)]
        assert j["files"] == 3 and j["file_bytes"] == sum(map(os.path.getsize, parts)) and not os.path.exists(d.path("kept.gguf"))
        kept, whole = inspect(parts[2]), inspect(d.path("out-whole.gguf"))
        assert {n: t["type"] for n, t in kept["by_name"].items()} == {n: t["type"] for n, t in whole["by_name"].items()}
        for n in ("token_embd.weight", "blk.1.ffn_down.weight"):
            assert quern("inspect", parts[0], "--dump", n) == quern("inspect", d.path("out-whole.gguf"), "--dump", n)
        assert "is read" in quantize(source, d.path("in.gguf"), "Q4_K_M", "--keep-split", code=1)
        assert len([n for n in d.names() if n.startswith("in-")]) == 3


def test_quantised_sources():
    with Folder() as d:
        small(d.path("in.gguf"))
        quantize(d.path("in.gguf"), d.path("q8.gguf"), "Q8_0")
        err = quantize(d.path("q8.gguf"), d.path("o.gguf"), "Q4_0", code=1)
        assert "Q8_0 already" in err and "allow-requantize" in err
        assert to_of(quantize(d.path("q8.gguf"), d.path("o.gguf"), "Q4_0", "--allow-requantize"))["blk.0.attn_q.weight"] == "Q4_0"
        quantize(d.path("q8.gguf"), d.path("f.gguf"), "F32")
        assert quern("inspect", d.path("f.gguf"), "--dump", "output.weight") == quern("inspect", d.path("q8.gguf"), "--dump", "output.weight")
        same = quantize(d.path("q8.gguf"), d.path("same.gguf"), "Q8_0")
        assert same["quantized"] == 0


# ---- what is refused ----

def test_weights_that_are_not_finite():
    bad = {"nan": float("nan"), "inf": -math.inf}
    with Folder() as d:
        for what, x in bad.items():
            w = array.array("f", [0.5] * 256 * 8)
            w[256 * 3 + 17] = x
            write(d.path("in.gguf"), LLAMA, [("blk.0.attn_q.weight", (256, 8), 0, w.tobytes())])
            err = quantize(d.path("in.gguf"), d.path("o.gguf"), "Q4_K_M", code=1)
            assert "blk.0.attn_q.weight" in err and "row 3, column 17" in err and ("NaN" if what == "nan" else "infinity") in err
        norm = array.array("f", [1.0] * 32)
        norm[31] = math.nan  # in a tensor that is copied
        write(d.path("in.gguf"), LLAMA, [("output_norm.weight", (32,), 0, norm.tobytes()), ("output.weight", (256, 1), 0, weights(256))])
        assert "output_norm.weight" in quantize(d.path("in.gguf"), d.path("o.gguf"), "Q8_0", code=1)
        block = struct.pack("<H", 0x7e00) + bytes(32)  # a scale that is NaN
        write(d.path("in.gguf"), LLAMA, [("output.weight", (32, 1), 8, block)])
        assert "output.weight" in quantize(d.path("in.gguf"), d.path("o.gguf"), "F16", code=1)
        assert d.names() == ["in.gguf"]


def test_huge_weights_stay_finite():
    with Folder() as d:
        w = array.array("f", [3e38, -3e38, 1e-45, 0.0] * 256)
        write(d.path("in.gguf"), LLAMA, [("blk.0.attn_q.weight", (256, 4), 0, w.tobytes())])
        for t in TYPES:
            quantize(d.path("in.gguf"), d.path("o.gguf"), t, "--pure")
            got = array.array("f", quern("inspect", d.path("o.gguf"), "--dump", "blk.0.attn_q.weight"))
            assert all(map(math.isfinite, got)), t


def test_output_is_not_input():
    with Folder() as d:
        small(d.path("in.gguf"))
        os.link(d.path("in.gguf"), d.path("hard.gguf"))
        os.symlink("in.gguf", d.path("soft.gguf"))
        with open(d.path("in.gguf"), "rb") as f:
            before = f.read()
        for out in ("in.gguf", "hard.gguf", "soft.gguf"):
            assert "is read" in quantize(d.path("in.gguf"), d.path(out), "Q8_0", code=1)
        with open(d.path("in.gguf"), "rb") as f:
            assert f.read() == before
        assert d.names() == ["hard.gguf", "in.gguf", "soft.gguf"]


def test_paths_that_cannot_be_written():
    with Folder() as d:
        small(d.path("in.gguf"))
        err = quantize(d.path("in.gguf"), d.path("missing/out.gguf"), "Q8_0", code=1)
        assert "missing/out.gguf" in err and "No such file" in err
        os.mkdir(d.path("folder.gguf"))
        assert "folder.gguf" in quantize(d.path("in.gguf"), d.path("folder.gguf"), "Q8_0", code=1)
        quantize(d.path("absent.gguf"), d.path("out.gguf"), "Q8_0", code=1)


def test_a_full_disk():
    """A limit on the size of files stands for it."""
    with Folder() as d:
        small(d.path("in.gguf"))
        with open(d.path("out.gguf"), "wb") as f:
            f.write(b"precious")
        for limit in (100, 100000, 1000000):
            p = subprocess.run([QUERN, "quantize", d.path("in.gguf"), d.path("out.gguf"), "Q8_0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)), timeout=60)
            err = p.stderr.decode()
            need = quantize(d.path("in.gguf"), "Q8_0", "--dry-run")["file_bytes"]
            assert p.returncode == 1 and f"needs {need} bytes" in err and "are free" in err, f"limit {limit}: {p.returncode} {err}"
            assert d.names() == ["in.gguf", "out.gguf"]
        with open(d.path("out.gguf"), "rb") as f:
            assert f.read() == b"precious"


def test_signals():
    with Folder() as d:
        write(d.path("in.gguf"), LLAMA, layers(4, 4096, 14336, 32000))  # 4 GB of zeros
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            p = subprocess.Popen([QUERN, "quantize", d.path("in.gguf"), d.path("out.gguf"), "Q4_K_M", "-t", "1"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
            end = time.time() + 60
            while len(d.names()) < 2 and p.poll() is None and time.time() < end:
                time.sleep(0.001)
            p.send_signal(sig)
            _, err = p.communicate(timeout=60)
            assert p.returncode == 128 + sig, f"{sig}: exit code {p.returncode}: {err.decode()}"
            assert "stopped by a signal" in err.decode() and d.names() == ["in.gguf"]


def test_a_file_cut_short():
    with Folder() as d:
        small(d.path("in.gguf"))
        n = os.path.getsize(d.path("in.gguf"))
        quantize(d.path("in.gguf"), d.path("q.gguf"), "Q8_0")
        for name, size in (("in.gguf", n - 1), ("in.gguf", n // 2), ("q.gguf", 700)):
            os.truncate(d.path(name), size)
            assert "cut short" in quantize(d.path(name), d.path("o.gguf"), "Q4_0", "--allow-requantize", code=1)
        assert d.names() == ["in.gguf", "q.gguf"]


# ---- importance data ----

def imatrix(path, entries, count=10.0):
    """entries: name to list of sums of squares."""
    tensors = []
    for name, sums in entries.items():
        tensors.append((name + ".in_sum2", (len(sums), 1), 0, array.array("f", sums).tobytes()))
        tensors.append((name + ".counts", (1, 1), 0, array.array("f", [count]).tobytes()))
    write(path, (("general.type", STRING, "imatrix"), ("imatrix.datasets", ARRAY, (STRING, ["text.txt"])), ("imatrix.chunk_count", U32, 5),
                 ("imatrix.chunk_size", U32, 512)), tensors)


def test_importance_moves_the_error():
    with Folder() as d:
        w = weights(256 * 64)
        write(d.path("in.gguf"), LLAMA, [("blk.0.attn_q.weight", (256, 64), 0, w)])
        imatrix(d.path("i.gguf"), {"blk.0.attn_q.weight": [1000.0 if i % 8 == 0 else 1.0 for i in range(256)]})
        errors = []
        for more in ((), ("--imatrix", d.path("i.gguf"))):
            quantize(d.path("in.gguf"), d.path("o.gguf"), "Q4_0", *more)
            a, b = array.array("f", w), array.array("f", quern("inspect", d.path("o.gguf"), "--dump", "blk.0.attn_q.weight"))
            errors.append(sum((x - y) ** 2 for i, (x, y) in enumerate(zip(a, b)) if i % 8 == 0))
        assert errors[1] < 0.9 * errors[0], errors
        keys = inspect(d.path("o.gguf"))["metadata"]
        assert keys["quantize.imatrix.file"] == d.path("i.gguf") and keys["quantize.imatrix.dataset"] == "text.txt"
        assert keys["quantize.imatrix.entries_count"] == 1 and keys["quantize.imatrix.chunks_count"] == 5


def test_strange_importance_data():
    name = "blk.0.attn_q.weight"
    with Folder() as d:
        write(d.path("in.gguf"), LLAMA, [(name, (256, 8), 0, weights(2048))])
        for sums in ([0.0] * 256, [1e38] * 256, [0.0] * 32 + [1e38] * 32 + [1e-38] * 192, [0.0] * 255 + [3e38]):
            imatrix(d.path("i.gguf"), {name: sums})
            for t in ("Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "IQ4_XS", "MXFP4"):
                row = quantize(d.path("in.gguf"), d.path("o.gguf"), t, "--pure", "--imatrix", d.path("i.gguf"))["tensors"][0]
                got = array.array("f", quern("inspect", d.path("o.gguf"), "--dump", name))
                assert all(map(math.isfinite, got)) and row["importance"] and row["error"] < 1, f"{t}: {row}"
        for bad in (math.nan, math.inf, -1.0):
            imatrix(d.path("i.gguf"), {name: [1.0] * 255 + [bad]})
            assert name in quantize(d.path("in.gguf"), d.path("no.gguf"), "Q4_0", "--imatrix", d.path("i.gguf"), code=1)
        imatrix(d.path("i.gguf"), {name: [1.0] * 128})
        assert name in quantize(d.path("in.gguf"), d.path("no.gguf"), "Q4_0", "--imatrix", d.path("i.gguf"), code=1)
        assert not os.path.exists(d.path("no.gguf"))


def test_tensors_without_importance_data():
    with Folder() as d:
        small(d.path("in.gguf"))
        names = [t["name"] for t in inspect(d.path("in.gguf"))["tensors"] if "norm" not in t["name"] and t["name"] != "token_embd.weight"]
        columns = {n: t["dims"][0] for n, t in inspect(d.path("in.gguf"))["by_name"].items()}
        imatrix(d.path("i.gguf"), {n: [1.0] * columns[n] for n in names})
        args = (d.path("in.gguf"), "Q4_K_M", "--dry-run", "--imatrix", d.path("i.gguf"))
        assert quantize(*args)["without_importance"] == 1
        assert "no importance data: token_embd.weight" in quern("quantize", *args).decode()
        assert "importance" in quantize(d.path("in.gguf"), d.path("o.gguf"), "Q2_K_S", code=1)
        quantize(d.path("in.gguf"), d.path("o.gguf"), "Q2_K_S", "--imatrix", d.path("i.gguf"))
        imatrix(d.path("i.gguf"), {n: [1.0] * columns[n] for n in names[1:]})  # output.weight
        quantize(d.path("in.gguf"), d.path("o.gguf"), "Q2_K_S", "--imatrix", d.path("i.gguf"))
        imatrix(d.path("i.gguf"), {n: [1.0] * columns[n] for n in names[:-1]})
        assert names[-1] in quantize(d.path("in.gguf"), d.path("o2.gguf"), "Q2_K_S", "--imatrix", d.path("i.gguf"), code=1)


def test_help_lists_the_types():
    words = quern("quantize", "--help").decode().split()
    assert all(t in words for t in TYPES)
    quantize(code=2)
    quantize("x.gguf", "Q4_0", code=2)


if __name__ == "__main__":
    main(globals())
