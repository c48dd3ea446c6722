"""Files that commands write: never over one that is read, whole or not there at all when the disk is full or a signal comes, and refused before the work."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from gguf_file import ARRAY, F32, STRING, U32, Folder, write  # noqa: E402
from support import QUERN, chat_model, main, quern  # noqa: E402

TEXT = b"The quick brown fox jumps over the lazy dog, and 17 others watch it.\n" * 200


class Place(Folder):
    """A folder with a model and a text of its own, which must stay as they are."""

    def __init__(self):
        super().__init__()
        shutil.copy(chat_model(), self.path("model.gguf"))
        with open(self.path("text"), "wb") as f:
            f.write(TEXT)
        self.model, self.text = self.path("model.gguf"), self.path("text")
        self.before = self.all()

    def all(self):
        held = {}
        for name in self.names():
            with open(self.path(name), "rb") as f:
                held[name] = f.read()
        return held

    def refused(self, *args, says, code=1, stdin=b""):
        """One sentence that says so, the exit code, and nothing has changed."""
        before = self.all()
        got, out, err = quern(*args, code=None, stdin=stdin)
        err = "".join(x for x in err.splitlines(True) if not x.startswith(("quern: note:", "quern: the model has no chat template")))
        assert got == code and says in err and err.count("\n") == 1 and not out, (args, got, err)
        assert self.all() == before, f"{args}: files changed"


def imatrix_file(path):
    name, one = "blk.0.attn_q.weight", b"\0\0\x80\x3f"
    write(path, (("general.type", STRING, "imatrix"), ("imatrix.datasets", ARRAY, (STRING, ["t"])), ("imatrix.chunk_count", U32, 1),
                 ("imatrix.chunk_size", U32, 512), ("unused", F32, 0.0)),
          [(name + ".in_sum2", (128, 1), 0, one * 128), (name + ".counts", (1, 1), 0, one)])


def writers(p, out):
    """Each command that writes a file, with that file's name."""
    return (("perplexity", "-m", p.model, "-f", p.text, "-c", "64", "--kl-base", out), ("imatrix", "-m", p.model, "-f", p.text, "-c", "64", "-o", out),
            ("embed", "-m", p.model, "-f", p.text, "-o", out), ("logits", "-m", p.model, "--ids", "1,2,3,4", "--all", "-o", out),
            ("quantize", p.model, out, "Q4_0"), ("batch", p.path("requests"), "-m", p.model, "-c", "64", "-o", out))


def requests(p, n=3):
    with open(p.path("requests"), "w", encoding="utf-8") as f:
        for i in range(n):
            f.write('{"custom_id": "%d", "prompt": "Chapter %d", "max_tokens": 20, "seed": 1}\n' % (i, i))


def test_never_over_what_is_read():
    with Place() as p:
        requests(p)
        os.link(p.model, p.path("hard"))
        os.symlink("model.gguf", p.path("soft"))
        os.link(p.text, p.path("text2"))
        for out in (p.model, p.path("hard"), p.path("soft")):
            for args in writers(p, out):
                p.refused(*args, says="no result of a batch" if args[0] == "batch" else "read; write to another name")
        for out in (p.text, p.path("text2")):
            for args in writers(p, out)[:3]:
                p.refused(*args, says="read; write to another name")
        p.refused("batch", p.path("requests"), "-m", p.model, "-o", p.path("requests"), says="no result of a batch")
        imatrix_file(p.path("imatrix"))
        p.refused("quantize", p.model, p.path("imatrix"), "Q4_0", "--imatrix", p.path("imatrix"), says="read; write to another name")
        p.refused("quantize", p.model, p.text, "Q4_0", "--gptq", p.text, says="read; write to another name")
        p.refused("chat", "-m", p.model, "--session", p.model, says="not a saved session", stdin=b"hello\n")
        p.refused("chat", "-m", p.model, "--session", p.text, says="not a GGUF file", stdin=b"hello\n")


