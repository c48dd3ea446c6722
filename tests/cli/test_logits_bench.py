"""`quern logits` and `quern bench` on a tiny model: what they write, and what they leave behind when they cannot."""
import array
import csv
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import QUERN, Logits, chat_model, main, quern  # noqa: E402

IDS = [1, 65, 66, 300, 67, 200, 9]


def last(*options, ids=IDS):
    """The logits of the last position through stdout."""
    return quern("logits", "-m", chat_model(), "--ids", ",".join(map(str, ids)), "-o", "-", *options)


def test_last_and_all():
    with Logits(chat_model(), IDS) as all_rows:
        for n in range(1, len(IDS) + 1):
            assert last(ids=IDS[:n]) == all_rows.row(n - 1).tobytes(), f"row {n}"
        row = all_rows.row(0)
        assert all(-1e4 < x < 1e4 for x in row) and len(set(row)) > len(row) // 2


def test_chunks_threads_and_levels():
    want = last("--exact")
    for options in (("--chunk", "1"), ("--chunk", "3"), ("-t", "1"), ("-t", "3"), ("--cpu", "scalar"), ("--ctx", "100")):
        assert last("--exact", *options) == want, options
    with Logits(chat_model(), IDS) as whole, Logits(chat_model(), IDS, "--chunk", "2") as pieces:
        assert whole.all() == pieces.all()


def test_text():
    ids = json.loads(quern("tokenize", "-m", chat_model(), "--jsonl", stdin=b'{"text":"ab","add_special":true,"parse_special":true}\n'))["ids"]
    assert quern("logits", "-m", chat_model(), "-p", "ab", "-o", "-") == last(ids=ids)


def test_faults():
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        out = os.path.join(folder, "out")
        for ids, options in (("999999", ()), ("1,2,3", ("--ctx", "2"))):
            code, _, err = quern("logits", "-m", chat_model(), "--ids", ids, "-o", out, *options, code=None)
            assert code == 1 and err.count("\n") == 1, err
            assert os.listdir(folder) == [], "nothing is left behind"
        code, _, err = quern("logits", "-m", chat_model(), "--ids", "1", "-o", os.path.join(folder, "no", "out"), code=None)
        assert code == 1 and "No such file" in err, err
        code, _, err = quern("logits", "-m", chat_model(), "--ids", "1", "-o", "/dev/full", code=None)
        assert code == 1 and "No space" in err, err
        assert os.path.exists("/dev/full")


def test_a_disk_that_fills_up():
    """A limit on the file's size stands for the disk: writes fail half way."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        out = os.path.join(folder, "out")
        with open(out, "w", encoding="utf-8") as f:
            f.write("what was there before")
        p = subprocess.run([QUERN, "logits", "-m", chat_model(), "--ids", "1,2,3", "--all", "-o", out], preexec_fn=limit, capture_output=True,
                           check=False, timeout=100)
        assert p.returncode == 1 and b"cannot write" in p.stderr and p.stderr.count(b"\n") == 1, p.stderr
        assert os.listdir(folder) == ["out"]
        with open(out, encoding="utf-8") as f:
            assert f.read() == "what was there before"


def bench(*options, model=None):
    """`quern bench --json`, one model's object."""
    o = json.loads(quern("bench", "-m", model or chat_model(), "--json", *options))
    assert len(o["models"]) == 1, o
    return o["models"][0]


def test_bench():
    o = bench("-p", "8,5", "-n", "3", "-pg", "4,2", "-d", "0,4", "-t", "1,2", "-r", "3")
    assert o["weight_bytes"] > 0 and o["file_bytes"] > 0 and o["n_params"] > 0 and o["arch"]
    tests = [(r["test"], r["threads"]) for r in o["results"]]
    names = ("pp8", "pp5", "tg3", "pp4+tg2", "pp8@d4", "pp5@d4", "tg3@d4", "pp4+tg2@d4")
    assert tests == [(name, t) for t in (1, 2) for name in names], tests
    for r in o["results"]:
        assert len(r["samples"]) == 3 and all(x > 0 for x in r["samples"]) and r["best"] == max(r["samples"])
        assert abs(r["tokens_per_second"] - sum(r["samples"]) / 3) < 1e-6 * r["best"]
        assert (r["n_prompt"], r["n_gen"]) in ((8, 0), (5, 0), (0, 3), (4, 2)) and r["depth"] in (0, 4)


def test_bench_limits():
    """The limit of a result is the larger of two times: what it reads over what the machine reads, and the same of what it multiplies."""
    o = bench("-p", "8", "-n", "3", "-d", "0,4", "-t", "1,2", "-r", "1")
    assert [(x["threads"], x["read_bytes_per_second"] > 1e6, x["mul_adds_per_second"] > 1e6) for x in o["limits"]] == [(1, True, True), (2, True, True)], o
    for r in o["results"]:
        machine = next(x for x in o["limits"] if (x["threads"], x["cpu"]) == (r["threads"], r["cpu"]))
        read, work = r["bytes"] / machine["read_bytes_per_second"], r["mul_adds"] / machine["mul_adds_per_second"]
        assert r["bound"] == ("memory" if read > work else "multiply")
        assert abs(r["limit"] * max(read, work) - r["n_prompt"] - r["n_gen"]) < 1e-6 and abs(r["share"] * r["limit"] - r["best"]) < 1e-6 * r["best"]
    of = {(r["test"], r["threads"]): r for r in o["results"]}
    for t in (1, 2):
        assert of["tg3@d4", t]["bytes"] > of["tg3", t]["bytes"] and of["tg3@d4", t]["mul_adds"] > of["tg3", t]["mul_adds"], "the cache is read too"
        assert 0 < of["tg3", t]["bytes"] <= 3 * (o["weight_bytes"] + o["memory"]["kv_bytes"]), "weights are read once a token"
    less = bench("-p", "8", "-n", "0", "-r", "1", "--no-limits")
    assert less["limits"] == [] and less["results"][0]["limit"] is None and less["results"][0]["bound"] is None, less
    assert o["load"]["seconds"] > 0 and o["load"]["bytes_per_second"] > 0 and o["load"]["threads"] >= 1
    memory = o["memory"]
    assert memory["kv_bytes"] > 0 and memory["scratch_bytes"] > 0 and memory["weight_bytes"] == o["weight_bytes"]
    if memory["peak_bytes"] is not None:
        assert memory["peak_bytes"] >= o["weight_bytes"]


