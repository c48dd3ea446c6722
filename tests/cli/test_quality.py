"""tests/bench/quality on a tiny model: rows, a run that goes on, a peer's figures, the page and the chart it writes."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from support import QUERN, SOURCE, Skip, main, ref  # noqa: E402

QUALITY = os.path.join(SOURCE, "tests", "bench", "quality")


def quality(*args, code=0):
    p = subprocess.run([sys.executable, QUALITY, "--quern", QUERN, *args], capture_output=True, text=True, timeout=500, check=False)
    assert p.returncode == code, f"exit code {p.returncode}: {p.stderr}"
    return p.stdout, p.stderr


def text(folder, name, sentence):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(sentence * 60)
    return path


def test_a_run():
    model = ref("arch", "llama.gguf")
    if not model:
        raise Skip("refs/arch is not there")
    with tempfile.TemporaryDirectory(prefix="quern-quality-") as folder:
        shutil.copy(model, os.path.join(folder, "m.gguf"))
        figures, page, peer = (os.path.join(folder, n) for n in ("q.json", "page.md", "peer.json"))
        with open(peer, "w", encoding="utf-8") as f:
            row = {"file_bytes": 10 ** 9, "kl_mean": 1.0, "kl_mean_error": 0.1, "perplexity": 9.0}
            json.dump({"fair": {"rows": [{"type": "Q8_0", "imatrix": False, **row}, {"type": "Q4_0", "imatrix": True, **row, "file_bytes": 7}]}}, f)
        args = ("--text", text(folder, "a.txt", "The quick brown fox jumps over the lazy dog, and 17 others watch it. "), "-t", "1", "--peer",
                f"other={peer}:fair", "--tests", "4,2", "--runs", "1", "-o", figures, "--calibration",
                text(folder, "b.txt", "A cat sat on the mat and looked at the 33 mice that ran around there. "), os.path.join(folder, "m.gguf"))
        out, _ = quality(*args, "Q8_0")
        assert out.count("\n") == 2 and "-100 %" in out, out
        _, err = quality("--add", "--gptq", "Q4_0", *args, "Q8_0", "Q4_0", code=1)
        assert "Q4_0 with importance data" in err and "other 7" in err and "Q8_0" not in err, err
        with open(figures, encoding="utf-8") as f:
            run = json.load(f)
        rows = {(r["type"], r["how"]): r for r in run["rows"]}
        assert list(rows) == [("Q8_0", "plain"), ("Q8_0", "imatrix"), ("Q4_0", "plain"), ("Q4_0", "imatrix"), ("Q4_0", "gptq")]
        assert all(r["kl_mean"] > 0 and r["bits_per_weight"] > 4 for r in rows.values()) and run["source"]["kl_mean"] < 1e-4
        assert rows["Q8_0", "plain"]["kl_mean"] < rows["Q4_0", "plain"]["kl_mean"] and rows["Q4_0", "plain"]["tg"] > 0 and rows["Q4_0", "plain"]["pp"] > 0
        assert len(run["command"]) == 2 and folder not in json.dumps(run), "files are told without their folders"
        assert sorted(os.listdir(folder)) == ["a.txt", "b.txt", "m.gguf", "peer.json", "q.json"], "what was made is removed"
        with open(page, "w", encoding="utf-8") as f:
            f.write("before\n<!-- quality: written by tests/bench/quality --docs -->\nold\n<!-- end of quality -->\nafter\n")
        quality("--from", figures, "--docs", page, code=1)
        with open(page, encoding="utf-8") as f:
            got = f.read()
        assert got.startswith("before\n") and got.endswith("after\n") and "old" not in got
        assert all(x in got for x in ("(q.svg)", "(q.json)", "**-100 %**", "| GPTQ |", "importance data"))
        assert xml.parse(os.path.join(folder, "q.svg")).getroot().tag.endswith("svg")
        quality("--add", *args[:-1], peer, code=1)  # another model



def test_mistakes():
    quality("x.gguf", code=2)
    quality(code=2)
    quality("--from", "absent.json", code=1)


if __name__ == "__main__":
    main(globals())
