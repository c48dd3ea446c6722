"""Little memory and no thread more: every command works or ends with one sentence and exit code 1."""
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "common"))
from gguf_file import Folder  # noqa: E402
from support import QUERN, Skip, chat_model, main  # noqa: E402

TEXT = b"The quick brown fox jumps over the lazy dog, and 17 others watch it.\n" * 30
SAYS_ANYWAY = ("quern: note:", "quern: the model has no chat template", "(")


def under(limit, *args):
    p = subprocess.run([QUERN, *args], input=b"hello\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    return p.returncode, p.stderr.decode("utf-8", "replace")


def test_every_command():
    if os.environ.get("QUERN_EMULATED") or under(1 << 33, "version")[0] != 0:
        raise Skip("an emulator or a sanitizer takes more address space than any limit gives")
    assert under(64 << 20, "version") == (0, ""), "what needs nothing takes nothing: no library brings threads of its own"
    model = chat_model()
    ends = set()
    with Folder() as d:
        with open(d.path("text"), "wb") as f:
            f.write(TEXT)
        with open(d.path("requests"), "wb") as f:
            f.write(b'{"prompt": "a", "max_tokens": 3}\n')
        for args in (("run", "-m", model, "--raw", "-p", "hello", "-n", "3", "-c", "64"), ("chat", "-m", model, "-n", "3", "-c", "64"),
                     ("perplexity", "-m", model, "-f", d.path("text"), "-c", "64", "--chunks", "2"),
                     ("imatrix", "-m", model, "-f", d.path("text"), "-c", "64", "-o", d.path("out")), ("quantize", model, d.path("out"), "Q4_0"),
                     ("batch", d.path("requests"), "-m", model, "-c", "64"), ("embed", "-m", model, "hello")):
            for mb in (12, 16, 20, 24, 28, 40, 64, 200, 1000):
                code, err = under(mb << 20, *args)
                if code == 127 or "error while loading" in err:
                    continue  # the loader's, before the program begins
                lines = [x for x in err.splitlines() if x and not x.startswith(SAYS_ANYWAY)]
                assert code in (0, 1) and len(lines) == code, (args, mb, code, err)
                ends.add(code)
            assert not [n for n in d.names() if ".part" in n], d.names()
    assert ends == {0, 1}, "limits on both sides of what is needed"


main(globals())