def test_bench_reads_as_often_as_chunks():
    one, four = (bench("-p", "16", "-n", "0", "-r", "1", "--no-limits", "--chunk", c)["results"][0] for c in ("16", "4"))
    assert one["mul_adds"] == four["mul_adds"], "the same products"
    assert 2 * one["bytes"] < four["bytes"] < 5 * one["bytes"], "in four steps weights are read four times"


def test_bench_profile():
    options = ("-p", "8", "-n", "3", "-d", "4", "-r", "2", "--profile")
    whole, layers = bench(*options), bench(*options, "--layers")
    for r, by_layer in zip(whole["results"], layers["results"]):
        assert r["steps"] == (3 if r["n_gen"] else 1)
        names = [s["stage"] for s in r["stages"]]
        assert len(set(names)) == len(names) and {"attend", "head"} <= set(names), names
        assert 0 < sum(s["seconds"] for s in r["stages"]) <= r["seconds"], "stages do not overlap"
        assert abs(r["best"] * r["seconds"] - r["n_prompt"] - r["n_gen"]) < 1e-6, "the fastest run is told"
        for what in ("bytes", "mul_adds"):
            total = sum(s[what] for s in r["stages"])
            assert abs(total - r[what]) <= 1e-9 * total, f"{what}: {total} in the stages, {r[what]} in a run"
            for s in r["stages"]:
                assert sum(x[what] for x in by_layer["stages"] if x["stage"] == s["stage"]) == s[what], s
        n = {x["layer"] for x in by_layer["stages"]} - {None}
        assert n == set(range(len(n))) and len(n) > 1, n
        assert all(s["layer"] is None for s in r["stages"])
        attend = next(s for s in r["stages"] if s["stage"] == "attend")
        assert attend["runs"] == r["steps"] * len(n) and attend["bytes"] > 0
    table = quern("bench", "-m", chat_model(), *options).decode()
    for text in ("\nstage ", "\nattend ", "\nhead ", "\nbetween stages ", "\nall ", " GB/s", " GMAC/s", "100.0 %"):
        assert text in table, f"{text!r} is not in {table}"
    assert "\n 1 attend" in quern("bench", "-m", chat_model(), *options, "--layers").decode()


def test_bench_table_and_csv():
    table = quern("bench", chat_model(), "-p", "4", "-n", "0", "-r", "1").decode().split("\n")
    assert [line.split(" ")[0] for line in table[1:4]] == ["load", "memory", "multiply"] and "GB/s" in table[2] and "GMAC/s" in table[3], table
    head = next(i for i, line in enumerate(table) if line.startswith("test "))
    assert table[head + 1].startswith("pp4 ") and table[head + 1].split()[-1] in ("memory", "multiply") and "%" in table[head + 1], table
    assert any(line.startswith("resident ") for line in table) or not os.path.exists("/proc/self/clear_refs"), table
    levels = quern("version").decode().split("levels: ")[1].split()
    rows = list(csv.DictReader(quern("bench", chat_model(), "-m", chat_model(), "-p", "4", "-n", "2", "-r", "2", "--csv", "--cpu",
                                     f"scalar,{levels[-1]}").decode().split("\n")))
    assert [(r["test"], r["cpu"]) for r in rows] == [(t, c) for c in ("scalar", levels[-1]) for t in ("pp4", "tg2")] * 2, rows
    for r in rows:
        assert None not in r and None not in r.values() and r["model"] == os.path.basename(chat_model()) and int(r["runs"]) == 2, r
        assert float(r["best"]) >= float(r["tokens_per_second"]) > 0 and float(r["limit"]) > 0 and float(r["share"]) > 0, r
    bare = list(csv.DictReader(quern("bench", chat_model(), "-p", "4", "-n", "0", "-r", "1", "--csv", "--no-limits").decode().split("\n")))
    assert bare[0]["limit"] == bare[0]["bound"] == "" and list(bare[0]) == list(rows[0])


def test_bench_stops_where_it_must():
    code, _, err = quern("bench", "-m", chat_model(), "-p", "4", "-n", "2", "-d", "3", "--ctx", "6", code=None)
    assert code == 2 and "--ctx 7" in err, err
    code, out, err = quern("bench", chat_model(), "no-such.gguf", "-p", "4", "-n", "0", code=None)
    assert code == 1 and out == b"" and "no-such.gguf" in err and err.count("\n") == 1, "said before the first model takes its time"
    with open("/dev/full", "wb") as full:
        for how in ("--json", "--csv", "--no-limits"):
            p = subprocess.run([QUERN, "bench", chat_model(), "-p", "4", "-n", "0", "-r", "1", how], stdout=full, stderr=subprocess.PIPE, timeout=100,
                               check=False)
            assert p.returncode == 1 and b"cannot write to stdout" in p.stderr, (how, p)


def test_floats_are_little_endian():
    row = array.array("f")
    row.frombytes(last())
    if sys.byteorder == "big":
        row.byteswap()
    assert all(abs(x) < 1e4 for x in row)


main(globals())
