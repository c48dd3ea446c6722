"""`quern logits` and `quern bench` on a tiny model: what they write, and what they leave behind when they cannot."""
import array
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


def test_bench():
    o = json.loads(quern("bench", "-m", chat_model(), "-p", "8,5", "-n", "3", "-d", "0,4", "-t", "1,2", "-r", "3", "--json"))
    assert o["runs"] == 3 and o["weight_bytes"] > 0 and o["n_params"] > 0 and o["arch"]
    tests = [(r["test"], r["threads"]) for r in o["results"]]
    assert tests == [(name, t) for t in (1, 2) for name in ("pp8", "pp5", "tg3", "pp8@d4", "pp5@d4", "tg3@d4")], tests
    for r in o["results"]:
        assert len(r["samples"]) == 3 and all(x > 0 for x in r["samples"]) and r["best"] == max(r["samples"])
        assert abs(r["tokens_per_second"] - sum(r["samples"]) / 3) < 1e-6 * r["best"]
        assert (r["n_prompt"], r["n_gen"]) in ((8, 0), (5, 0), (0, 3))
    table = quern("bench", "-m", chat_model(), "-p", "4", "-n", "0", "-r", "1").decode().split("\n")
    assert len(table) == 5 and table[3].startswith("pp4 ") and "GB/s" in table[1], table
    assert abs(o["generate_limit"] - o["read_bytes_per_second"] / o["weight_bytes"]) < 1e-6 * o["generate_limit"] and o["generate_limit"] > 0
    code, _, err = quern("bench", "-m", chat_model(), "-p", "4", "-n", "2", "-d", "3", "--ctx", "6", code=None)
    assert code == 2 and "--ctx 7" in err, err


def test_floats_are_little_endian():
    row = array.array("f")
    row.frombytes(last())
    if sys.byteorder == "big":
        row.byteswap()
    assert all(abs(x) < 1e4 for x in row)


main(globals())
