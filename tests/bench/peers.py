"""The programs that are compared: quern itself, and other programs' llama-bench, found or built."""
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile

from machine import Died, cpu_flags, run

RUNS = 2  # in one process: the first may pay for memory that is touched for the first time


class Contender:
    """A program under test. `label` heads its column; `version` is its own word; `command` makes the arguments of a test."""
    label = version = kind = ""

    def speed(self, model, test, cores):
        """Tokens a second, the best of a process's runs, and its peak memory; (None, 0) where the program cannot express the test."""
        command = self.command(model, test, len(cores))
        if command is None:
            return None, 0
        done = run(command, cores)
        try:
            return self.rate(json.loads(done.out)), done.peak_bytes
        except (ValueError, KeyError, IndexError) as e:
            raise Died(f"its output is not understood: {e!r}") from e


class Quern(Contender):
    kind = "quern"

    def __init__(self, path, cpu=None, act_bits=None):
        self.path, self.cpu, self.label = path, cpu, f"quern, {act_bits} bits" if act_bits else "quern"
        self.more = ["--act-bits", str(act_bits)] if act_bits else []
        about = run([path, "version"]).out
        self.version = about.split()[1]
        self.level = cpu or about.split("levels:")[1].split()[-1]

    def options(self, model, n_threads):
        return ["-m", model, "-t", str(n_threads)] + (["--cpu", self.cpu] if self.cpu else []) + self.more

    def command(self, model, test, n_threads):
        return [self.path, "bench", *self.options(model, n_threads), "-p", str(test.n_prompt), "-n", str(test.n_gen), "-d", str(test.depth),
                "-r", str(RUNS), "--json", "--no-limits"]

    def rate(self, out):
        return out["models"][0]["results"][0]["best"]

    def first_token(self, model, n_threads):
        """What loads a model, says one token and ends."""
        return [self.path, "run", *self.options(model, n_threads), "--raw", "-p", "a", "-n", "1", "--temp", "0", "--ignore-end", "-c", "512"]


class Peer(Contender):
    """A llama-bench, of llama.cpp or of ik_llama.cpp. `more`: options that belong to this column."""

    def __init__(self, path, kind, label, version, more=()):
        self.path, self.kind, self.label, self.version, self.more = path, kind, label, version, list(more)

    def base(self, model, n_threads):
        return [self.path, "-m", model, "-t", str(n_threads), "-o", "json", *self.more]

    def command(self, model, test, n_threads):
        command = self.base(model, n_threads) + ["-r", str(RUNS)]
        if self.kind == "llama.cpp":
            return command + ["-p", str(test.n_prompt), "-n", str(test.n_gen), "-d", str(test.depth)]
        if not test.depth:
            return command + ["-p", str(test.n_prompt), "-n", str(test.n_gen)]
        if test.n_prompt:
            return None  # ik_llama.cpp reads a prompt at depth 0 alone
        return command + ["-p", "0", "-n", "0", "-gp", f"{test.depth},{test.n_gen}"]

    def rate(self, out):
        return max(out[0].get("samples_ts") or [out[0]["avg_ts"]])

    def first_token(self, model, n_threads):
        return self.base(model, n_threads) + ["-r", "1", "-p", "0", "-n", "1", *(["--no-warmup"] if self.kind == "llama.cpp" else ["-w", "0"])]


def probe(path):
    """Which program a llama-bench belongs to."""
    try:
        text = run([path, "--help"], timeout=60).out
    except Died as e:
        sys.exit(f"versus: {path}: {e}")
    if "-p, --n-prompt" not in text:
        sys.exit(f"versus: {path} is no llama-bench")
    return "ik_llama.cpp" if "--run-time-repack" in text else "llama.cpp"


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def find(spec, model):
    """The columns of `PATH` or `NAME=PATH`. The version is asked with one token of `model`, as not every llama-bench has an option for it."""
    name, path = spec.split("=", 1) if "=" in spec and not os.path.exists(spec) else ("", spec)
    kind = probe(path)
    peer = Peer(path, kind, name or kind, "unknown", ["-fa", "1"] if kind != "llama.cpp" else [])
    try:
        out = json.loads(run(peer.first_token(model, 1)).out)[0]
        peer.version = f"commit {out['build_commit']}" if out["build_commit"] != "unknown" else f"of unknown commit, SHA-256 {digest(path)[:12]}"
    except (Died, ValueError, KeyError, IndexError) as e:
        print(f"versus: warning: {path} does not tell its version: {e}", file=sys.stderr)
    if kind == "llama.cpp":
        return [peer]
    return [peer, Peer(path, kind, f"{peer.label} -rtr", peer.version, ["-fa", "1", "-rtr", "1"])]


# ---- building llama.cpp ----

X86 = {"AVX": 1, "AVX2": 1, "FMA": 1, "F16C": 1, "BMI2": 1}
AVX512 = {**X86, "AVX512": 1, "AVX512_VBMI": 1, "AVX512_VNNI": 1, "AVX512_BF16": 1}
LEVELS = {"native": None, "avx2": {**X86, "AVX512": 0}, "avx512": AVX512, "amx": {**AVX512, "AMX_TILE": 1, "AMX_INT8": 1, "AMX_BF16": 1}}


def cmake_flags(level):
    """Options that make a llama.cpp for a level. GCC 12 drops the AMX tile configuration as a dead store, and the program dies of it."""
    chosen = LEVELS[level]
    flags = [f"-DGGML_NATIVE={'ON' if chosen is None else 'OFF'}"]
    flags += [f"-DGGML_{k}={'ON' if v else 'OFF'}" for k, v in (chosen or {}).items()]
    if level == "amx" or (level == "native" and "amx_tile" in cpu_flags()):
        flags.append("-DCMAKE_CXX_FLAGS=-fno-tree-dse -fno-dse")
    return flags + ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_CURL=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_SERVER=OFF"]


def step(command):
    print("+ " + " ".join(command), file=sys.stderr, flush=True)
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        sys.exit(f"versus: {command[0]} failed")


def source(folder, version):
    """Folder of llama.cpp's source, as the Python package llama-cpp-python carries it; downloaded with pip when it is not there."""
    wanted = os.path.join(folder, f"llama_cpp_python-{version or '*'}.tar.gz")
    if not glob.glob(wanted):
        step([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "-d", folder,
              "llama-cpp-python" + (f"=={version}" if version else "")])
    archive = max(glob.glob(wanted), key=lambda p: [int(x) for x in re.findall(r"\d+", os.path.basename(p))])
    unpacked = archive[:-len(".tar.gz")]
    if not os.path.isdir(unpacked):
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(folder)
    return os.path.join(unpacked, "vendor", "llama.cpp")


def build_llama(folder, level, version=None):
    """Path of a llama-bench for `level`, built when it is not there yet."""
    os.makedirs(folder, exist_ok=True)
    src = source(folder, version)
    build = os.path.join(folder, f"{os.path.basename(os.path.dirname(os.path.dirname(src)))}-{level}")
    program = os.path.join(build, "bin", "llama-bench")
    if not os.path.exists(program):
        step(["cmake", "-S", src, "-B", build, *cmake_flags(level)])
        step(["cmake", "--build", build, "--target", "llama-bench", "-j", str(len(os.sched_getaffinity(0)))])
    return program
