"""tests/bench/versus beside made-up peers: columns, ratios, peers that die, tests that a peer lacks, the page and the chart it writes."""
import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import QUERN, SOURCE, chat_model, main  # noqa: E402

VERSUS = os.path.join(SOURCE, "tests", "bench", "versus")

FAKE = """#!{python}
import json, os, signal, sys
a = sys.argv[1:]
if "--help" in a:
    print("  -p, --n-prompt <n>\\n" + ("  -rtr, --run-time-repack <0|1>\\n" if {ik} else ""))
    sys.exit()
def get(name):
    return int(a[a.index(name) + 1]) if name in a else 0
if get("-p") == 6:
    os.kill(os.getpid(), signal.SIGILL)
if "-gp" in a:
    depth, n = map(int, a[a.index("-gp") + 1].split(","))
    assert {ik} and get("-p") == get("-n") == 0
rate = {rate} * (2 if get("-rtr") else 1)
print(json.dumps([{{"build_commit": "abc123", "build_number": 7, "avg_ts": rate, "samples_ts": [rate / 2, rate]}}]))
"""


def fake(folder, name, ik, rate):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(FAKE.format(python=sys.executable, ik=ik, rate=rate))
    os.chmod(path, 0o755)
    return path


def versus(*args, code=0):
    p = subprocess.run([sys.executable, VERSUS, "--quern", QUERN, *args], capture_output=True, text=True, timeout=500, check=False)
    assert p.returncode == code, f"exit code {p.returncode}: {p.stderr}"
    return p.stdout, p.stderr


def test_a_run():
    with tempfile.TemporaryDirectory(prefix="quern-versus-") as folder:
        plain, ik = fake(folder, "llama-bench", False, 1000.0), fake(folder, "ik-bench", True, 700.0)
        figures, page = os.path.join(folder, "figures.json"), os.path.join(folder, "page.md")
        out, err = versus("--peer", plain, "--peer", f"other={ik}", "-p", "4,6", "-n", "2", "-d", "0,3", "-r", "2", "-t", "1", "--load", "-o", figures, "--title",
                          "A <title>", chat_model())
        with open(figures, encoding="utf-8") as f:
            run = json.load(f)
        assert [p["label"] for p in run["programs"]] == ["quern", "llama.cpp", "other", "other -rtr"], run["programs"]
        assert run["programs"][3]["options"] == ["-fa", "1", "-rtr", "1"] and "abc123" in run["programs"][1]["version"]
        rows = {(r["n_prompt"], r["n_gen"], r["depth"]): r for r in run["rows"]}
        assert list(rows) == [(4, 0, 0), (6, 0, 0), (0, 2, 0), (4, 0, 3), (6, 0, 3), (0, 2, 3)]
        first = rows[4, 0, 0]
        assert first["best"]["llama.cpp"] == 1000 and first["best"]["other"] == 700 and first["best"]["other -rtr"] == 1400
        assert len(first["samples"]["quern"]) == 2 and first["best"]["quern"] == max(first["samples"]["quern"]) > 0 and not first["failed"]
        assert "SIGILL" in rows[6, 0, 0]["failed"]["llama.cpp"] and "quern" in rows[6, 0, 0]["best"], "one that dies does not end the run"
        assert rows[4, 0, 3]["failed"] == {"other": "has no such test", "other -rtr": "has no such test"}
        assert rows[0, 2, 3]["best"]["other"] == 700, "-gp stands for the depth"
        assert [r["page_cache"] for r in run["load"]] == ["warm", "cold"] and all(r["best"]["quern"] > 0 for r in run["load"])
        assert all(r["peak_bytes"]["quern"] > 1e6 for r in run["load"] + run["rows"])
        assert "died" in out and "n/a" in out and f"{first['best']['quern'] / 1400:.2f}" in out.split("pp4 ")[1].split("\n")[0], out
        assert "failed: SIGILL" in err
        versus("--peer", plain, "--peer", f"other={ik}", "-p", "4", "-n", "5", "-r", "1", "-t", "1", "-o", figures, "--add", chat_model())
        with open(figures, encoding="utf-8") as f:
            more = json.load(f)
        assert more["title"] == "A <title>" and more["load"] == run["load"] and more["command"].count("\n") == 1
        assert [(r["n_prompt"], r["n_gen"], r["depth"]) for r in more["rows"]] == [k for k in rows if k != (4, 0, 0)] + [(4, 0, 0), (0, 5, 0)]
        assert len(more["rows"][-2]["samples"]["quern"]) == 1, "the new figures replace the old ones"
        versus("--peer", plain, "-p", "4", "-n", "0", "-r", "1", "-t", "1", "-o", figures, "--add", chat_model(), code=1)
        more_figures = os.path.join(folder, "more.json")
        out, _ = versus("--peer", plain, "-p", "4", "-n", "0", "-r", "1", "-t", "1", "--act-bits", "8", "-o", more_figures, chat_model())
        with open(more_figures, encoding="utf-8") as f:
            row = json.load(f)["rows"][0]
        assert row["best"]["quern, 8 bits"] > 0 and out.split("\n")[-2].endswith(f" {row['best']['quern'] / 1000:.2f}"), "the ratio is of the first to the peer"
        first, rows = more["rows"][-2], more["rows"]
        with open(page, "w", encoding="utf-8") as f:
            f.write("before\n<!-- figures: written by tests/bench/versus --from ... --docs -->\nSTALE\n<!-- end of figures -->\nafter\n")
        for _ in range(2):  # the second time changes nothing
            versus("--from", figures, "--docs", page)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        assert text.startswith("before\n") and text.endswith("\nafter\n") and "STALE" not in text and folder not in text and text.count("### A <title>") == 1, text
        assert "](figures.svg)" in text and "](figures.json)" in text and "- llama.cpp failed at" in text
        chart = xml.parse(os.path.join(folder, "figures.svg")).getroot()
        words = [t.text for t in chart.iter("{http://www.w3.org/2000/svg}text")]
        assert "A <title>" in words and "other -rtr" in words and "llama.cpp died" in words and f"{first['best']['quern'] / 1400:.2f} \u00d7" in words, words
        bars = [r for r in chart.iter("{http://www.w3.org/2000/svg}rect") if r.get("height") == "11" and r.get("class") == "c0"]
        assert len(bars) == 1 + len(rows) and all(float(b.get("width")) <= 860 for b in bars)


def test_mistakes():
    with tempfile.TemporaryDirectory(prefix="quern-versus-") as folder:
        peer = fake(folder, "llama-bench", False, 1.0)
        for args, says in ((["--peer", peer], "name models"), ([chat_model()], "--build-llama"), (["--peer", peer, "/no/model"], "/no/model"),
                           (["--peer", peer, "-o", "/no/folder/x", chat_model()], "/no/folder")):
            assert says in versus(*args, code=2)[1], args
        assert "no llama-bench" in versus("--peer", "/bin/true", chat_model(), code=1)[1]
        page = os.path.join(folder, "page.md")
        figures = os.path.join(folder, "figures.json")
        versus("--peer", peer, "-p", "2", "-n", "0", "-r", "1", "-t", "1", "-o", figures, chat_model())
        with open(page, "w", encoding="utf-8") as f:
            f.write("no marks\n")
        assert "has no lines" in versus("--from", figures, "--docs", page, code=1)[1]


main(globals())