def test_names_that_cannot_be_written():
    with Place() as p:
        requests(p)
        for out, says in (("", "empty"), (p.path("missing/out"), "No such file"), (p.folder.name, "")):
            for args in writers(p, out):
                p.refused(*args, says="cannot write" if args[0] == "batch" else says)
        p.refused("chat", "-m", p.model, "--session", "", says="empty", stdin=b"hello\n")
        p.refused("run", "-m", "", "-p", "a", says="name of the model is empty")
        for args in (("quantize", p.model, "-", "Q4_0"), ("imatrix", "-m", p.model, "-f", p.text, "-o", "-")):
            p.refused(*args, says="stdout", code=2)
        began = time.monotonic()
        with open(p.path("long"), "wb") as f:
            f.write(TEXT * 1000)
        p.refused("imatrix", "-m", p.model, "-f", p.path("long"), "-c", "64", "-o", p.path("missing/out"), says="No such file")
        assert time.monotonic() - began < 30, "it is told before the text is evaluated"


def limited(args, limit, stdin=b""):
    """Run with a limit on the size of files, as a full disk."""
    p = subprocess.run([QUERN, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    return p.returncode, p.stderr.decode("utf-8", "replace")


def test_a_full_disk():
    with Place() as p:
        requests(p)
        with open(p.path("out"), "wb") as f:
            f.write(b"precious")
        for limit in (0, 1000):
            for args in writers(p, p.path("out"))[:5]:
                before = p.all()
                code, err = limited(args, limit)
                assert code == 1 and "File too large" in err, (args, limit, code, err)
                assert p.all() == before, f"{args[0]}, {limit} bytes: files changed"
            code, err = limited(("batch", p.path("requests"), "-m", p.model, "-c", "64", "-o", p.path("results")), limit)
            assert code == 1 and "File too large" in err, (limit, code, err)
            quern("batch", p.path("requests"), "-m", p.model, "-c", "64", "-o", p.path("results"))
            with open(p.path("results"), "rb") as f:
                assert f.read().count(b"\n") == 3, "it goes on where the disk was full"
            os.unlink(p.path("results"))


def test_a_session_on_a_full_disk():
    with Place() as p:
        talk = ("chat", "-m", p.model, "-c", "256", "-n", "5", "--session", p.path("talk"))
        quern(*talk, stdin=b"hello\n")
        before = p.all()
        for limit in (0, 1000, 20000):
            code, err = limited(talk, limit, stdin=b"more\n")
            assert code == 1 and "File too large" in err and "bytes" in err and p.all() == before, (limit, code, err)


def test_a_session_outlives_signals():
    with Place() as p:
        for sig, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 0)):
            talk = p.path(f"talk {sig}")
            c = subprocess.Popen([QUERN, "chat", "-m", p.model, "-c", "256", "-n", "5", "--session", talk], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
            c.stdin.write(b"a word that is kept\n")
            c.stdin.flush()
            assert c.stdout.read(1), "an answer begins"
            time.sleep(0.5)
            c.send_signal(sig)
            time.sleep(0.2)
            c.communicate(timeout=60)
            with open(talk, "rb") as f:
                assert c.returncode == code and b"a word that is kept" in f.read(), (sig, c.returncode)
        assert sorted(p.names()) == ["model.gguf", "talk 1", "talk 15", "talk 2", "text"]


def test_two_at_once_do_not_mix():
    """Each writes a file of its own until it is whole."""
    with Place() as p:
        args = [QUERN, "perplexity", "-m", p.model, "-f", p.text, "-c", "64", "-t", "1", "--kl-base", p.path("base")]
        runs = [subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
        assert [r.wait(timeout=120) for r in runs] == [0, 0, 0]
        for r in runs:
            r.communicate()
        assert sorted(p.names()) == ["base", "model.gguf", "text"]
        quern("perplexity", "-m", p.model, "--kl", p.path("base"))


def test_a_long_window_is_left_in_the_middle():
    with Place() as p:
        with open(p.path("long"), "wb") as f:
            f.write(TEXT * 60)
        c = subprocess.Popen([QUERN, "imatrix", "-m", p.model, "-f", p.path("long"), "-c", "200000", "-o", p.path("out")], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        time.sleep(2)
        began = time.monotonic()
        c.send_signal(signal.SIGTERM)
        _, err = c.communicate(timeout=120)
        assert c.returncode == 143 and b"stopped by a signal" in err and time.monotonic() - began < 30, (c.returncode, err, time.monotonic() - began)
        assert sorted(p.names()) == ["long", "model.gguf", "text"]


main(globals())
