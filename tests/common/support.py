"""What the Python tests share. ctest says where things are: QUERN (the program), QUERN_SOURCE, QUERN_REFS (reference data, may be absent)."""
import array
import mmap
import os
import subprocess
import sys
import tempfile

SOURCE = os.environ.get("QUERN_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QUERN = os.environ.get("QUERN") or os.path.join(SOURCE, "build", "quern")
DEFAULT_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Skip(Exception):
    """Raised by a test that lacks something; the text says what."""


def ref(*parts):
    """Path of a piece of reference data, or None where it is absent."""
    path = os.path.join(os.environ.get("QUERN_REFS") or os.path.join(SOURCE, "..", "shared"), "refs", *parts)
    return path if os.path.exists(path) else None


def cached_model(name=DEFAULT_MODEL):
    """A model in quern's cache folder (the rule of tools/cli_model.c); Skip where it is absent."""
    env = os.environ.get
    folder = env("QUERN_CACHE") or (os.path.join(env("XDG_CACHE_HOME"), "quern") if env("XDG_CACHE_HOME")
                                    else os.path.join(os.path.expanduser("~"), ".cache", "quern"))
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        raise Skip(f"{name} is not in {folder} ('sh tools/start' fetches the default model)")
    return path


def chat_model():
    """A model that the front ends can talk to, whatever it says: QUERN_MODEL, the default model, or a tiny one of the reference data."""
    given = os.environ.get("QUERN_MODEL")
    if given:
        return given
    tiny = ref("arch", "llama.gguf")
    if tiny:
        return tiny
    return cached_model()


def talking_model():
    """A model that makes sense and takes its time: QUERN_MODEL or the default one."""
    return os.environ.get("QUERN_MODEL") or cached_model()


def quern(*args, code=0, stdin=b""):
    """Run the program; its stdout as bytes. Fails unless it ends with exit code `code` (None: any, and (code, stdout, stderr) is returned)."""
    p = subprocess.run([QUERN, *map(str, args)], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=580)
    if code is None:
        return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")
    assert p.returncode == code, f"exit code {p.returncode}, not {code}: quern {' '.join(map(str, args))[:200]}\n{p.stderr.decode('utf-8', 'replace')}"
    return p.stdout


def try_logits(model):
    """Can the program evaluate this model at all? Exit code and stderr."""
    with tempfile.TemporaryDirectory(prefix="quern-") as folder:
        code, _, err = quern("logits", "-m", model, "--ids", "1", "-o", os.path.join(folder, "logits"), code=None)
    return code, err


class Logits:
    """Logits of every position, from `quern logits --all`: rows of float32 mapped from a temporary file. Use with `with`."""

    def __init__(self, model, ids, *options):
        self.n = len(ids)
        self.file = tempfile.NamedTemporaryFile(prefix="quern-logits-")
        quern("logits", "-m", model, "--ids", ",".join(map(str, ids)), "--all", "-o", self.file.name, *options)
        with open(self.file.name, "rb") as f:  # by name: the program may have put a new file there
            self.bytes = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        assert len(self.bytes) % (4 * self.n) == 0, f"{len(self.bytes)} bytes of logits are not {self.n} rows of float32"
        self.width = len(self.bytes) // (4 * self.n)

    def row(self, i):
        """[width] float32 of position i."""
        return array.array("f", self.bytes[4 * self.width * i:4 * self.width * (i + 1)])

    def all(self):
        """[n * width] float32."""
        return array.array("f", self.bytes[:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bytes.close()
        self.file.close()


def main(module):
    """Run the functions test_* of `module` (a dict: globals()); exit 1 when one failed, 77 when all were skipped."""
    ran = failed = 0
    for name, test in list(module.items()):
        if not name.startswith("test_") or not callable(test):
            continue
        try:
            test()
            ran += 1
            print(f"ok      {name}", flush=True)
        except Skip as e:
            print(f"skipped {name}: {e}", flush=True)
        except (AssertionError, OSError, subprocess.TimeoutExpired) as e:
            ran += 1
            failed += 1
            print(f"FAILED  {name}: {e}", flush=True)
    sys.exit(1 if failed else 0 if ran else 77)
